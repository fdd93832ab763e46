"""Replies whose parts depend on words and on time: answers in chunks, and lines that tell of progress."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wire_compare import Comparison

_FINAL = ("done_reason", "context", "total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration")
_ENDS = (*_FINAL, "eval_count", "eval_duration", "logprobs", "usage")
_EVENT = "data: "
_DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Chunks:
    """Answers, whole and streamed: how many chunks there are is a matter of words, what each is like is not."""

    one: Comparison

    def whole(self, theirs: Any, mine: Any) -> None:
        """Compare the fields that `value` leaves: the reason of the end, the counts, and the keys of a schema."""
        if isinstance(theirs, dict) and isinstance(mine, dict):
            self._end(theirs, mine)
            self._check_schema_answer(_words(theirs), _words(mine), _reason(theirs))

    def lines(self, theirs: Sequence[str], mine: Sequence[str]) -> None:
        """Compare a streamed answer."""
        wanted, got = self._read(theirs), self._read(mine)
        if wanted is None or got is None:
            if tuple(theirs) != tuple(mine):
                self.one.say((), f"lines {list(mine)[-2:]} instead of {list(theirs)[-2:]}")
            return
        if self.one.exchange.cut_after is not None:
            if len(got) < len(wanted):
                self.one.say((), f"{len(got)} lines instead of {len(wanted)}")
            self._heads(wanted, got[: len(wanted)], {})
            return
        head, tail = _split(wanted)
        own_head, own_tail = _split(got)
        if len(own_tail) != len(tail):
            self.one.say((), f"ends with {own_tail[-2:]} instead of {tail[-2:]}")
            return
        if head and not own_head:
            self.one.say((), "no words before the last line")
        self._heads(head, own_head, _word_chunk(tail[0] if tail else {}, head))
        for at, (ends, own) in enumerate(zip(tail, own_tail, strict=True), -len(tail)):
            self.one.value(ends, own, (f"line {at}",))
            self._empty(ends, own, at)
        if tail:
            self._end(_all_of(tail), _all_of(own_tail))
            self._check_schema_answer("".join(map(_words, wanted)), "".join(map(_words, got)), _reason(_all_of(tail)))

    def _read(self, lines: Sequence[str]) -> list[Any] | None:
        """Return the chunks; None where the lines are not framed as a stream of answers is."""
        events = any(line.startswith(_EVENT) for line in lines)
        if events and self.one.exchange.cut_after is None:
            if list(lines[-2:]) != [_EVENT + _DONE, ""] or any(lines[1::2]):
                return None
            lines = [line for line in lines[:-2] if line]
        try:
            return [json.loads(line.removeprefix(_EVENT) if events else line) for line in lines if line or not events]
        except ValueError:
            return None

    def _heads(self, theirs: Sequence[Any], mine: Sequence[Any], word: Any) -> None:
        """Check that every chunk with words is like one of the recorded ones; the first is like the first."""
        models = {shape(chunk): chunk for chunk in reversed(theirs)}
        if word:
            models.setdefault(shape(word), word)
        if theirs and mine and shape(theirs[0]) != shape(mine[0]):
            self.one.say(("line 0",), f"{mine[0]} instead of one like {theirs[0]}")
        for at, chunk in enumerate(mine):
            model = models.get(shape(chunk))
            if model is None:
                self.one.say((f"line {at}",), f"{str(chunk)[:300]} is like none that was recorded")
                return
            self.one.value(model, chunk, (f"line {at}",))

    def _empty(self, theirs: Any, mine: Any, at: int) -> None:
        if not _words(theirs) and _words(mine):
            self.one.say((f"line {at}",), f"words in a line that has none: {_words(mine)[:80]!r}")

    def _end(self, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
        """Compare why the answer ended and its number of tokens, as far as that follows from the request.

        Both ran to a limit: the same count. A stop is the words' doing, so where only one of the two came to a limit,
        it has to be the longer answer.
        """
        wanted, got = _reason(theirs), _reason(mine)
        spent, own = _token_count(theirs), _token_count(mine)
        if (wanted, got) in (("stop", "length"), ("length", "stop")):
            shorter, longer = (spent, own) if wanted == "stop" else (own, spent)
            if self._may_end_otherwise(wanted) and shorter is not None and longer is not None and shorter < longer:
                return
        if wanted != got:
            self.one.say(("done_reason",), f"{got!r} after {own} tokens instead of {wanted!r} after {spent}")
        elif wanted == "length" and spent != own:
            self.one.say(("eval_count",), f"{own} instead of {spent}")
        elif wanted in ("load", "unload") and _words(mine) != _words(theirs):
            self.one.say((), f"words in a reply that has none: {_words(mine)[:80]!r}")
        usage = mine.get("usage")
        if isinstance(usage, dict) and own is not None:
            total = (_number(usage.get("prompt_tokens")) or 0) + own
            if usage.get("total_tokens") != total:
                self.one.say(("usage", "total_tokens"), f"{usage.get('total_tokens')} instead of {total}")

    def _may_end_otherwise(self, wanted: str | None) -> bool:
        """Free text may stop by its own words; what a schema or a stop string asks for may take other words."""
        body = self.one.exchange.body
        asked = bool(body.get("format") or body.get("response_format"))
        options = body.get("options")
        stops = body.get("stop") or (options.get("stop") if isinstance(options, dict) else None)
        return not asked if wanted == "stop" else asked or bool(stops)

    def _check_schema_answer(self, theirs: str, mine: str, reason: str | None) -> None:
        """Compare keys and types of an answer to a schema: words are free, what the schema fixes is not."""
        schema = self.one.exchange.body.get("format")
        if reason != "stop" or not schema or self.one.exchange.path.startswith("/v1"):
            return
        try:
            wanted = json.loads(theirs)
        except ValueError:
            return
        try:
            self._like(schema, wanted, json.loads(mine))
        except ValueError:
            self.one.say((), f"no JSON: {mine[:120]!r}")

    def _like(self, schema: Any, theirs: Any, mine: Any) -> None:
        schema = schema if isinstance(schema, dict) else {}
        kind = schema.get("type")
        if isinstance(kind, str) and type(theirs) is not type(mine) and kind != "number":
            self.one.say(("answer",), f"{str(mine)[:80]!r} where the schema has {kind}")
        elif isinstance(theirs, dict) and isinstance(mine, dict) and isinstance(schema.get("properties"), dict):
            asked = schema["properties"]
            given = [key for key in theirs if key in mine]
            if given != [key for key in mine if key in theirs] or set(mine) - set(asked):
                self.one.say(("answer",), f"keys {list(mine)} instead of {list(theirs)}")
            required = schema.get("required")
            if isinstance(required, list) and any(key in required for key in set(theirs) - set(mine)):
                self.one.say(("answer",), f"keys {list(mine)} lack some of {schema['required']}")
            for key in given:
                self._like(asked.get(key, {}), theirs[key], mine[key])
        elif isinstance(theirs, list) and isinstance(mine, list):
            if schema.get("minItems") == schema.get("maxItems") is not None and len(theirs) != len(mine):
                self.one.say(("answer",), f"{len(mine)} items instead of {len(theirs)}")
            for wanted, got in zip(theirs, mine, strict=False):
                self._like(schema.get("items"), wanted, got)


@dataclass(frozen=True, slots=True)
class Progress:
    """Streams of statuses: lines that count something up are as many as time has it, the others are the same."""

    one: Comparison

    def lines(self, theirs: Sequence[str], mine: Sequence[str]) -> None:
        """Compare two streams, taking the counting lines of one thing together."""
        if self.one.exchange.cut_after is not None and len(mine) < len(theirs):
            self.one.say((), f"{len(mine)} lines instead of {len(theirs)}")
        try:
            wanted, got = _runs(theirs), _runs(mine)
        except (ValueError, TypeError, AttributeError):
            self.one.say((), f"a line that is no object: {list(mine)[-2:]}")
            return
        if self.one.exchange.cut_after is not None:  # when it left is a matter of time
            told = {("status",), *(tuple(chunk) for run in wanted for chunk in run)}
            beyond = [run[0] for run in got[len(wanted) :] if tuple(run[0]) not in told or not _lawful(run[0])]
            if beyond:
                self.one.say((), f"{beyond[0]} where it counts")
            wanted, got = wanted[: len(got)], got[: len(wanted)]
        for run, own in self._align(wanted, got):
            if run is None or own is None:
                statuses = [[each[0].get("status", each[0]) for each in runs] for runs in (got, wanted)]
                self.one.say((), f"{statuses[0]} instead of {statuses[1]}")
                return
            if "total" in run[0] and "total" in own[0]:
                self._check_counts(run, own)
            else:
                self.one.value(run[0], own[0], ("line",))

    def _align(self, wanted: Sequence[Any], got: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Align runs side by side; a layer that came down before its first line was due has none, on either side."""
        theirs, mine = list(wanted), list(got)
        while theirs or mine:
            sides = [runs[0] if runs else None for runs in (theirs, mine)]
            totals = [run[0].get("total", 0) if run else -1 for run in sides]
            if totals[0] == totals[1]:
                yield theirs.pop(0) if theirs else None, mine.pop(0) if mine else None
                continue
            fast = [run is not None and len(run) < 3 and _counts(run) and not _present(run) for run in sides]
            if fast[0] and (not fast[1] or totals[0] < totals[1]):
                theirs.pop(0)
            elif fast[1]:
                mine.pop(0)
            else:
                yield theirs.pop(0) if theirs else None, mine.pop(0) if mine else None

    def _check_counts(self, theirs: Sequence[Any], mine: Sequence[Any]) -> None:
        where = (str(mine[0].get("status")),)
        for chunk in mine:
            model = next((one for one in theirs if list(one) == list(chunk)), None)
            if model is None:
                # a first line says nothing of what is done while that is nothing
                model = next((one for one in theirs if [*one][:3] == [*chunk][:3]), theirs[0])
                if [name for name in model if name != "completed"] != [name for name in chunk if name != "completed"]:
                    self.one.say(where, f"{chunk} is not like {model}")
                    return
            self.one.value({**model, "completed": 0}, {**chunk, "completed": 0}, where)
        done = [chunk.get("completed", 0) for chunk in mine]
        if not all(type(count) is int for count in (*done, mine[0]["total"])):
            self.one.say(where, f"it does not count: {done} of {mine[0]['total']}")
        elif done != sorted(done) or done[-1] > mine[0]["total"]:
            self.one.say(where, f"it does not count up: {done}")
        if _present(theirs) != _present(mine):
            self.one.say(where, f"a layer that {'is there' if _present(mine) else 'is not there'} already: {mine[0]}")


def shape(value: Any) -> Any:
    """Return the names of the fields of a value, and of those in them; tool calls and lists are one thing."""
    if isinstance(value, dict):
        return tuple((name, shape(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(shape(inner) for inner in value) if value and isinstance(value[0], dict) else ()
    return value if isinstance(value, bool) else None


def _split(chunks: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the chunks with words, and those with which it ends."""
    for at, chunk in enumerate(chunks):
        if isinstance(chunk, dict) and (chunk.get("done") or "error" in chunk or _reason(chunk) or not _choices(chunk)):
            return list(chunks[:at]), list(chunks[at:])
    return list(chunks), []


def _choices(chunk: Mapping[str, Any]) -> bool:
    return bool(chunk["choices"]) if "choices" in chunk else True


def _word_chunk(last: Mapping[str, Any], head: Sequence[Any]) -> Any:
    """Return the form of a chunk with a word where the recording shows none: the last line without its end."""
    if "choices" not in last:
        return {**{name: value for name, value in last.items() if name not in _ENDS}, "done": False} if last else {}
    if not head:
        return {}
    choice = dict(head[0]["choices"][0])
    if isinstance(choice.get("delta"), dict):
        choice["delta"] = {name: value for name, value in choice["delta"].items() if name != "role"}
    return {**head[0], "choices": [choice]}


def _words(chunk: Any) -> str:
    """Return the words of a chunk or of a whole reply."""
    if not isinstance(chunk, dict):
        return ""
    choices = chunk.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        choice = choices[0]
        holder = choice.get("message") or choice.get("delta") or choice
        return str(holder.get("content") or holder.get("text") or "")
    message = chunk.get("message")
    holder = message if isinstance(message, dict) else chunk
    return str(holder.get("content") or holder.get("response") or "")


def _reason(reply: Mapping[str, Any]) -> str | None:
    choices = reply.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0].get("finish_reason")
    return reply.get("done_reason")


def _token_count(reply: Mapping[str, Any]) -> int | None:
    usage = reply.get("usage")
    return _number(usage.get("completion_tokens") if isinstance(usage, dict) else reply.get("eval_count"))


def _number(value: Any) -> int | None:
    return value if type(value) is int else None


def _all_of(tail: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the chunks that end a stream to one reply."""
    found: dict[str, Any] = {}
    for chunk in tail:
        found |= {name: value for name, value in chunk.items() if value or name not in found}
    return found


def _runs(lines: Sequence[str]) -> list[list[Any]]:
    chunks = [json.loads(line) for line in lines]
    if not all(isinstance(chunk, dict) for chunk in chunks):
        raise TypeError("every line is an object")
    return [list(run) for _, run in groupby(chunks, key=_same_thing)]


def _same_thing(chunk: Any) -> Any:
    return (chunk.get("status"), chunk.get("digest")) if "total" in chunk else id(chunk)


def _lawful(chunk: Mapping[str, Any]) -> bool:
    """Test if a line without a counterpart is a lawful line of its layer."""
    if "digest" not in chunk:
        return isinstance(chunk.get("status"), str)
    digest = str(chunk["digest"])
    counts = [chunk[name] for name in ("total", "completed") if name in chunk]
    named = re.fullmatch(r"sha256:[0-9a-f]{64}", digest) and chunk.get("status") == f"pulling {digest[7:19]}"
    return bool(named) and all(type(count) is int for count in counts)


def _counts(run: Sequence[Mapping[str, Any]]) -> bool:
    return all([*chunk][:3] == ["status", "digest", "total"] and _lawful(chunk) for chunk in run)


def _present(run: Sequence[Mapping[str, Any]]) -> bool:
    return len(run) == 1 and run[0].get("completed") == run[0]["total"]

"""Differences of a reply from the recorded one: strict, but for the parts that bench/wire.py lists as free.

`compare(exchange, reply, ledger)` gives one sentence for each difference, none where the replies agree.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from wire_exchange import LEFT, Exchange, Reply
from wire_ledger import Ledger, seconds
from wire_streams import Chunks, Progress

Where: TypeAlias = tuple[str | int, ...]
Rule: TypeAlias = "Callable[[Comparison, Any, Any, Where], None]"

HEADERS = ("content-type", "allow", "vary")
ANSWERS = frozenset(("/api/chat", "/api/generate", "/v1/chat/completions", "/v1/completions"))
EMBEDDINGS = frozenset(("/api/embed", "/api/embeddings", "/v1/embeddings"))
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])|(?<=pulling )[0-9a-f]{12}\b", re.ASCII)
_STORE = re.compile(r"(?:<models>|(?<![\w:/])/[^\s\":]*?)(?=/blobs/sha256-)")
_RESOLVER = re.compile(r"(?<= on )[\w.:\[\]]+:53(?=: )")
_FOR_EVER_S = 10 * 365 * 86400.0


def compare(exchange: Exchange, reply: Reply, ledger: Ledger) -> list[str]:
    """Return the differences of a reply from the recorded one."""
    comparison = Comparison(exchange, ledger)
    comparison.reply(reply)
    return comparison.found


@dataclass(slots=True)
class Comparison:
    """A reply against an exchange."""

    exchange: Exchange
    ledger: Ledger
    found: list[str] = field(default_factory=list)

    def reply(self, mine: Reply) -> None:
        """Compare status, headers and body."""
        theirs = self.exchange.reply
        if theirs.status is None:
            if not mine.fault.startswith(LEFT):
                told = mine.fault or f"status {mine.status}"
                self.say((), f"{told} after {mine.ms:.0f} ms, where the client gave up")
            return
        if mine.fault and self.exchange.cut_after is None:
            self.say((), f"no reply but {mine.fault}")
            return
        if mine.status != theirs.status:
            self.say((), f"status {mine.status} instead of {theirs.status}: {mine.text[:200]}")
            return
        if theirs.headed:
            self._headers(theirs, mine)
        if theirs.lines is not None:
            self._lines(theirs.lines, mine)
        else:
            self._whole(theirs.text, mine.text)

    def say(self, where: Where, what: str) -> None:
        """Note one difference."""
        place = "/".join(str(part) for part in where)
        self.found.append(f"{place}: {what}" if place else what)

    # headers

    def _headers(self, theirs: Reply, mine: Reply) -> None:
        for name in HEADERS:
            if mine.headers.get(name) != theirs.headers.get(name):
                self.say((), f"{name} is {mine.headers.get(name)!r} instead of {theirs.headers.get(name)!r}")
        if self.exchange.method == "HEAD" and mine.headers.get("content-length") != theirs.headers.get(
            "content-length"
        ):
            self.say((), f"content-length is {mine.headers.get('content-length')}")
        wanted, got = framing(theirs), framing(mine)
        if wanted == got:
            return
        # words and moments make one reply longer than the other: each may be framed as its own length asks
        if theirs.lines is not None or (wanted, got) != (_lawful(theirs.text), _lawful(mine.text)):
            self.say((), f"{got} instead of {wanted}")

    # bodies

    def _whole(self, theirs: str, mine: str) -> None:
        try:
            wanted, got = json.loads(theirs), json.loads(mine)
        except ValueError:
            if self.plain(mine) != self.plain(theirs):
                self.say((), f"{mine[:300]!r} instead of {theirs[:300]!r}")
            return
        if mine.endswith("\n") != theirs.endswith("\n"):
            self.say((), "the newline at the end")
        self.value(wanted, got, ())
        if self.exchange.path in ANSWERS:
            Chunks(self).whole(wanted, got)

    def _lines(self, theirs: Sequence[str], mine: Reply) -> None:
        got = mine.lines if mine.lines is not None else tuple(mine.text.split("\n"))
        if self.exchange.cut_after is None and mine.text != "\n".join((*got, "")):
            self.say((), "no newline at the end of the stream")
        if self.exchange.path in ANSWERS:
            Chunks(self).lines(theirs, got)
        else:
            Progress(self).lines(theirs, got)

    def value(self, theirs: Any, mine: Any, where: Where) -> None:
        """Compare two JSON values at a place in the reply."""
        if kind(theirs) != kind(mine):
            self.say(where, f"{short(mine)} instead of {short(theirs)}")
            return
        rule = rules(self.exchange.path).get(str(where[-1])) if where else None
        if rule is not None:
            rule(self, theirs, mine, where)
        elif isinstance(theirs, dict):
            self.fields(theirs, mine, where)
        elif isinstance(theirs, list):
            self.items(theirs, mine, where)
        elif isinstance(theirs, str):
            self.text(theirs, mine, where)
        elif theirs != mine or type(theirs) is not type(mine):
            self.say(where, f"{mine!r} instead of {theirs!r}")

    def fields(self, theirs: Mapping[str, Any], mine: Mapping[str, Any], where: Where) -> None:
        """Compare fields, their order, and their values."""
        if list(mine) != list(theirs):
            self.say(where, f"fields {list(mine)} instead of {list(theirs)}")
        for name in theirs:
            if name in mine:
                self.value(theirs[name], mine[name], (*where, name))

    def items(self, theirs: Sequence[Any], mine: Sequence[Any], where: Where) -> None:
        """Compare items one by one; their number must be the same."""
        if len(theirs) != len(mine):
            self.say(where, f"{len(mine)} items instead of {len(theirs)}")
            return
        for at, (wanted, got) in enumerate(zip(theirs, mine, strict=True)):
            self.value(wanted, got, (*where, at))

    def text(self, theirs: str, mine: str, where: Where) -> None:
        """Compare texts; digests in it that do not follow from the request stand for theirs one to one."""
        wanted, got = self.plain(theirs), self.plain(mine)
        if _DIGEST.sub("#", wanted) != _DIGEST.sub("#", got):
            self.say(where, f"{short(got)} instead of {short(wanted)}")
            return
        for other, own in zip(_DIGEST.findall(wanted), _DIGEST.findall(got), strict=True):
            if not self.ledger.stands_for(other, own):
                known = self.ledger.here.get(other, "itself")
                self.say(where, f"digest {own[:12]} stands for {other[:12]}, for which {known[:12]} should stand")

    def plain(self, text: str) -> str:
        """Return a text without the daemon's store and the machine's resolver."""
        return _RESOLVER.sub("<dns>", _STORE.sub("<models>", text))


def framing(reply: Reply) -> str:
    """Return how the length of a body is told: `sized`, `chunked` or `bare`."""
    if "transfer-encoding" in reply.headers:
        return "chunked"
    return "sized" if "content-length" in reply.headers else "bare"


def _lawful(text: str) -> str:
    return "sized" if len(text.encode("utf-8", "replace")) <= 2048 else "chunked"  # Go sends longer replies in chunks


def kind(value: Any) -> str:
    """Return the JSON type of a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "null"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "string"


def short(value: Any) -> str:
    """Return a value, cut for a report."""
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:140]} ... {text[-140:]}"


# rules for fields whose values are free, or free within bounds


def _free(one: Comparison, theirs: Any, mine: Any, where: Where) -> None:
    """Accept any value of the recorded type, which `value` has checked."""


def _moment(one: Comparison, theirs: str, mine: str, where: Where) -> None:
    if _MOMENT.match(theirs) and not _MOMENT.match(mine):
        one.say(where, f"{mine!r} is no moment of the wire")
    elif where[-1] == "created_at" and mine[-1:] != theirs[-1:]:
        one.say(where, f"{mine!r} is not in UTC")
    elif where[-1] == "expires_at" and one.ledger.clock is not None:
        _expiry(one, seconds(theirs) - one.ledger.clock, seconds(mine) - time.time(), where)


def _expiry(one: Comparison, wanted: float, got: float, where: Where) -> None:
    if wanted > _FOR_EVER_S and got > _FOR_EVER_S:
        return
    if abs(wanted - got) > one.ledger.slack():
        one.say(where, f"in {got:.1f} s instead of in {wanted:.1f} s")


def _positive(one: Comparison, theirs: float, mine: float, where: Where) -> None:
    if (mine > 0) != (theirs > 0) or isinstance(mine, float) != isinstance(theirs, float):
        one.say(where, f"{mine!r} instead of a number like {theirs!r}")


def _compare_numbered(one: Comparison, theirs: str, mine: str, where: Where) -> None:
    if re.sub(r"(?<=-)\d+\Z", "N", theirs) != re.sub(r"(?<=-)\d+\Z", "N", mine):
        one.say(where, f"{mine!r} instead of {theirs!r}")


def _vectors(one: Comparison, theirs: Sequence[Any], mine: Sequence[Any], where: Where) -> None:
    if len(theirs) != len(mine):
        one.say(where, f"{len(mine)} items instead of {len(theirs)}")
    elif isinstance(theirs, str):
        return  # base64: as many bytes are as many numbers
    elif theirs and kind(theirs[0]) == "array":
        for at, (wanted, got) in enumerate(zip(theirs, mine, strict=True)):
            _vectors(one, wanted, got, (*where, at))
    elif [kind(number) for number in theirs] != [kind(number) for number in mine]:
        one.say(where, "not a vector of numbers")
    elif abs(_norm(theirs) - 1) < 1e-3 < abs(_norm(mine) - 1):
        one.say(where, f"a vector of length {_norm(mine):.4f} instead of 1")


def _norm(vector: Sequence[float]) -> float:
    return float(sum(number * number for number in vector) ** 0.5)


def _logprobs(one: Comparison, theirs: Sequence[Any], mine: Sequence[Any], where: Where) -> None:
    if bool(theirs) != bool(mine):
        one.say(where, f"{len(mine)} items instead of {len(theirs)}")
        return
    for at, got in enumerate(mine):
        wanted = theirs[min(at, len(theirs) - 1)]
        if list(wanted) != list(got):
            one.say((*where, at), f"fields {list(got)} instead of {list(wanted)}")
        elif [kind(value) for value in wanted.values()] != [kind(value) for value in got.values()]:
            one.say((*where, at), f"{short(got)} instead of {short(wanted)}")
        elif len(wanted.get("top_logprobs", ())) != len(got.get("top_logprobs", ())):
            one.say((*where, at), f"{len(got['top_logprobs'])} alternatives")
        elif wanted.get("top_logprobs"):
            _logprobs(one, wanted["top_logprobs"], got["top_logprobs"], (*where, at, "top_logprobs"))


def _context(one: Comparison, theirs: Sequence[int], mine: Sequence[int], where: Where) -> None:
    """Compare the prompt's tokens; the last ones before the answer may join with its first."""
    prompt = next((found.get("prompt_eval_count", 0) for found in one.exchange.reply.objects() if found.get("done")), 0)
    same = max(0, prompt - 3)
    if list(theirs[:same]) != list(mine[:same]):
        at = next(n for n in range(same) if theirs[n : n + 1] != mine[n : n + 1])
        one.say(where, f"token {at} of the prompt is {mine[at : at + 1]} instead of {theirs[at : at + 1]}")
    elif len(mine) < prompt - 1 or not all(type(number) is int for number in mine):
        one.say(where, f"{len(mine)} numbers, fewer than the prompt has")


def _settings(one: Comparison, theirs: str, mine: str, where: Where) -> None:
    """Compare maps in any order: lines of `parameters`, and PARAMETER lines of a `modelfile` as a block."""
    one.text(_in_order(theirs, where), _in_order(mine, where), where)


def _in_order(text: str, where: Where) -> str:
    lines = text.split("\n")
    if where[-1] == "parameters":
        return "\n".join(sorted(lines))
    at = [number for number, line in enumerate(lines) if line.startswith("PARAMETER ")]
    for number, line in zip(at, sorted(lines[number] for number in at), strict=True):
        lines[number] = line
    return "\n".join(lines)


def _rows(one: Comparison, theirs: Sequence[Any], mine: Sequence[Any], where: Where) -> None:
    """Compare rows sorted by whole seconds of a moment, in any order within one; the order must be lawful."""
    stamp, name = _row_keys(theirs or mine)
    if not all(isinstance(row, dict) and name in row and _stamped(row.get(stamp)) for row in (*theirs, *mine)):
        one.items(theirs, mine, where)
        return
    wanted, got = ({str(row[name]): row for row in rows} for rows in (theirs, mine))
    if sorted(wanted) != sorted(got) or len(theirs) != len(mine):
        one.say(where, f"{list(got)} instead of {list(wanted)}")
        return
    whole = [int(moment_of(row[stamp])) for row in mine]
    if whole != sorted(whole, reverse=True):
        one.say(where, f"not sorted by {stamp}: {list(got)}")
    if stamp != "created":
        _same_order(one, wanted, got, stamp, where)
    for label, row in wanted.items():
        one.value(row, got[label], (*where, label, "row"))


def _same_order(one: Comparison, wanted: Mapping[str, Any], got: Mapping[str, Any], stamp: str, where: Where) -> None:
    """Check that rows clearly apart in the recording stand in the same order here."""
    gap = 0.05 if stamp == "expires_at" else 0.0005
    order = sorted(wanted, key=lambda label: moment_of(wanted[label][stamp]))
    for before, after in pairwise(order):
        clear = moment_of(wanted[after][stamp]) - moment_of(wanted[before][stamp]) > gap
        if clear and moment_of(got[after][stamp]) < moment_of(got[before][stamp]):
            one.say(where, f"{stamp} of {after} is before that of {before}")


def _stamped(value: Any) -> bool:
    return bool(_MOMENT.match(value)) if isinstance(value, str) else type(value) is int


def moment_of(value: Any) -> float:
    """Return a moment of a row, as text or in seconds."""
    return seconds(value) if isinstance(value, str) else float(value)


def _row_keys(rows: Sequence[Any]) -> tuple[str, str]:
    first = rows[0] if rows and isinstance(rows[0], dict) else {}
    if "expires_at" in first:
        return "expires_at", "name"
    return ("created", "id") if "created" in first else ("modified_at", "name")


_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_WORDS = ("content", "response", "thinking", "text", "reasoning", "tool_calls")
_LATER = ("done_reason", "finish_reason", "eval_count", "completion_tokens", "total_tokens")  # Chunks compares them
_MOMENTS: Mapping[str, Rule] = dict.fromkeys(("created_at", "modified_at", "expires_at"), _moment)
_ALWAYS: Mapping[str, Rule] = {**_MOMENTS, **dict.fromkeys(_DURATIONS, _positive)}
_ANSWER: Mapping[str, Rule] = {
    **_ALWAYS,
    **dict.fromkeys((*_WORDS, *_LATER), _free),
    "id": _compare_numbered,
    "created": _positive,
    "context": _context,
    "logprobs": _logprobs,
}
_VECTOR: Mapping[str, Rule] = {**_ALWAYS, "embeddings": _vectors, "embedding": _vectors}
_RULES: Mapping[str, Mapping[str, Rule]] = {
    **dict.fromkeys(ANSWERS, _ANSWER),
    **dict.fromkeys(EMBEDDINGS, _VECTOR),
    "/api/tags": {**_MOMENTS, "models": _rows},
    "/api/ps": {**_MOMENTS, "models": _rows, "size": _positive},
    "/v1/models": {"data": _rows, "created": _positive},
    "/api/show": {**_MOMENTS, "modelfile": _settings, "parameters": _settings},
}


def rules(path: str) -> Mapping[str, Rule]:
    """Return the rules for fields of a path's replies that may differ."""
    return {"created": _positive} if path.startswith("/v1/models/") else _RULES.get(path, _ALWAYS)

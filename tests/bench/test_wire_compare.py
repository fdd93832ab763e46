"""The comparer of bench/wire.py: a reply agrees with itself, and whatever is changed in what is not free is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire_compare import ANSWERS, compare
from wire_exchange import Exchange, Recording, Reply
from wire_ledger import Ledger

CORPUS = Path(__file__).resolve().parents[1] / "data" / "ollama-wire"
RECORDINGS = [Recording.read(CORPUS / name, CORPUS / "models") for name in ("exchanges.jsonl", "limits.jsonl")]
ALL = [one for recording in RECORDINGS for one in recording.exchanges if one.reply.status is not None]
KNOWN = frozenset().union(*(recording.known_digests() for recording in RECORDINGS))
At: TypeAlias = tuple[Any, ...]
# what bench/wire.py calls free, said again here: what the comparer may not be asked to tell
MOMENTS = frozenset("created_at modified_at expires_at".split())
DURATIONS = frozenset("total_duration load_duration prompt_eval_duration eval_duration".split())
WORDS = frozenset("content response".split())
WEIGHTS = frozenset("context logprobs embeddings embedding".split())


@cache
def learnt() -> Ledger:
    """What is learnt from the recordings themselves: each digest stands for itself."""
    found = Ledger(KNOWN)
    for one in ALL:
        assert compare(one, one.reply, found) == []
    return found


@pytest.fixture
def ledger() -> Ledger:
    """What a replay of these recordings has learnt in the end."""
    return learnt()


def by_n(n: int, recording: int = 0) -> Exchange:
    return next(one for one in RECORDINGS[recording].exchanges if one.n == n)


def differences(one: Exchange, reply: Reply, ledger: Ledger) -> list[str]:
    return compare(one, reply, ledger.trial())


# one change at a time


@dataclass(frozen=True)
class Part:
    """One JSON value of a reply: which line it is in (None: the whole text), and where."""

    line: int | None
    at: At
    value: Any


def documents(one: Exchange) -> list[tuple[int | None, Any]]:
    """The JSON values of a reply: of its text, or of the lines that stand for themselves."""
    if one.reply.lines is None:
        try:
            return [(None, json.loads(one.reply.text))]
        except ValueError:
            return []
    return [(at, json.loads(line)) for at, line in enumerate(one.reply.lines) if line.startswith("{")]


def parts(value: Any, at: At = ()) -> Iterator[tuple[At, Any]]:
    yield at, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from parts(inner, (*at, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:5]):
            yield from parts(inner, (*at, number))


def free(one: Exchange, part: Part) -> bool:
    """Whether the value of a part is free as such; its type and its place are not."""
    names = {name for name in part.at if isinstance(name, str)}
    last = next((name for name in reversed(part.at) if isinstance(name, str)), "")
    if names & WEIGHTS or last in MOMENTS | DURATIONS or last in ("created", "completed"):
        return True
    if one.path in ANSWERS:
        stopped = '"stop"' in one.reply.text and last in ("eval_count", "completion_tokens")
        return stopped or last in WORDS or last == "id"
    return one.path == "/api/ps" and last == "size"


def set_at(value: Any, at: At, new: Any) -> Any:
    """A copy of a JSON value with one part replaced."""
    if not at:
        return new
    if isinstance(value, dict):
        return {name: set_at(inner, at[1:], new) if name == at[0] else inner for name, inner in value.items()}
    return [set_at(inner, at[1:], new) if number == at[0] else inner for number, inner in enumerate(value)]


def with_part(one: Exchange, part: Part, new: Any) -> Reply:
    """The recorded reply with one part replaced."""
    document = dict(documents(one))[part.line]
    text = json.dumps(set_at(document, part.at, new), ensure_ascii=False, separators=(",", ":"))
    if part.line is None:
        return replace(one.reply, text=text + ("\n" if one.reply.text.endswith("\n") else ""))
    return with_lines(one.reply, [*lines_of(one)[: part.line], text, *lines_of(one)[part.line + 1 :]])


def lines_of(one: Exchange) -> Sequence[str]:
    assert one.reply.lines is not None
    return one.reply.lines


def with_lines(reply: Reply, lines: Sequence[str]) -> Reply:
    return replace(reply, lines=tuple(lines), text="\n".join((*lines, "")))


def other_type(value: Any) -> Any:
    return 7 if isinstance(value, str | type(None)) else "7"


def other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x"


def renamed(value: dict[str, Any], at: int) -> dict[str, Any]:
    return {name + "x" if number == at else name: inner for number, (name, inner) in enumerate(value.items())}


def swapped(value: dict[str, Any], at: int) -> dict[str, Any]:
    names = list(value)
    names[at], names[at - 1] = names[at - 1], names[at]
    return {name: value[name] for name in names}


def less(value: dict[str, Any], at: int) -> dict[str, Any]:
    return {name: inner for number, (name, inner) in enumerate(value.items()) if number != at}


def more(value: dict[str, Any], at: int) -> dict[str, Any]:
    items = list(value.items())
    return dict([*items[:at], ("extra", 1), *items[at:]])


FIELD_CHANGES: Sequence[Callable[[dict[str, Any], int], dict[str, Any]]] = (renamed, swapped, less, more)


class Change:
    """An exchange, its reply with one change, and which; no dataclass, whose whole content would be printed."""

    def __init__(self, one: Exchange, reply: Reply, what: str) -> None:
        self.one, self.reply, self.what = one, reply, what

    def __repr__(self) -> str:
        return f"{self.one.n} {self.one.path}: {self.what}"


@st.composite
def changed(draw: st.DrawFn) -> Change:
    """An exchange and its reply with one change in what is not free."""
    one = ALL[draw(st.integers(0, len(ALL) - 1))]
    found = [Part(line, at, value) for line, document in documents(one) for at, value in parts(document)]
    if not found or draw(st.integers(0, 9)) == 0:
        return draw(change_around(ALL.index(one)))
    part = found[draw(st.integers(0, len(found) - 1))]
    if isinstance(part.value, dict) and part.value:
        change = draw(st.sampled_from(FIELD_CHANGES))
        at = draw(st.integers(1, len(part.value) - 1)) if len(part.value) > 1 else 0
        if change is swapped and len(part.value) == 1:
            change = less
        return Change(one, with_part(one, part, change(part.value, at)), f"{change.__name__} at {part.at}")
    if isinstance(part.value, list) and part.value and not free(one, part):
        return Change(one, with_part(one, part, part.value[:-1]), f"an item less at {part.at}")
    if isinstance(part.value, dict | list) or free(one, part) or draw(st.booleans()):
        new = other_type(part.value)
    else:
        new = other_value(part.value)
    if "context" in part.at or "bytes" in part.at:  # lists of numbers: their items are looked at together
        part = replace(part, at=part.at[:-1]) if isinstance(part.at[-1], int) else part
    return Change(one, with_part(one, part, new), f"{new!r} at {part.at}")


@st.composite
def change_around(draw: st.DrawFn, place: int) -> Change:
    """A change of the status, of a header, or of the text around the values."""
    one = ALL[place]
    reply = one.reply
    assert reply.status is not None
    changes = {
        "status": replace(reply, status=reply.status + 1),
        "content type": replace(reply, headers={**reply.headers, "content-type": "text/html"}),
        "allow": replace(reply, headers={**reply.headers, "allow": "TRACE"}),
        "vary": replace(reply, headers={**reply.headers, "vary": "Accept"}),
    }
    if one.path not in ANSWERS and not one.path.endswith(("embed", "embeddings")):
        other = {
            name: text for name, text in reply.headers.items() if name not in ("content-length", "transfer-encoding")
        }
        changes["framing"] = replace(reply, headers={**other, "x-length": "1"})
        if len(other) == len(reply.headers):
            changes["framing"] = replace(reply, headers={**reply.headers, "content-length": "1"})
    if reply.lines is None:
        changes["text"] = replace(reply, text=reply.text + "x")
    elif one.cut_after is None:
        changes["last line"] = with_lines(reply, reply.lines[:-1])
        changes["one line more"] = with_lines(reply, [*reply.lines, reply.lines[-1]])
        changes["end of the stream"] = replace(reply, text=reply.text[:-1])
        changes["no end"] = replace(reply, fault="RemoteProtocolError")
    name = draw(st.sampled_from(sorted(changes)))
    return Change(one, changes[name], name)


@given(found=changed())
def test_any_change_of_what_is_not_free_is_told(found: Change) -> None:
    """A recorded reply in which one thing is changed differs from itself, whatever thing that is."""
    told = differences(found.one, found.reply, learnt())
    assert told, repr(found)


@pytest.mark.parametrize("scenario", sorted({one.scenario for one in ALL}))
def test_a_status_and_its_type_are_told_of_every_exchange(
    subtests: pytest.Subtests, scenario: str, ledger: Ledger
) -> None:
    """Each recorded exchange is compared at least in status, type and, where it has one, in its JSON's first level."""
    for one in (each for each in ALL if each.scenario == scenario):
        assert one.reply.status is not None
        with subtests.test(f"{one.scenario}-{one.n}"):
            assert differences(one, replace(one.reply, status=one.reply.status + 1), ledger)
            for line, document in documents(one)[-1:]:
                assert differences(one, with_part(one, Part(line, (), document), [document]), ledger)
                if document:
                    assert differences(one, with_part(one, Part(line, (), document), less(document, 0)), ledger)


# counts and ends


def answer(n: int, **fields: Any) -> tuple[Exchange, Reply]:
    """A recorded whole answer with other fields."""
    one = by_n(n)
    return one, replace(one.reply, text=json.dumps({**json.loads(one.reply.text), **fields}))


def test_a_prompt_is_counted_to_the_token(ledger: Ledger) -> None:
    """One token more in `prompt_eval_count` is a difference."""
    one, reply = answer(234, prompt_eval_count=58)
    assert differences(one, reply, ledger) == ["prompt_eval_count: 58 instead of 57"]


def test_an_answer_that_ran_to_its_limit_has_the_same_count(ledger: Ledger) -> None:
    """`eval_count` follows from the request where the reason is `length`."""
    one, reply = answer(234, eval_count=7)
    assert differences(one, reply, ledger) == ["eval_count: 7 instead of 8"]


def test_free_text_may_stop_by_itself_in_the_recording_only(ledger: Ledger) -> None:
    """Where the recorded words ended early ours may run to the limit; where it ran to the limit ours may not stop."""
    one = by_n(234)
    early = replace(one, reply=answer(234, done_reason="stop", eval_count=3)[1])
    assert differences(early, one.reply, ledger) == []
    assert differences(one, early.reply, ledger) == ["done_reason: 'stop' after 3 tokens instead of 'length' after 8"]


def test_an_answer_to_a_schema_has_its_keys_in_order(ledger: Ledger) -> None:
    """The words are free, the keys that a schema gives and their order are not."""
    one = by_n(328)
    message = json.loads(one.reply.text)["message"]
    alike = answer(328, message={**message, "content": '{"z": "x", "m": "x", "a": "x"}'})[1]
    other = answer(328, message={**message, "content": '{"a": "x", "m": "x", "z": "x"}'})[1]
    fewer = answer(328, message={**message, "content": '{"z": "x", "a": "x"}'})[1]
    words = answer(328, message={**message, "content": "words"})[1]
    assert differences(one, alike, ledger) == []
    assert all(differences(one, reply, ledger) for reply in (other, fewer, words))


def test_an_end_without_words_stays_without(ledger: Ledger) -> None:
    """A load, an unload and the last line of a stream say nothing; words there are a difference."""
    one, reply = answer(208, message={"role": "assistant", "content": "hello"})
    assert differences(one, reply, ledger)
    stream = by_n(233)
    last = json.loads(lines_of(stream)[-1])
    spoken = json.dumps({**last, "message": {"role": "assistant", "content": "more"}})
    assert differences(stream, with_lines(stream.reply, [*lines_of(stream)[:-1], spoken]), ledger)


def test_more_or_fewer_chunks_of_words_are_alike(ledger: Ledger) -> None:
    """How many lines a streamed answer has is a matter of its words; none at all is not."""
    one = by_n(233)
    first, *_, last = lines_of(one)
    assert differences(one, with_lines(one.reply, [first, last]), ledger) == []
    assert differences(one, with_lines(one.reply, [first, first, *lines_of(one)]), ledger) == []
    assert differences(one, with_lines(one.reply, [last]), ledger)


def test_the_tokens_of_the_prompt_come_back_as_context(ledger: Ledger) -> None:
    """`context` starts with the prompt's tokens; those of the answer are free."""
    one = by_n(325)
    tokens = json.loads(one.reply.text)["context"]
    assert differences(one, answer(325, context=[*tokens[:42], 9, 9])[1], ledger) == []
    assert differences(one, answer(325, context=[tokens[0] + 1, *tokens[1:]])[1], ledger)
    assert differences(one, answer(325, context=tokens[:20])[1], ledger)


# digests, rows and time


def test_digests_stand_for_one_another_one_to_one() -> None:
    """A digest of ours stands for one of the recording and no other; one that follows from a file is the same."""
    ledger = Ledger(frozenset({"f" * 64}))
    assert ledger.stands_for("a" * 64, "b" * 64)
    assert ledger.stands_for("a" * 64, "b" * 64)
    assert not ledger.stands_for("a" * 64, "c" * 64)
    assert not ledger.stands_for("d" * 64, "b" * 64)
    assert ledger.stands_for("f" * 64, "f" * 64)
    assert not ledger.stands_for("f" * 64, "e" * 64)
    assert not ledger.stands_for("e" * 64, "f" * 64)


def rows(n: int, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> tuple[Exchange, Reply]:
    one = by_n(n)
    return one, replace(one.reply, text=json.dumps({"models": change(json.loads(one.reply.text)["models"])}))


def test_rows_are_sorted_by_whole_seconds_and_free_within_one(ledger: Ledger) -> None:
    """Rows of one second may stand in any order; a row that was last touched later stands before and says so."""
    one, reply = rows(467, lambda found: [found[0], found[1], found[2], *reversed(found[3:])])
    assert differences(one, reply, ledger) == []
    one, reply = rows(467, lambda found: [found[1], found[0], *found[2:]])
    assert "not sorted" in differences(one, reply, ledger)[0]
    moments = {"127.0.0.1:5055/library/tiny:v1": "2026-11-21T14:32:01Z"}
    one, reply = rows(
        467, lambda found: [{**row, "modified_at": moments.get(row["name"], row["modified_at"])} for row in found]
    )
    assert any("is before" in what for what in differences(one, reply, ledger))


def test_a_row_less_or_another_is_told(ledger: Ledger) -> None:
    """The names in a list are the same."""
    assert differences(*rows(467, lambda found: found[:-1]), ledger)
    assert differences(*rows(467, lambda found: [*found[:-1], {**found[-1], "name": "other"}]), ledger)


def test_a_runner_expires_as_far_ahead_as_it_did(ledger: Ledger) -> None:
    """`expires_at` is compared as a distance from now, where the recorded clock is known."""
    one = by_n(209)
    known = ledger.trial()
    known.set_clock(by_n(208))
    assert known.clock is not None
    told = compare(one, one.reply, known)
    assert any("expires_at" in what for what in told)  # the recorded moment itself is long gone


def test_vectors_are_of_unit_length(ledger: Ledger) -> None:
    """An embedding has the recorded width and length."""
    one = by_n(350)
    document = json.loads(one.reply.text)
    vector = document["embeddings"][0]
    turned = {**document, "embeddings": [vector[::-1]]}
    longer = {**document, "embeddings": [[2 * number for number in vector]]}
    shorter = {**document, "embeddings": [vector[:-1]]}
    assert differences(one, replace(one.reply, text=json.dumps(turned)), ledger) == []
    for other in (longer, shorter):
        assert differences(one, replace(one.reply, text=json.dumps(other)), ledger)


def test_counting_lines_are_as_many_as_time_has_it(ledger: Ledger) -> None:
    """Progress may be told more or less often, but it counts up to its total, and what was there is one line."""
    one = by_n(464)
    lines = list(lines_of(one))
    assert differences(one, with_lines(one.reply, lines[:5] + lines[8:]), ledger) == []
    assert differences(one, with_lines(one.reply, [*lines[:5], lines[2], *lines[5:]]), ledger)
    there = json.dumps({**json.loads(lines[3]), "completed": 390000})
    assert differences(one, with_lines(one.reply, [*lines[:2], there, *lines[-3:]]), ledger)
    assert differences(one, with_lines(one.reply, [*lines[:1], *lines[2:]]), ledger)


def test_parameters_come_in_any_order(ledger: Ledger) -> None:
    """The lines that the daemon takes from a map may be shuffled; none may be missing."""
    one = by_n(188)
    document = json.loads(one.reply.text)
    _, *others = lines = document["parameters"].split("\n")
    shuffled = {**document, "parameters": "\n".join(reversed(lines))}
    fewer = {**document, "parameters": "\n".join(others)}
    assert differences(one, replace(one.reply, text=json.dumps(shuffled)), ledger) == []
    assert differences(one, replace(one.reply, text=json.dumps(fewer)), ledger)

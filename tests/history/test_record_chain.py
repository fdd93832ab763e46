"""The chains of records: any change, and any record that is missing, is found and named."""

from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from batos.agency.records import effect_log
from batos.history import record_chain
from batos.history.record_chain import START, Chain, ChainLink
from batos.image import roots
from batos.image.roots import JournalRoot
from batos.inference import journal
from batos.inference.journal import Entry, MissionLog, Record, canonical_bodies, chain_digest

#: What is written into a body or a field.
_VALUES = st.text(max_size=8) | st.integers(0, 99)


def written(count: int) -> JournalRoot:
    """The root of a journal with so many calls of two missions."""
    root: Any = {journal.MISSIONS: {"m-1": MissionLog(), "m-2": MissionLog()}, journal.HEAD: START}
    for number in range(count):
        mission = f"m-{number % 2 + 1}"
        record = Record(
            key=f"k{number}", mission=mission, path=f"step#{number}", model="m", digest="d",
            request={"messages": [{"content": f"ask {number}"}]}, state="done", started="2026-11-27T00:00:00Z",
            ended="2026-11-27T00:00:01Z", response={"text": f"say {number}"}, prev=root[journal.HEAD],
        )  # fmt: skip
        root[journal.HEAD] = chain_digest(record)
        root[journal.MISSIONS][mission].put(record)
    return cast("JournalRoot", root)


def entry_at(root: JournalRoot, number: int) -> Entry:
    """The call that was written so many-th."""
    found: Entry = root[journal.MISSIONS][f"m-{number % 2 + 1}"].entries[number // 2]
    return found


def test_what_was_written_is_sound() -> None:
    """In the order in which it was written."""
    chain = record_chain.read_calls(written(7))
    assert chain.find_faults() == []
    assert [each.name.rpartition("#")[2] for each in chain.links_in_order()] == [str(number) for number in range(7)]
    assert (chain.has(chain.head[:12]), chain.has("0" * 64)) == (True, False)


@given(st.integers(1, 8), st.data())
def test_a_changed_record_is_named(count: int, data: st.DataObject) -> None:
    """Whatever is changed in it: a field, a word that was asked or answered, a byte of its bodies."""
    root = written(count)
    number = data.draw(st.integers(0, count - 1))
    entry = entry_at(root, number)
    how = data.draw(st.sampled_from(("field", "body", "byte")))
    before = record_chain.read_calls(written(count))
    if how == "field":
        name = data.draw(st.sampled_from(("key", "path", "model", "digest", "started", "ended", "tokens")))
        entry.fields = {**entry.fields, name: f"{entry.fields[name]}x"}
    elif how == "body":
        record = entry.record()
        entry.become(
            Record(**{**vars_of(record), "response": {"text": f"{record.response}x"}}),
            canonical_bodies(Record(**{**vars_of(record), "response": {"text": f"{record.response}x"}})),
        )
    else:
        place = data.draw(st.integers(0, len(entry.bodies) - 1))
        changed = bytearray(entry.bodies)
        changed[place] ^= 1 << data.draw(st.integers(0, 7))
        entry.bodies = bytes(changed)
    faults = record_chain.read_calls(root).find_faults()
    same = record_chain.read_calls(root).links == before.links  # a bit of the packing that changes no word
    assert same or any(f"m-{number % 2 + 1} at " in fault for fault in faults), faults


def vars_of(record: Record) -> dict[str, Any]:
    """The fields of a record."""
    return {name: getattr(record, name) for name in Record.__slots__}


@given(st.integers(2, 9), st.data())
def test_a_record_that_is_gone_leaves_a_gap(count: int, data: st.DataObject) -> None:
    """In the middle, at the beginning, and at the end, as long as the head stands."""
    root = written(count)
    number = data.draw(st.integers(0, count - 1))
    root[journal.MISSIONS][f"m-{number % 2 + 1}"].entries.pop(number // 2)
    (fault,) = record_chain.read_calls(root).find_faults()
    assert fault.endswith("was removed")


def test_records_that_are_gone_with_their_head_are_shown_by_an_anchor_alone() -> None:
    """This is what a chain cannot find."""
    whole, cut = record_chain.read_calls(written(6)), record_chain.read_calls(written(4))
    assert cut.find_faults() == []
    assert (cut.has(whole.head), whole.has(cut.head)) == (False, True)


@given(st.lists(st.tuples(st.sampled_from(("released", "failed", "unknown")), _VALUES), max_size=8), st.data())
def test_outcomes_of_effects_are_chained_as_calls_are(steps: list[tuple[str, Any]], data: st.DataObject) -> None:
    """A line that is changed is named with its effect."""
    root: Any = {roots.EFFECT_LOG: {}, roots.EFFECT_LINES: {}}
    for number, (state, outcome) in enumerate(steps):
        effect = {"mission": "m-1", "grant": "g", "key": "k", "fingerprint": "f", "attempts": 1}
        effect_log.append_line(root, {**effect, "effect": f"e-{number}"}, state, "", {"is": outcome})
    chain = record_chain.read_effects(root)
    assert (chain.find_faults(), len(chain.links_in_order())) == ([], len(steps))
    if not steps:
        return
    number = data.draw(st.integers(1, len(steps)))
    name = data.draw(st.sampled_from(("state", "outcome", "key", "at", "attempts", "grant")))
    line = root[roots.EFFECT_LINES][number]
    root[roots.EFFECT_LINES][number] = {**line, name: "another"}
    assert any(f"e-{number - 1} " in each for each in record_chain.read_effects(root).find_faults())


@given(st.lists(st.tuples(st.text("ab", max_size=2), st.text("ab", max_size=2)), max_size=6), st.text("ab", max_size=2))
def test_no_chain_makes_the_reader_run_for_ever(links: list[tuple[str, str]], head: str) -> None:
    """A hostile one leads in circles, or names itself."""
    chain = Chain(head, [ChainLink(digest, prev, "x") for digest, prev in links])
    assert len(chain.links_in_order()) <= len(links)
    assert all(isinstance(each, str) for each in chain.find_faults())


def test_a_line_is_json() -> None:
    """Also with half a surrogate pair in it."""
    assert json.loads(record_chain.as_line({"b": 1, "a": "Grüße"})) == {"a": "Grüße", "b": 1}

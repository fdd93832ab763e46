"""Compaction: older turns become a view piece by piece; it resumes, is bounded, and never stands in the way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conversations.written_turns import exchanges, is_record, recording, write_turns
from tests.minds.conftest import Mind
from tests.minds.scripted import ask, change

from batos.conversations import compaction, conversations
from batos.conversations.compaction import FANOUT, HIGH, LOW, MOST_PIECES, Marks, summaries_to_join
from batos.conversations.summaries import RecordedPiece
from batos.image import roots
from batos.image.records import TRUST
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.evidence import Summary, Turn
from batos.protocol.errors import BatosError, NotFound, OllamaUnreachable

PLAIN = "It is so."


async def compacted(mind: Mind, name: str, selector: str = "compact_", **brief: Any) -> dict[str, Any]:
    """Send the conversation its message; the result as data."""
    message = {"receiver": name, "selector": selector}
    shown = await mind.uvm.missions.ask({"text": f"Compact {name}.", "message": message, **brief})
    result: dict[str, Any] = shown["provenance"]["message"]["result"]
    return result


def tell(mind: Mind, record: str | BatosError = "Anna Lund sealed jars.") -> None:
    """Let records be this; all else be as scripted."""
    mind.bridge.respond = recording(lambda request: record, mind.script)


def records(mind: Mind) -> list[ChatRequest]:
    """The requests for records."""
    return [request for request in mind.bridge.history if is_record(request)]


def view(mind: Mind, name: str) -> list[tuple[int, int, int]]:
    """First turn, last turn and level of each summary."""
    with mind.uvm.image.snapshot() as root:
        return [(node.first, node.last, node.level) for node in conversations.nodes(root[roots.CONVERSATIONS][name])]


async def test_older_turns_become_a_view_and_stay_as_they_are(mind: Mind) -> None:
    """The view begins at the first turn and has no gap, the newest are not in it, and all turns are still there."""
    tell(mind)
    said = exchanges(40)
    name = await write_turns(mind.uvm, said)
    told = await compacted(mind, name)
    spans = view(mind, name)
    assert told["covered"] == spans[-1][1] < 40
    assert [first for first, _, _ in spans] == [1, *(last + 1 for _, last, _ in spans[:-1])]
    page = mind.uvm.readings.turns(name, 1, 100)
    assert [(each["question"], each["answer"]) for each in page["turns"]] == said
    assert [each["turns"] for each in page["compactions"]] == [[first, last] for first, last, _ in spans]


async def test_the_view_stands_before_the_turns_in_the_next_prompt(mind: Mind) -> None:
    """The next mission is shown the summaries, marked as made by the machine, then the newest turns word for word."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(20))
    told = await compacted(mind, name)
    mind.script.woven = PLAIN
    shown = await ask(mind.uvm, "And now?", (), effort="reflex", conversation=name)
    messages = mind.bridge.history[-1].messages
    assert messages[1]["content"].startswith("This is left of the older turns")
    assert f"Summary, made by the machine, of turns 1 to {told['covered']}:" in messages[1]["content"]
    recalled = shown["provenance"]["recalled"]
    assert recalled[0] == {"turns": [1, told["covered"]], "by_model": True, "trust": "model"}
    assert [each.get("turn") for each in recalled[1:]] == list(range(told["covered"] + 1, 21))
    assert shown["provenance"]["omitted"]["turns"] == 0


async def test_an_unchanged_view_is_the_same_bytes_at_every_turn(mind: Mind) -> None:
    """From one compaction to the next a prompt begins as the one before: the runner's cache holds."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(20))
    await compacted(mind, name)
    mind.script.woven = PLAIN
    for number in range(3):
        await ask(mind.uvm, f"And {number}?", (), effort="reflex", conversation=name)
    asked = [request.messages for request in mind.bridge.history if not is_record(request)]
    for before, after in pairwise(asked):
        assert after[: len(before) - 1] == before[:-1]


sizes = st.lists(st.integers(40, 3_000), max_size=120)


@given(sizes=sizes, high=st.integers(200, 4_000), low=st.integers(50, 200))
def test_the_number_of_compactions_is_bounded_by_what_was_said(sizes: list[int], high: int, low: int) -> None:
    """Each takes more bytes of turns than lie between the marks, whatever the turns' lengths, and leaves the newest."""
    marks, covered, runs, taken = Marks(high, low), 0, 0, 0
    turns: list[Turn] = []
    for position, size in enumerate(sizes, start=1):
        turns.append(Turn(f"m-{position}", "", "a" * (size - 32), "model", position))
        target = marks.target(reversed(turns[covered:]))
        if target:
            runs += 1
            piece = sum(each.size for each in turns[covered:target])
            assert piece > high - low
            assert covered < target < position
            taken += piece
            covered = target
        left = sum(each.size for each in turns[covered:])
        assert left <= max(high, high - low + turns[-1].size)
    assert runs * (high - low) <= taken <= sum(sizes)


@given(sizes=sizes)
def test_a_target_never_loads_more_than_the_high_mark(sizes: list[int]) -> None:
    """However many turns are not covered: those that are loaded, but the newest and the last one, make no more."""
    marks, loaded = Marks(1_000, 500), 0

    def newest() -> Any:
        nonlocal loaded
        for position in range(len(sizes), 0, -1):
            loaded += 1
            yield Turn("m", "", "a" * sizes[position - 1], "model", position)

    marks.target(newest())
    seen = [Turn("m", "", "a" * size, "model").size for size in sizes[len(sizes) - loaded :]]
    assert sum(seen[1:-1]) <= 1_000


def test_the_marks_are_shares_of_the_window() -> None:
    """A fifth and a twelfth of its tokens, in bytes; a ratio that no tokenizer has is not believed."""
    assert Marks.for_window(4_096, 0.5) == Marks(4_096 * 2 // HIGH, 4_096 * 2 // LOW)
    assert Marks.for_window(4_096, 0.0) == Marks.for_window(4_096, 0.05)


@given(number=st.integers(1, 400))
def test_the_tree_is_as_deep_as_the_logarithm(number: int) -> None:
    """However many pieces: no more than FANOUT of a level, levels never rise towards the newest, the depth is small."""
    kept: list[RecordedPiece] = []
    for place in range(1, number + 1):
        kept.append(RecordedPiece(Summary(place, place, "", "model", by_model=True)))
        while (merging := summaries_to_join(kept)) is not None:
            at = kept.index(merging[0])
            whole = Summary(merging[0].piece.first, merging[-1].piece.last, "", "model", by_model=True)
            made = RecordedPiece(whole, merging[0].level + 1)
            kept[at : at + len(merging)] = [made]
    levels = [each.level for each in kept]
    assert levels == sorted(levels, reverse=True)
    assert max(levels.count(level) for level in levels) <= FANOUT
    assert FANOUT ** max(levels) <= number
    assert [each.piece.first for each in kept] == [1, *(each.piece.last + 1 for each in kept[:-1])]


async def test_pieces_are_kept_one_by_one_and_resumed(mind: Mind) -> None:
    """When the daemon goes away what was made stands; the next mission goes on there and pays nothing twice."""
    name = await write_turns(mind.uvm, exchanges(60, 800))
    made = 0

    def record(request: ChatRequest) -> str | BatosError:
        nonlocal made
        made += 1
        return OllamaUnreachable("gone") if made == 3 else "Anna Lund sealed jars."

    mind.bridge.respond = recording(record, mind.script)
    with pytest.raises(OllamaUnreachable):
        await compacted(mind, name)
    before = view(mind, name)
    assert len(before) == 2
    first = [request.messages for request in records(mind)]
    tell(mind)
    told = await compacted(mind, name)
    again = [request.messages for request in records(mind)[3:]]
    assert view(mind, name)[0][0] == 1
    assert (
        again[0] == first[2]
        or again[0][-1]["content"].split("Asked at")[0] == first[2][-1]["content"].split("Asked at")[0]
    )
    assert not {str(each) for each in first[:2]} & {str(each) for each in again}
    assert told["left"] == 0


async def test_a_mission_makes_so_many_pieces_and_says_what_is_left(mind: Mind) -> None:
    """A very long conversation is compacted by several missions, none of which is without end."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(400, 800))
    first = await compacted(mind, name)
    assert len(first["made"]) == MOST_PIECES
    assert first["left"] > 0
    assert str(first["left"]) in first["note"]
    second = await compacted(mind, name)
    assert first["covered"] + 1 in [each["turns"][0] for each in second["made"]]
    assert second["left"] < first["left"]
    spans = view(mind, name)
    assert [start for start, _, _ in spans] == [1, *(last + 1 for _, last, _ in spans[:-1])]


async def test_trust_is_the_least_of_the_turns(mind: Mind) -> None:
    """A summary of turns that rest on documents is as untrusted as they are, and so is what rests on it."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(20), trust="external")
    told = await compacted(mind, name)
    assert told["made"]
    assert [each["trust"] for each in mind.uvm.readings.turns(name)["compactions"]] == ["external"]
    shown = mind.uvm.readings.mission(mind.uvm.readings.newest(1)[0]["id"])
    assert shown["trust"]["lineage"] == "external"
    assert shown["trust"]["lineage"] in TRUST


async def test_a_short_conversation_is_never_compacted(mind: Mind) -> None:
    """With few turns nothing is due, asked for or not, and no call is made."""
    name = await write_turns(mind.uvm, exchanges(2))
    newest = mind.uvm.readings.newest(1)[0]["id"]
    with mind.uvm.image.snapshot() as root:
        assert compaction.due(root, newest) is None
    told = await compacted(mind, name)
    assert (told["made"], told["covered"]) == ([], 0)
    assert told["note"]
    assert mind.bridge.history == []


@pytest.mark.parametrize("door", ["kernel", "event"])
async def test_background_work_never_makes_one_due(mind: Mind, door: str) -> None:
    """A turn that the mind itself asked for compacts nothing; the same turn of a person does."""
    name = await write_turns(mind.uvm, exchanges(20))
    newest = mind.uvm.readings.newest(1)[0]["id"]
    with mind.uvm.image.snapshot() as root:
        brief = compaction.due(root, newest)
        assert isinstance(brief, dict)
        assert brief["message"] == {"receiver": name, "selector": "compact_"}
        assert (brief["origin"]["door"], brief["priority"], brief["user"]) == ("kernel", -9, "tester")

    def inside(root: Any) -> None:
        record = root[roots.MISSIONS][newest][0]
        record.value = {**record.value, "origin": {"door": door, "client": "latency"}}

    await change(mind.uvm, inside)
    with mind.uvm.image.snapshot() as root:
        assert compaction.due(root, newest) is None
    assert (await compacted(mind, name, origin={"door": door}))["conversation"] == name


async def test_one_at_a_time(mind: Mind) -> None:
    """While a mission is at a conversation another leaves it alone and says who has it."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(20))
    other = await mind.uvm.missions.submit({"text": "At it."})
    await mind.uvm.image.move(other, "running")
    await change(mind.uvm, lambda root: setattr(root[roots.CONVERSATIONS][name], "compacting", other))
    told = await compacted(mind, name)
    assert told["made"] == []
    assert other in told["note"]
    await mind.uvm.image.move(other, "failed", BatosError("gone"))
    assert (await compacted(mind, name))["made"]


async def test_a_question_is_not_kept_waiting(mind: Mind) -> None:
    """When somebody asks while pieces are made, the one under way is the last; what is left is told."""
    name = await write_turns(mind.uvm, exchanges(100, 800))

    def record(request: ChatRequest) -> str:
        mind.uvm.image.signals.asked.give("m-other")
        return "Anna Lund sealed jars."

    mind.bridge.respond = recording(record, mind.script)
    told = await compacted(mind, name)
    assert len(told["made"]) == 1
    assert "a question came" in told["note"]


async def test_the_view_can_be_dropped_and_made_anew(mind: Mind) -> None:
    """`recompact_` begins at the first turn again; nothing of the old view is left in prompts."""
    tell(mind, "Anna Lund sealed jars.")
    name = await write_turns(mind.uvm, exchanges(20))
    await compacted(mind, name)
    tell(mind, "Jars were sealed, said Anna Lund.")
    told = await compacted(mind, name, "recompact_")
    assert told["made"][0]["turns"][0] == 1
    assert [each["text"] for each in mind.uvm.readings.turns(name)["compactions"]] == [
        "Jars were sealed, said Anna Lund."
    ]


async def test_the_persona_of_the_newest_turn_thinks(mind: Mind) -> None:
    """Whose model is loaded records; one that is named wins."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(20))
    await compacted(mind, name)
    assert mind.told("mission.routed")[-1]["personas"] == ["BRICK"]
    await compacted(mind, name, "recompact_", persona="ROBIN")
    assert mind.told("mission.routed")[-1]["personas"] == ["ROBIN"]


async def test_only_its_user_compacts_a_conversation(mind: Mind) -> None:
    """Another user's conversation is not there, and what is no conversation says so."""
    name = await write_turns(mind.uvm, exchanges(20), user="anna")
    with pytest.raises(NotFound, match="there is no object"):
        await compacted(mind, name)
    with pytest.raises(BatosError, match="does not understand"):
        await compacted(mind, "brick_prototype_obj")

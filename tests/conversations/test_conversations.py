"""Conversations: turns are kept word for word and read by position, however many there are, by their user alone."""

from __future__ import annotations

import asyncio
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conversations.written_turns import exchanges, is_record, recording, write_turns
from tests.minds.conftest import Mind
from tests.minds.scripted import QUESTION, ask, begun, submit

from batos.conversations import conversations
from batos.image import roots
from batos.image.roots import connection_of
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.brief import parse
from batos.protocol.errors import BatosError, BriefError, NotFound

PLAIN = "It is so."
MANY, SOME = 10_000, 200
#: Objects that are loaded to find one among thousands: the path through a tree, a bucket, the three of a mission.
PATH = 24
#: Calls of a cycle without a revision or a protocol: decomposed, three facets, woven.
CALLS = 5


class Loads:
    """Counts the objects that connections have loaded when they are closed; ZODB asks for no more of a monitor."""

    def __init__(self) -> None:
        self.total = 0

    def closedConnection(self, connection: Any) -> None:  # noqa: N802 - ZODB's name
        """A connection is given back."""
        self.total += connection.getTransferCounts(True)[0]


@pytest.fixture
def plain(mind: Mind) -> Mind:
    """A mind that answers without documents."""
    mind.script.woven = PLAIN
    return mind


async def test_any_of_ten_thousand_turns_is_read_without_the_rest(plain: Mind) -> None:
    """By position from either end, word for word; what is loaded is the way there and the turn, never the others.

    A mission in such a conversation loads no more than one in a short conversation, but for the way.
    """
    said = [(f"Question {number}?", f"Answer {number}.") for number in range(1, MANY + 1)]
    long, short = await write_turns(plain.uvm, said), await write_turns(plain.uvm, said[-SOME:])
    with plain.uvm.image.snapshot() as root:
        connection = connection_of(root)
        for start, position in ((1, 1), (5_000, 5_000), (-1, MANY), (-MANY, 1), (9_999, 9_999)):
            connection.cacheMinimize()
            connection.getTransferCounts(True)
            page = conversations.page(root, long, start, 1)
            loaded, _ = connection.getTransferCounts(True)
            (turn,) = page["turns"]
            assert (turn["position"], page["count"]) == (position, MANY)
            assert (turn["question"], turn["answer"]) == said[position - 1]
            assert loaded <= PATH
    # The first mission measures the model's tokens, by which the next ones know their room.
    await ask(plain.uvm, "And now?", (), effort="reflex", conversation=short)
    loads: dict[str, int] = {}
    db: Any = plain.uvm.image.db
    for name, turns in ((short, SOME + 1), (long, MANY)):
        db.cacheMinimize()
        db.setActivityMonitor(monitor := Loads())
        shown = await ask(plain.uvm, "And now?", (), effort="reflex", conversation=name)
        loads[name] = monitor.total
        recalled = len(shown["provenance"]["recalled"])
        assert recalled + shown["provenance"]["omitted"]["turns"] == turns
        assert 0 < recalled < SOME
    assert loads[long] <= loads[short] + PATH


@hypothesis.settings(
    max_examples=20,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow],
)
@given(start=st.integers(-15, 15), limit=st.integers(1, 15))
async def test_a_page_is_a_slice(mind: Mind, start: int, limit: int) -> None:
    """Positions count from 1, negative ones from the end; a start before the first is the first; `next` goes on."""
    name = await write_turns(mind.uvm, exchanges(9, 20))
    page = mind.uvm.readings.turns(name, start, limit)
    first = max(1, 10 + start) if start < 0 else max(1, start)
    expected = list(range(first, min(9, first + limit - 1) + 1))
    assert [each["position"] for each in page["turns"]] == expected
    assert page["next"] == (expected[-1] + 1 if expected and expected[-1] < 9 else None)


async def test_a_page_of_long_turns_ends_early_and_says_where_it_goes_on(mind: Mind) -> None:
    """A page is never too long to be sent; one turn is on it whatever its length."""
    name = await write_turns(mind.uvm, [("Long?", "x" * 200_000)] * 4)
    page = mind.uvm.readings.turns(name, 1, 4)
    assert ([each["position"] for each in page["turns"]], page["next"]) == ([1], 2)


async def test_another_users_conversation_is_refused(mind: Mind) -> None:
    """Whoever is named as the reader is its user, or learns nothing of it; `last` is the reader's newest."""
    theirs = await write_turns(mind.uvm, exchanges(1), user="anna")
    mine = await write_turns(mind.uvm, exchanges(2))
    with pytest.raises(NotFound, match=r"there is no conversation .* of tester's"):
        mind.uvm.readings.turns(theirs)
    with pytest.raises(NotFound, match="there is no conversation"):
        mind.uvm.readings.turns("c-01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert mind.uvm.readings.turns("last", user="anna")["conversation"] == theirs
    assert mind.uvm.readings.turns("last")["conversation"] == mine
    with pytest.raises(NotFound, match="no conversation yet"):
        mind.uvm.readings.turns("last", user="berta")


async def test_the_newest_conversation_is_found_from_the_end(mind: Mind) -> None:
    """Older conversations are not loaded to find a user's newest."""
    names = [await write_turns(mind.uvm, exchanges(1, 20)) for _ in range(30)]
    with mind.uvm.image.snapshot() as root:
        connection = connection_of(root)
        connection.cacheMinimize()
        connection.getTransferCounts(True)
        assert conversations.newest(root, "tester") == max(names)
        assert connection.getTransferCounts(True)[0] < len(names)


# -- replies


async def test_a_reply_recalls_what_it_answers(plain: Mind) -> None:
    """Without a conversation the exchange that is replied to is recalled; in one it comes last before the question."""
    first = await ask(plain.uvm, "Where is the pier?", (), effort="reflex")
    shown = await ask(plain.uvm, "And why there?", (), effort="reflex", in_reply_to=first["id"])
    assert shown["provenance"]["recalled"] == [{"mission": first["id"], "turn": 0, "trust": "model"}]
    assert [each["content"] for each in plain.bridge.history[-1].messages[2:4]] == ["Where is the pier?", "It is so."]
    name = await write_turns(plain.uvm, exchanges(4))
    second = plain.uvm.readings.turns(name, 2, 1)["turns"][0]
    shown = await ask(plain.uvm, "Who?", (), effort="reflex", conversation=name, in_reply_to=second["mission"])
    assert [each.get("turn") for each in shown["provenance"]["recalled"]] == [1, 3, 4, 2]
    assert plain.bridge.history[-1].messages[-3]["content"] == second["question"]
    assert shown["provenance"]["omitted"]["turns"] == 0


async def test_a_reply_to_an_old_turn_is_recalled_beside_the_newest(plain: Mind) -> None:
    """However far back the turn is, it is shown, and what lies between is counted."""
    name = await write_turns(plain.uvm, exchanges(200, 400))
    meant = plain.uvm.readings.turns(name, 3, 1)["turns"][0]["mission"]
    shown = await ask(plain.uvm, "Who?", (), effort="reflex", conversation=name, in_reply_to=meant)
    turns = [each.get("turn") for each in shown["provenance"]["recalled"]]
    assert turns[-1] == 3
    assert turns[:-1] == list(range(201 - len(turns[:-1]), 201))
    assert shown["provenance"]["omitted"]["turns"] == 200 - len(turns)


async def test_a_reply_is_to_a_mission_of_ones_own_that_has_an_answer(plain: Mind) -> None:
    """What is not there, another user's, or not answered is refused, with the field that says so."""
    theirs = await ask(plain.uvm, "Mine?", (), effort="reflex", user="anna")
    waiting = await plain.uvm.missions.submit({"text": "Later?"})
    for mission in (theirs["id"], "m-01ARZ3NDEKTSV4RRFFQ69G5FAV", waiting):
        with pytest.raises((BriefError, NotFound)) as raised:
            await ask(plain.uvm, "Why?", (), effort="reflex", in_reply_to=mission)
        assert raised.value.field == "in_reply_to"


async def test_a_reply_to_what_will_never_answer_is_no_mission(plain: Mind) -> None:
    """A cancelled or failed mission cannot be waited for: the brief is refused before it is accepted."""
    gone = await plain.uvm.missions.submit({"text": "Later?"})
    await plain.uvm.missions.cancel(gone)
    count = len(plain.uvm.readings.newest())
    with pytest.raises(BriefError, match="is cancelled: it has no answer") as raised:
        await plain.uvm.missions.submit({"text": "Why?", "in_reply_to": gone})
    assert "wait" not in raised.value.remedy
    assert len(plain.uvm.readings.newest()) == count


async def test_a_reply_without_room_is_left_out(plain: Mind) -> None:
    """An exchange that is longer than the room is not cut: it is not shown, and the mission goes on."""
    name = await write_turns(plain.uvm, [("x" * 19_000, "Yes."), ("Short?", "Yes.")])
    meant = plain.uvm.readings.turns(name, 1, 1)["turns"][0]["mission"]
    shown = await ask(plain.uvm, "Why?", (), effort="reflex", conversation=name, in_reply_to=meant)
    assert [each.get("turn") for each in shown["provenance"]["recalled"]] == [2]
    assert shown["provenance"]["omitted"]["turns"] == 1


async def test_conversations_understand_messages_also_if_older_than_genesis(plain: Mind) -> None:
    """One that was begun before there was anything to delegate to is brought to it by its next turn."""
    name = await begun(plain.uvm)

    def bare(root: Any) -> None:
        conversation = root[roots.CONVERSATIONS][name]
        conversation.__dict__["_parents"] = ()
        conversation._p_changed = True

    await plain.uvm.image.writer.apply(bare)
    await ask(plain.uvm, "And now?", (), effort="reflex", conversation=name)
    lineage = plain.uvm.readings.inspect(name)["lineage"]
    assert lineage[-1] == "traits_obj"
    assert len(lineage) == 3


@pytest.mark.parametrize(
    ("effort", "who"), [("reflex", ["BABS"]), ("cycle", ["BABS", "BRICK"]), ("council", ["BABS", "BRICK"])]
)
async def test_a_turn_names_who_answered_it(plain: Mind, effort: str, who: list[str]) -> None:
    """The leader, a second voice, or a whole council."""
    name = await write_turns(plain.uvm, [("Who?", "Me.")])

    def routed(root: Any) -> None:
        conversation = roots.conversation(root, name, "tester")
        thought = root[roots.MISSIONS][conversation.turns[1]][2]
        thought.route = {**thought.route, "personas": who, "effort": effort}

    await plain.uvm.image.writer.apply(routed)
    assert [turn["personas"] for turn in plain.uvm.readings.turns(name)["turns"]] == [who]


# -- looking back a second time


def prompts(mind: Mind) -> list[str]:
    """What was paid for but the records of a compaction, a text a call."""
    return [str(request.messages) for request in mind.bridge.history if not is_record(request)]


async def paused(mind: Mind, conversation: str) -> str:
    """A mission of a conversation that is paused when its first call is paid for."""
    mission = await submit(mind.uvm, QUESTION, (), conversation=conversation)
    said = mind.bridge.respond
    asked: list[asyncio.Task[Any]] = []

    def respond(request: ChatRequest) -> str | BatosError:
        if not asked:
            asked.append(asyncio.create_task(mind.uvm.missions.pause(mission)))
        return said(request)

    mind.bridge.respond = respond
    await mind.uvm.missions.begin(mission)
    assert (await mind.uvm.missions.wait_for_end(mission))["status"] == "paused"
    await asyncio.gather(*asked)
    mind.bridge.respond = said
    return mission


async def goes_on(mind: Mind, conversation: str) -> None:
    """Another turn is answered, and the older ones are compacted."""
    await ask(mind.uvm, "What else?", (), effort="reflex", conversation=conversation)
    await write_turns(mind.uvm, exchanges(20), name=conversation)
    await mind.uvm.missions.ask({"text": "Compact.", "message": {"receiver": conversation, "selector": "compact_"}})


async def compacted(mind: Mind) -> str:
    """A conversation with a view and turns behind it."""
    mind.script.woven = PLAIN
    mind.bridge.respond = recording(lambda request: "Anna Lund sealed jars.", mind.script)
    name = await write_turns(mind.uvm, exchanges(20))
    await mind.uvm.missions.ask({"text": "Compact.", "message": {"receiver": name, "selector": "compact_"}})
    return name


async def test_a_paused_mission_looks_back_as_far_as_it_did(mind: Mind) -> None:
    """Turns and summaries that came in between are not in its prompts: the calls that were paid for are found again."""
    name = await compacted(mind)
    mission = await paused(mind, name)
    before = prompts(mind)
    await goes_on(mind, name)
    other = prompts(mind)[len(before) :]
    view = mind.uvm.readings.turns(name)["compactions"]
    await mind.uvm.missions.resume(mission)
    await mind.uvm.missions.begin(mission)
    shown = await mind.uvm.missions.wait_for_end(mission)
    paid = before + prompts(mind)[len(before) + len(other) :]
    assert shown["status"] == "done"
    assert (len(paid), len(set(paid))) == (CALLS, CALLS)
    assert (shown["cost"]["calls"], shown["cost"]["from_journal"]) == (CALLS, len(before))
    recalled: Any = shown["provenance"]["recalled"]
    assert recalled[0]["turns"][1] < view[-1]["turns"][1]
    assert recalled[-1]["turn"] == 20
    assert shown["provenance"]["omitted"]["turns"] == 0


@pytest.mark.parametrize("selector", ["compact_", "recompact_"])
async def test_a_retry_looks_back_as_far_as_its_ancestor(mind: Mind, selector: str) -> None:
    """Also when the view was made anew meanwhile; each call's prompt is the ancestor's to the byte."""
    name = await compacted(mind)
    first = await ask(mind.uvm, QUESTION, (), conversation=name)
    await goes_on(mind, name)
    mind.bridge.respond = recording(lambda request: "Anna Lund sealed some jars.", mind.script)
    await mind.uvm.missions.ask({"text": "Compact.", "message": {"receiver": name, "selector": selector}})
    before = prompts(mind)
    again = await ask(mind.uvm, QUESTION, (), conversation=name, ancestor=first["id"])
    assert prompts(mind) == before
    assert (again["cost"]["calls"], again["cost"]["from_journal"]) == (0, CALLS)
    assert again["provenance"]["recalled"] == first["provenance"]["recalled"]
    assert again["provenance"]["journal"] == first["provenance"]["journal"]


async def test_a_retry_elsewhere_or_of_another_question_looks_at_what_is_there(mind: Mind) -> None:
    """Only the same question in the same conversation keeps its ancestor's place."""
    name, other = await compacted(mind), await write_turns(mind.uvm, exchanges(3))
    first = await ask(mind.uvm, "Where?", (), effort="reflex", conversation=name)
    for text, where, turns in (("Where?", other, 3), ("Why there?", name, 21)):
        shown = await ask(mind.uvm, text, (), effort="reflex", conversation=where, ancestor=first["id"])
        assert shown["provenance"]["recalled"][-1].get("turn") == turns
        assert shown["cost"]["from_journal"] == 0


async def test_what_is_gone_from_the_image_is_not_looked_back_to(mind: Mind) -> None:
    """A noted summary that is packed away, or is another object by now, gives way to the present view."""
    name = await compacted(mind)
    brief = parse({"text": "Where?", "user": "tester", "conversation": name})
    with mind.uvm.image.snapshot() as root:
        noted = conversations.reach(root, brief).as_note()  # type: ignore[union-attr]
        (oid, digest), elsewhere = noted["view"][0], (root[roots.CONVERSATIONS][name]._p_oid or b"").hex()
        for view, last in (
            ([[oid, digest]], 7),
            ([["7f" * 8, digest]], 20),
            ([[elsewhere, digest]], 20),
            ([[oid, "other"]], 20),
        ):
            reached = conversations.reach(
                root, brief, [{}, {conversations.REACH_NOTE: {**noted, "view": view, "last": 7}}]
            )
            assert reached is not None
            assert (reached.last, reached.view) == (last, conversations.nodes(root[roots.CONVERSATIONS][name]))

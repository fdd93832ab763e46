"""Messages between methods: checked again in the kernel, nested, and seeing what was written and marked before them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.image.open_image import passed
from tests.methods.execution.method_mind import BRICK, MethodMind, methods
from tests.minds.scripted import LAMP, WINDS, ask, change

from batos.objects.prototype import UvmObject
from batos.protocol.errors import CellKilled, CovenantViolation, MethodFailed

TOTAL = """
def add_(self, amount, times=1):
    for _ in range(times):
        self.total += amount
    self._p_changed = True
    return self.total
"""
DOWN = """
def down_(self, depth):
    return 0 if depth == 0 else 1 + self.down_(depth - 1)
"""


async def test_a_message_to_a_method_gives_its_plain_result(mind: MethodMind) -> None:
    """Numbers, lists, records, nothing: as the method returned them, and as JSON where an answer is a text."""
    await mind.learn(give_="def give_(self, what, *more):\n    return {'it': what, 'more': [*more], 'none': None}\n")
    shown = await mind.send("give_", 1.5, "two", [3])
    assert shown["provenance"]["message"]["result"] == {"it": 1.5, "more": ["two", [3]], "none": None}
    assert shown["answer"].startswith("{")
    assert (shown["cost"]["calls"], methods(shown)) == (0, [("give_", "method")])
    assert shown["trust"]["lineage"] == "model"


async def test_a_facet_that_is_a_method_can_be_sent_by_itself(mind: MethodMind) -> None:
    """Its text is the answer, judged as every answer; the files of the message are its evidence."""
    await mind.learn(tamland_facet_="async def tamland_facet_(self, query):\n    return await self.infer_(query)\n")
    shown = await mind.send("tamland_facet_", "How is it wound?", files=(LAMP,))
    assert (shown["answer"], shown["provenance"]["message"]["result"]) == (f"{WINDS}.", f"{WINDS}.")
    assert WINDS in mind.bridge.history[-1].messages[1]["content"]
    assert shown["provenance"]["gate"]["ok"]
    assert shown["trust"]["lineage"] == "external"


async def test_a_method_that_writes_changes_its_receiver_and_says_what(mind: MethodMind) -> None:
    """The slot is committed with the mission, whose provenance has what it was."""
    await mind.learn(add_=TOTAL)
    await mind.write(total=1)
    shown = await mind.send("add_", 2, 3)
    assert (shown["answer"], mind.slots()["total"]) == ("7", 7)
    oid = mind.uvm.readings.inspect(BRICK)["oid"]
    assert shown["provenance"]["written"] == [{"oid": oid, "slot": "total", "had": True, "former": 1}]


async def test_keywords_reach_the_method_that_they_name(mind: MethodMind) -> None:
    """A message between methods may have them."""
    await mind.learn(add_=TOTAL, twice_="def twice_(self):\n    return self.add_(5, times=2)\n")
    await mind.write(total=0)
    assert await mind.sent("twice_") == 10


async def test_messages_nest_fifty_deep(mind: MethodMind) -> None:
    """Each waits for the next with no worker held; what came of all of them is one result."""
    await mind.learn(down_=DOWN)
    shown = await mind.send("down_", 50)
    assert shown["provenance"]["message"]["result"] == 50
    assert len(methods(shown)) == 51


async def test_deeper_than_is_allowed_is_an_error_that_says_so(mind: MethodMind) -> None:
    """The sixty-fourth method may not send to another; the error reaches the first."""
    await mind.learn(down_=DOWN)
    assert await mind.sent("down_", 63) == 63
    with pytest.raises(MethodFailed, match="nested 64 deep"):
        await mind.send("down_", 64)


async def test_a_nested_message_sees_what_was_marked_and_its_sender_sees_what_it_did(mind: MethodMind) -> None:
    """The view is read again after a message: no write is lost on either side."""
    await mind.learn(
        add_=TOTAL,
        both_="""
        def both_(self):
            self.total = 10
            self._p_changed = True
            inner = self.add_(5)
            self.total += 1
            self._p_changed = True
            return [inner, self.total]
        """,
    )
    await mind.write(total=0)
    assert await mind.sent("both_") == [15, 16]
    assert mind.slots()["total"] == 16


async def test_an_unmarked_write_at_a_message_that_runs_a_method_is_a_fault(mind: MethodMind) -> None:
    """The other method would not see it: the covenant asks for the marker first, and nothing of either is kept."""
    await mind.learn(
        add_=TOTAL,
        late_="def late_(self):\n    self.total = 10\n    self.add_(5)\n    self._p_changed = True\n",
    )
    await mind.write(total=0)
    with pytest.raises(CovenantViolation, match="is sent before the change on line 2 is marked"):
        await mind.send("late_")
    assert mind.slots()["total"] == 0


async def test_an_unmarked_write_may_wait_for_the_model(mind: MethodMind) -> None:
    """`infer_`, `recall_` and `log_` run no method: the marker may come after them."""
    await mind.learn(
        ask_="""
        async def ask_(self, query):
            self.asked = query
            self.log_("info", query)
            self.heard = await self.infer_(query)
            self._p_changed = True
        """
    )
    assert await mind.sent("ask_", "Well?") is None
    assert {**mind.slots(), "heard": ""} == {**mind.slots(), "asked": "Well?", "heard": ""}


async def test_a_method_that_fails_leaves_nothing_and_may_be_caught(mind: MethodMind) -> None:
    """What a nested method wrote before it failed is nowhere; who sent the message goes on as it likes."""
    await mind.learn(
        spoil_="def spoil_(self):\n    self.total = -1\n    self._p_changed = True\n    return 1 // 0\n",
        careful_="""
        def careful_(self):
            try:
                self.spoil_()
            except RuntimeError as problem:
                return [self.total, "ZeroDivisionError" in str(problem)]
        """,
    )
    await mind.write(total=3)
    assert await mind.sent("careful_") == [3, True]
    assert mind.slots()["total"] == 3


async def test_other_objects_answer_and_keep_what_is_theirs(mind: MethodMind) -> None:
    """A method reads the plain slots of another, and sends it messages that run with it as `self`."""
    await _friend(mind, kind="lamp", add_from=TOTAL, total=40)
    await mind.learn(
        meet_="""
        def meet_(self):
            return [self.friend.kind, self.friend.add_(2), self.friend.total]
        """
    )
    assert await mind.sent("meet_") == ["lamp", 42, 42]
    assert "total" not in mind.slots()


async def test_an_object_can_be_a_result_and_stays_a_reference(mind: MethodMind) -> None:
    """A method returns another object as what it is; in plain data that is its reference."""
    await _friend(mind, kind="lamp")
    await mind.learn(
        who_="def who_(self):\n    return self.friend\n", kind_="def kind_(self):\n    return self.who_().kind\n"
    )
    assert (await mind.sent("who_"))["$ref"].startswith("oid:0x")
    assert await mind.sent("kind_") == "lamp"


#: What cannot be sent or read, and what is said of it.
WRONG = [
    ("self.nobody_()", "does not understand 'nobody_'"),
    ("self.friend.secret_()", "does not understand"),
    ("self.friend.colour", "does not understand 'colour'"),
    ("self.facets(1)", "is a value and takes no arguments"),
    ("self.infer_('')", "its prompt is empty"),
    ("self.infer_(3)", "takes its prompt as text"),
    ("self.infer_('a', None, 'b')", "too many positional"),
    ("self.infer_('a', num_ctx=999999)", "takes no option 'num_ctx'"),
    ("self.infer_('a', temperature=9)", "takes temperature from 0.0 to 2.0"),
    ("self.recall_('a', -1)", "takes bytes from 0"),
    ("self.recall_('')", "takes a text"),
    ("self.turns_()", "does not understand"),
]


async def test_what_cannot_be_sent_says_why(mind: MethodMind) -> None:
    """Each names what is wrong with it; no model is asked."""
    await _friend(mind, kind="lamp")
    await mind.learn(**{f"try_{n}": f"def try_{n}(self):\n    return {each}\n" for n, (each, _) in enumerate(WRONG)})
    for number, (_, why) in enumerate(WRONG):
        with pytest.raises(MethodFailed, match="raised") as raised:
            await mind.send(f"try_{number}")
        assert why in raised.value.message
    assert mind.bridge.history == []


async def test_who_sends_without_end_is_stopped(mind: MethodMind) -> None:
    """Messages are counted for one method, and for all that it sets in motion."""
    await mind.learn(
        flood_="def flood_(self):\n    for _ in range(900):\n        self.name()\n",
        spread_="def spread_(self):\n    return [self.many_() for _ in range(400)]\n",
        many_="def many_(self):\n    return [self.name() for _ in range(40)]\n",
    )
    with pytest.raises(CellKilled, match="500 messages"):
        await mind.send("flood_")
    with pytest.raises(CellKilled, match="over 1000 messages"):
        await mind.send("spread_")


async def test_an_intent_that_a_method_sends_to_is_interpreted_at_its_place(mind: MethodMind) -> None:
    """One call of the persona's, under the method's own path; what it cites counts for the part."""
    await mind.learn(
        tamland_facet_="async def tamland_facet_(self, query):\n    return await self.guide_facet_('On ' + query)\n"
    )
    shown = await ask(mind.uvm)
    voice = shown["voices"][0]
    assert (voice["answer"], len(voice["citations"])) == (f"{WINDS}.", 1)
    paths = [each["path"] for each in mind.uvm.readings.prompts(shown["id"])]
    assert "brick/delegating/tamland/guide_facet#0" in paths
    assert len(set(paths)) == len(paths) == 5


async def test_another_persona_thinks_with_its_own_voice(mind: MethodMind) -> None:
    """A message to another persona's intent is interpreted as that persona."""
    await change(mind.uvm, lambda root: setattr(root[BRICK], "friend", root["robin_prototype_obj"]))
    await mind.learn(
        tamland_facet_="async def tamland_facet_(self, query):\n    return await self.friend.sage_facet_(query)\n"
    )
    shown = await ask(mind.uvm)
    (call,) = [each for each in mind.uvm.readings.prompts(shown["id"]) if "/sage_facet#" in each["path"]]
    assert "You are ROBIN" in call["messages"][-1]["content"]


async def _friend(mind: MethodMind, add_from: str = "", **slots: Any) -> None:
    """Give BRICK a friend: an object of its own, with a method if there is a source for `add_`."""

    def work(root: Any) -> None:
        friend = UvmObject(slots)
        if add_from:
            friend.add_ = passed("add_", add_from)
        root[BRICK].friend = friend

    await change(mind.uvm, work)

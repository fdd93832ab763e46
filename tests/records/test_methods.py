"""Lineages: what may become a method and what not, and that slot, revisions and ledger agree whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.image.installing import AT, CODER, candidate, install, provenance, standing
from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.image import roots
from batos.image.classes import class_factory
from batos.image.records import Lineage
from batos.image.roots import root_of
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import BatosError, NotFound, Refused
from batos.protocol.method_documents import UseDocument, no_use
from batos.records import methods, outcomes
from batos.records.erased_words import ErasedWords


def wish() -> Intent:
    """The declared one: a new object each time, because a database does not store another's."""
    return Intent("say hello", "say_(self)", name="greeting")


@pytest.fixture
def root() -> Iterator[Any]:
    """A root with its records and one object that declares two intents."""
    database = DB(MappingStorage(), class_factory=class_factory)
    connection: Connection = database.open(transaction.TransactionManager())
    found = root_of(connection)
    roots.prepare(found)
    found["traits_obj"] = UvmObject({"name": "TRAITS", "say_": wish(), "ask_": Intent("ask why")})
    connection.transaction_manager.commit()
    yield found
    connection.transaction_manager.abort()
    connection.close()
    database.close()


def lineage_of(root: Any, selector: str = "say_") -> Lineage:
    """What was made for a slot of the one object."""
    found = methods.lineage_of(root, root["traits_obj"], selector)
    assert found is not None
    return found


def used(revision: int, *, control: bool = False, fault: bool = False, seconds: float = 0.5) -> UseDocument:
    """A use as a mission tells it."""
    return UseDocument(
        mission="m-1",
        revision=revision,
        outcome="fault" if fault else "ok",
        control=control,
        seconds=seconds,
        tokens=10,
        calls=1,
        gate_faults=0,
    )


def test_a_candidate_becomes_the_slots_method(root: Any) -> None:
    """What is installed is in the slot, with everything that was known of it, as revision 1."""
    holder = root["traits_obj"]
    made = install(root, holder, "say_", "one", provenance=provenance(missions=["m-7"]))
    assert own_slots(holder)["say_"] is made is lineage_of(root).revisions[1]
    assert (made.selector, made.source, made.intent, made.revision) == ("say_", "one", "say hello", 1)
    assert made.provenance["missions"] == ["m-7"]
    assert made.provenance["intent"] == methods.digest_of(wish())
    assert made.verdict["digest"] == made.provenance["digest"]
    assert made.checks[0]["result"] == 1
    assert lineage_of(root).history[1] == {
        "event": "installed",
        "at": AT,
        "by": "g-1",
        "reason": "generated",
        "revision": 1,
        "former": 0,
        "barred": None,
        "since": no_use(),
    }


def test_a_former_revision_stays_readable(root: Any) -> None:
    """A second method takes the first one's place, and both are there."""
    install(root, root["traits_obj"], "say_", "one")
    install(root, root["traits_obj"], "say_", "two", provenance=provenance(by="tester", approval="a-1"))
    lineage = lineage_of(root)
    assert [each.source for each in lineage.revisions.values()] == ["one", "two"]
    assert (lineage.active, root["traits_obj"].say_.source) == (2, "two")
    assert lineage.history[2]["former"] == 1
    assert (lineage.history[2]["by"], lineage.history[2]["reason"]) == ("tester", "redefined, approved as a-1")


def test_the_same_method_twice_is_one_revision(root: Any) -> None:
    """A generation that is told twice, as after a crash, installs once."""
    first = install(root, root["traits_obj"], "say_", "one")
    assert install(root, root["traits_obj"], "say_", "one") is first
    assert (len(lineage_of(root).revisions), len(lineage_of(root).history)) == (1, 1)


@pytest.mark.parametrize(
    ("also", "why", "field"),
    [
        ({"verdict": {"accepted": False, "digest": None}}, "another source", "digest"),
        ({"verdict": {"accepted": True, "digest": "0" * 64}}, "another source", "digest"),
        ({"provenance": {"trust": "model"}}, "lacks generation, missions", "provenance"),
        ({"provenance": provenance(trust="friendly")}, "a trust class", "provenance"),
        ({"provenance": provenance(trust="external")}, "nobody approved", "trust"),
        ({"intent": "0" * 64}, "another than this method was made from", "intent"),
    ],
)
def test_what_may_be_no_method_is_refused(root: Any, also: dict[str, Any], why: str, field: str) -> None:
    """Only an accepted verdict on exactly this source, whole provenance and the slot's own intent let it in."""
    with pytest.raises(Refused, match=why) as refused:
        install(root, root["traits_obj"], "say_", "one", **also)
    assert refused.value.field == field
    assert refused.value.remedy
    assert isinstance(root["traits_obj"].say_, Intent)
    assert len(root[roots.METHODS]) == 0


def test_a_verdict_that_rejects_is_refused(root: Any) -> None:
    """The digest alone does not help: the guardian must have accepted it."""
    one = candidate(root["traits_obj"], "say_", wish(), "one")
    rejected = candidate(root["traits_obj"], "say_", wish(), "one", verdict={**one.verdict, "accepted": False})
    with pytest.raises(Refused, match="did not accept"):
        methods.install(root, rejected, AT)


def test_external_with_an_approval_is_installed(root: Any) -> None:
    """A person said yes to exactly this."""
    install(root, root["traits_obj"], "say_", "one", provenance=provenance(trust="external", approval="a-1"))
    assert root["traits_obj"].say_.provenance["approval"] == "a-1"


@pytest.mark.parametrize("holder", ["brick_prototype_obj", "oid:0x7777", "oid:nonsense", "m-1"])
def test_a_holder_that_is_not_there(root: Any, holder: str) -> None:
    """Only an object of the image holds methods."""
    with pytest.raises(NotFound, match="no object"):
        methods.install(root, candidate(holder, "say_", wish(), "one"), AT)


@pytest.mark.parametrize("selector", ["name", "absent_"])
def test_a_slot_without_an_intent_takes_no_method(root: Any, selector: str) -> None:
    """Data is not written over, and nothing undeclared comes to be."""
    with pytest.raises(Refused, match="no declared intent"):
        methods.install(root, candidate(root["traits_obj"], selector, wish(), "one"), AT)


def test_a_new_wish_takes_the_old_ones_place(root: Any) -> None:
    """A redefinition with a wish of its own is what the slot holds when its method goes."""
    install(root, root["traits_obj"], "say_", "one")
    install(root, root["traits_obj"], "say_", "two", wish={"text": "say goodbye"})
    lineage = lineage_of(root)
    former = lineage.history[2]["former_intent"]
    methods.retire(lineage, "tried enough", AT)
    assert (root["traits_obj"].say_.text, root["traits_obj"].say_.name) == ("say goodbye", "greeting")
    assert former.text == "say hello"


def test_a_retired_method_is_not_made_again(root: Any) -> None:
    """Not by the same coder for the same wish; by another coder, or for another wish, it may be."""
    holder = root["traits_obj"]
    install(root, holder, "say_", "one")
    assert not methods.bar_reason(holder, "say_", CODER)
    methods.retire(lineage_of(root), "it failed 4 of 5 times", AT)
    assert lineage_of(root).retired == {1: {"at": AT, "reason": "it failed 4 of 5 times"}}
    assert methods.bar_reason(holder, "say_", CODER) == "it failed 4 of 5 times"
    assert not methods.bar_reason(holder, "say_", "another coder")
    assert not methods.bar_reason(holder, "ask_", CODER)
    methods.redeclare(root, holder, "say_", Intent("say hello twice"), AT)
    assert not methods.bar_reason(holder, "say_", CODER)


def test_an_intent_put_back_by_a_person_stays(root: Any) -> None:
    """Whichever coder would try: until the wish changes or a revision is brought back."""
    holder = root["traits_obj"]
    install(root, holder, "say_", "one")
    methods.restore(root, lineage_of(root), 0, AT, "tester")
    assert isinstance(own_slots(holder)["say_"], Intent)
    assert lineage_of(root).history[2]["reason"] == "the intent took the place of revision 1"
    assert methods.bar_reason(holder, "say_", "any coder")
    methods.restore(root, lineage_of(root), 1, AT, "tester")
    assert own_slots(holder)["say_"].source == "one"


def test_retired_before_does_not_count_twice(root: Any) -> None:
    """A revision that is brought back is judged by what it does from then on."""
    install(root, root["traits_obj"], "say_", "one")
    lineage = lineage_of(root)
    for _ in range(3):
        methods.use(lineage, used(1, fault=True))
    methods.retire(lineage, "it failed", AT)
    methods.restore(root, lineage, 1, AT, "tester")
    assert lineage.since == lineage.totals[1]
    assert lineage.retired == {}
    assert lineage.history[3]["former"] == 0


def test_a_wish_comes_back_with_its_method(root: Any) -> None:
    """Who rolls a redefinition back has its wish undone too, unless the codex has said something else since."""
    holder = root["traits_obj"]
    install(root, holder, "say_", "one")
    install(root, holder, "say_", "two", wish={"text": "say goodbye"})
    lineage = lineage_of(root)
    methods.restore(root, lineage, 1, AT, "tester")
    assert lineage.intent is not None
    assert lineage.intent.text == "say hello"
    methods.restore(root, lineage, 2, AT, "tester")
    assert lineage.intent.text == "say goodbye"
    methods.redeclare(root, holder, "say_", Intent("say nothing"), AT)
    methods.restore(root, lineage, 1, AT, "tester")
    assert lineage.intent.text == "say nothing"


def test_what_was_there_before_is_written_down(root: Any) -> None:
    """Every change of a slot says what an undo would put back: revision, wish, bar, retirement, start of counting."""
    holder = root["traits_obj"]
    install(root, holder, "say_", "one")
    lineage = lineage_of(root)
    methods.use(lineage, used(1))
    before = lineage.intent
    install(root, holder, "say_", "two", wish={"text": "say goodbye"})
    methods.retire(lineage, "it failed", AT)
    bar = lineage.barred
    methods.restore(root, lineage, 2, AT, "tester")
    two, gone, back = (lineage.history[number] for number in (2, 3, 4))
    assert (two["former"], two["former_intent"], two["since"]) == (1, before, no_use())
    assert gone["former"] == 2
    assert (back["former"], back["barred"], back["retired"]) == (0, bar, {"at": AT, "reason": "it failed"})


def test_an_undeclared_slot_goes_and_its_methods_stay(root: Any) -> None:
    """What the codex declares no more answers nothing; its lineage is still read, and takes up when it is declared."""
    holder = root["traits_obj"]
    install(root, holder, "say_", "one")
    assert methods.redeclare(root, holder, "say_", None, AT) == 1
    assert "say_" not in own_slots(holder)
    assert lineage_of(root).revisions[1].source == "one"
    with pytest.raises(Refused, match="no declared intent"):
        methods.restore(root, lineage_of(root), 1, AT, "tester")
    again = wish()
    methods.redeclare(root, holder, "say_", again, AT)
    assert holder.say_ is again


def test_what_nothing_was_made_for_is_left_alone(root: Any) -> None:
    """A changed declaration of a slot without a lineage is genesis' own business."""
    assert methods.redeclare(root, root["traits_obj"], "say_", None, AT) == 0
    assert root["traits_obj"].say_.text == "say hello"


@pytest.mark.parametrize("put", ["another", "nothing"])
def test_a_slot_that_somebody_wrote_into_is_put_right(root: Any, put: str) -> None:
    """Where the slot is not what the lineage says, the active revision can be put there again."""
    holder = root["traits_obj"]
    former = install(root, holder, "say_", "one")
    active = install(root, holder, "say_", "two")
    if put == "another":
        holder.say_ = former
    else:
        del holder.say_
    assert not lineage_of(root).is_sound()
    methods.restore(root, lineage_of(root), 2, AT, "tester")
    assert holder.say_ is active
    assert lineage_of(root).is_sound()


@pytest.mark.parametrize(("revision", "error"), [(3, NotFound), (-1, NotFound), (1, Refused)])
def test_what_cannot_be_restored(root: Any, revision: int, error: type[BatosError]) -> None:
    """A revision that there is not, and the one that is active."""
    install(root, root["traits_obj"], "say_", "one")
    with pytest.raises(error) as raised:
        methods.restore(root, lineage_of(root), revision, AT, "tester")
    assert raised.value.field == "revision"


def test_lineages_of_one_object_only(root: Any) -> None:
    """Objects whose references begin alike are told apart."""
    holder = root["traits_obj"]
    install(root, holder, "say_", "one")
    install(root, holder, "ask_", "two")
    root[roots.METHODS][f"{reference(holder)}0 say_"] = Lineage(holder, "say_", wish())
    assert [each.selector for each in methods.lineages_of(root, holder)] == ["ask_", "say_"]


def test_uses_of_no_revision_are_left_out(root: Any) -> None:
    """A mission may tell of a revision that this image never had: it counts for nothing."""
    install(root, root["traits_obj"], "say_", "one")
    methods.use(lineage_of(root), used(2))
    assert len(lineage_of(root).ledger) == len(lineage_of(root).totals) == 0


class Life(RuleBasedStateMachine):
    """Two slots of one object through everything that may happen to them, with a commit after each step."""

    slots = st.sampled_from(["say_", "ask_"])

    @initialize()
    def begin(self) -> None:
        """A new image with two declared intents."""
        self.database = DB(MappingStorage(), class_factory=class_factory)
        self.connection = self.database.open(transaction.TransactionManager())
        self.root = root_of(self.connection)
        roots.prepare(self.root)
        self.root["traits_obj"] = UvmObject({"say_": wish(), "ask_": Intent("ask why")})
        #: What was ever installed, by slot and revision, and how far history and ledger had come.
        self.made: dict[tuple[str, int], str] = {}
        self.told: dict[str, list[Any]] = {}
        self.commit()

    def teardown(self) -> None:
        """Give the connection back."""
        if hasattr(self, "connection"):
            self.connection.transaction_manager.abort()
            self.connection.close()
            self.database.close()

    def commit(self) -> None:
        """Commit, and keep nothing in memory."""
        self.connection.transaction_manager.commit()
        self.connection.cacheMinimize()
        self.holder = self.root["traits_obj"]

    def lineage(self, slot: str) -> Lineage | None:
        """What was made for the slot."""
        return methods.lineage_of(self.root, self.holder, slot)

    @rule(slot=slots, number=st.integers(0, 5), text=st.none() | st.text(max_size=3))
    def install(self, slot: str, number: int, text: str | None) -> None:
        """Some source, perhaps one that was there before, with a wish of its own or without."""
        if slot not in own_slots(self.holder):
            return
        new = None if text is None else {"text": text}
        made = install(self.root, self.holder, slot, f"source {number}", wish=new)
        self.made.setdefault((slot, made.revision), made.source)
        self.commit()

    @rule(slot=slots, revision=st.integers(0, 4), control=st.booleans(), fault=st.booleans(), cost=st.floats(0, 9))
    def use(self, slot: str, revision: int, control: bool, fault: bool, cost: float) -> None:
        """A use, also of a revision that is not active or not there."""
        lineage = self.lineage(slot)
        if lineage is not None:
            methods.use(lineage, used(revision, control=control, fault=fault, seconds=cost))
            self.commit()

    @rule(slot=slots)
    def retire(self, slot: str) -> None:
        """What is active goes, if anything is."""
        lineage = self.lineage(slot)
        if lineage is not None:
            methods.retire(lineage, "it failed", AT)
            self.commit()

    @rule(slot=slots, revision=st.integers(0, 4))
    def restore(self, slot: str, revision: int) -> None:
        """A person asks for some revision, which may not be there."""
        lineage = self.lineage(slot)
        if lineage is None:
            return
        may = slot in own_slots(self.holder) and revision != lineage.active and revision <= len(lineage.revisions)
        try:
            methods.restore(self.root, lineage, revision, AT, "tester")
            assert may
        except (NotFound, Refused):
            assert not may
            self.connection.transaction_manager.abort()
        self.commit()

    @rule(slot=slots, text=st.none() | st.text(max_size=2))
    @precondition(lambda self: len(self.root[roots.METHODS]) > 0)
    def declare(self, slot: str, text: str | None) -> None:
        """The codex changes, or drops, a declaration."""
        if self.lineage(slot) is not None:
            methods.redeclare(self.root, self.holder, slot, None if text is None else Intent(text), AT)
            self.commit()

    @invariant()
    def the_slot_is_what_the_lineage_says(self) -> None:
        """Exactly the active revision, else the intent, else, undeclared, nothing."""
        for lineage in self.root[roots.METHODS].values():
            value = own_slots(self.holder).get(lineage.selector)
            assert value is (lineage.revisions[lineage.active] if lineage.active else lineage.intent)
            assert lineage.active not in lineage.retired
            if isinstance(value, Method):
                assert standing(self.root, self.holder, lineage.selector) is lineage.intent

    @invariant()
    def every_revision_is_readable(self) -> None:
        """Under the number and with the source that it was installed with."""
        for (slot, number), source in self.made.items():
            lineage = self.lineage(slot)
            assert lineage is not None
            assert (lineage.revisions[number].source, lineage.revisions[number].revision) == (source, number)

    @invariant()
    def the_totals_are_the_ledgers(self) -> None:
        """Counted again from the entries, they are the same, and those of the active revision never shrink."""
        for lineage in self.root[roots.METHODS].values():
            assert dict(lineage.totals) == outcomes.totals_of(outcomes.entries(lineage.ledger))
            now = lineage.totals.get(lineage.active) or no_use()
            for counts, since in ((now["method"], lineage.since["method"]), (now["control"], lineage.since["control"])):
                assert all(counts[name] >= since[name] for name in outcomes.COUNTED)

    @invariant()
    def history_only_grows(self) -> None:
        """What was written down stays, and each entry begins where the one before it ended."""
        for lineage in self.root[roots.METHODS].values():
            entries = [
                {key: value for key, value in each.items() if key != "former_intent"}
                for each in lineage.history.values()
            ]
            before = self.told.get(lineage.selector, [])
            assert entries[: len(before)] == before
            assert [each["former"] for each in entries] == [0, *(each["revision"] for each in entries[:-1])]
            assert entries[-1]["revision"] == lineage.active
            self.told[lineage.selector] = entries


TestLife = Life.TestCase
TestLife.settings = settings(stateful_step_count=25)


def test_an_erased_revision_is_never_active_again(root: Any) -> None:
    """Its source is gone, and the digest of it stays."""
    holder = root["traits_obj"]
    first = install(root, holder, "say_", "one")
    install(root, holder, "say_", "two")
    digest = first.provenance["digest"]
    methods.erase(first, ErasedWords(["one"]), AT)
    assert (first.source, first.provenance["digest"], first.checks) == (methods.NO_SOURCE, digest, ())
    with pytest.raises(Refused, match="is erased"):
        methods.restore(root, lineage_of(root), 1, AT, "tester")

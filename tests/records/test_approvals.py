"""Approvals in the image: what was asked is what is installed, once, and only by a yes that came in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest
import transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.image import installing
from tests.image.questions import AFTER, AT, LATER, NAME, UNTIL, asking, made
from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.classes import class_factory
from batos.image.records import Approval, ApprovalWord
from batos.image.roots import root_of
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import ApprovalNeeded, NotFound, OllamaUnreachable, Refused
from batos.records import approvals, methods
from batos.records.approvals import ApprovalState
from batos.verbs.approval_verbs import ApprovalsArgs

SOURCE = "def say_(self):\n    return 'hello'\n"


def wish() -> Intent:
    """The declared one: a new object each time, because a database does not store another's."""
    return Intent("say hello", "say_(self)")


def opened(database: DB) -> Connection:
    """A connection to a prepared image with one object that declares two intents."""
    connection: Connection = database.open(transaction.TransactionManager())
    root = root_of(connection)
    if roots.prepare(root):
        root["traits_obj"] = UvmObject({"name": "TRAITS", "say_": wish(), "ask_": Intent("ask why")})
        connection.transaction_manager.commit()
    return connection


@pytest.fixture
def root() -> Iterator[Any]:
    """A root with its records and the one object."""
    database = DB(MappingStorage(), class_factory=class_factory)
    connection = opened(database)
    yield root_of(connection)
    connection.transaction_manager.abort()
    connection.close()
    database.close()


def candidate(source: str = SOURCE, selector: str = "say_", **also: Any) -> Any:
    """A method for a slot of the one object."""
    return made("traits_obj", selector, wish() if selector == "say_" else Intent("ask why"), source, **also)


def ask(root: Any, source: str = SOURCE, mission: str | None = None, name: str = NAME, at: str = AT) -> ApprovalState:
    """A question about a source for `say_`."""
    return approvals.ask(root, asking(candidate(source), mission, name, at))


def approved(root: Any, name: str = NAME, at: str = LATER) -> ApprovalState:
    """A yes, from Ada."""
    found = approvals.approve(root, name, "ada", at)
    assert found is not None
    return found


def slot(root: Any) -> Any:
    """What `say_` holds."""
    return own_slots(root["traits_obj"])["say_"]


def test_what_is_asked_changes_nothing_but_the_questions(root: Any) -> None:
    """The slot still holds its intent; the question is open, under its id, for whoever waits."""
    answer = ask(root, mission="m-1")
    assert (answer.name, answer.word, answer.missions, answer.changed) == (NAME, "asked", ("m-1",), True)
    assert answer.object == "traits_obj"
    assert isinstance(slot(root), Intent)
    assert list(root[roots.AWAITED]) == [NAME]


def test_a_yes_installs_exactly_what_was_asked(root: Any) -> None:
    """The source is the slot's method; it says who let it in, and the question is answered."""
    ask(root)
    answer = approved(root)
    method = slot(root)
    assert (answer.word, answer.by, answer.revision, answer.changed) == ("approved", "ada", 1, True)
    assert isinstance(method, Method)
    assert (method.source, method.provenance["approval"], method.provenance["approved_by"]) == (SOURCE, NAME, "ada")
    assert not root[roots.AWAITED]


def test_the_same_question_is_asked_once(root: Any) -> None:
    """Several missions that need the same source wait for one answer, whichever name its holder goes by."""
    ask(root, mission="m-1")
    by_number = replace(candidate(), holder=reference(root["traits_obj"]))
    answer = approvals.ask(root, asking(by_number, "m-2", f"{NAME[:-1]}B"))
    again = ask(root, mission="m-2")
    assert (answer.name, answer.missions, answer.changed) == (NAME, ("m-1", "m-2"), False)
    assert again.missions == ("m-1", "m-2")
    assert len(root[roots.APPROVALS]) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"source": "def say_(self):\n    return 'hi'\n"},
        {"selector": "ask_"},
        {"intent": "0" * 64},
        {"wish": {"text": "say it louder"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_anything_else_asks_again(root: Any, other: dict[str, Any]) -> None:
    """A yes to one source, slot, intent and wish is none to another."""
    ask(root)
    if "selector" in other:
        changed = candidate(selector="ask_")
    elif "source" in other:
        changed = candidate(other["source"])
    else:
        changed = replace(candidate(), **other)
    answer = approvals.ask(root, asking(changed, None, f"{NAME[:-1]}B"))
    assert (answer.name, answer.word, answer.changed) == (f"{NAME[:-1]}B", "asked", True)


def test_another_active_revision_asks_again(root: Any) -> None:
    """What a yes was asked for is to take the place of what was active then."""
    ask(root)
    installing.install(root, root["traits_obj"], "say_", "def say_(self):\n    return 'hey'\n")
    assert ask(root, name=f"{NAME[:-1]}B").name == f"{NAME[:-1]}B"
    answer = approved(root)
    assert (answer.word, answer.by) == ("outdated", None)
    assert "revision 1 is active" in str(answer.why)
    assert slot(root).revision == 1
    assert approved(root, f"{NAME[:-1]}B").revision == 2


def test_a_yes_is_used_up(root: Any) -> None:
    """A second one changes nothing; and where the method was taken out again, it is asked anew."""
    ask(root, mission="m-1")
    approved(root)
    again = approved(root, at=UNTIL)
    assert (again.word, again.changed, again.by) == ("approved", False, "ada")
    lineage = methods.lineage_of(root, root["traits_obj"], "say_")
    assert lineage is not None
    assert len(lineage.revisions) == 1
    methods.restore(root, lineage, 0, LATER, "ada")
    assert ask(root, mission="m-1", name=f"{NAME[:-1]}B", at=LATER).word == "asked"


def test_who_asks_what_is_active_already_needs_no_answer(root: Any) -> None:
    """A mission of an older snapshot learns that it was approved, under which id, and nothing is asked."""
    ask(root)
    approved(root)
    late = ask(root, mission="m-9", name=f"{NAME[:-1]}B", at=LATER)
    assert (late.name, late.word, late.changed) == (NAME, "approved", False)
    assert list(root[roots.APPROVALS]) == [NAME]


def test_after_its_time_a_question_is_no_more(root: Any) -> None:
    """It is shown as expired before anybody wrote that down, cannot be approved, and is asked anew by others."""
    ask(root, mission="m-1")
    assert root[roots.APPROVALS][NAME].word_at(UNTIL) == "expired"
    late = approved(root, at=UNTIL)
    assert (late.word, late.changed) == ("expired", False)
    assert isinstance(slot(root), Intent)
    assert not root[roots.AWAITED]
    assert ask(root, mission="m-1", name="a-other", at=AFTER).name == NAME  # who waited is told
    assert ask(root, mission="m-2", name=f"{NAME[:-1]}B", at=AFTER).name == f"{NAME[:-1]}B"


def test_expiring_is_written_once_and_in_its_time(root: Any) -> None:
    """Before its time it is nothing; then it is written; then there is nothing more to write."""
    ask(root)
    assert approvals.expire(root, NAME, LATER) is None
    answer = approvals.expire(root, NAME, UNTIL)
    assert answer is not None
    assert (answer.word, answer.changed) == ("expired", True)
    assert approvals.expire(root, NAME, AFTER) is None
    assert approvals.expire(root, "a-none", AFTER) is None


def test_a_no_stands_for_a_while(root: Any) -> None:
    """Whoever asks the same is told so until it lapses, who waited also then; the source is never installed by it."""
    ask(root, mission="m-1")
    answer = approvals.reject(root, NAME, "ada", "too loud", (LATER, UNTIL))
    assert answer is not None
    assert (answer.word, answer.by, answer.why) == ("rejected", "ada", "too loud")
    assert ask(root, mission="m-2", name="a-other", at=LATER).word == "rejected"
    assert ask(root, name=f"{NAME[:-1]}B", at=UNTIL).name == f"{NAME[:-1]}B"
    assert approved(root).word == "rejected"
    again = approvals.reject(root, NAME, "eve", "why not", (LATER, UNTIL))
    assert again is not None
    assert (again.by, again.changed) == ("ada", False)
    assert isinstance(slot(root), Intent)


def test_a_question_about_a_slot_is_found_whatever_its_source(root: Any) -> None:
    """So that nothing is generated while a candidate waits; another intent is another slot."""
    digest = methods.digest_of(wish())
    assert approvals.last_question(root, "traits_obj", "say_", digest, AT, None) is None
    ask(root)
    found = approvals.last_question(root, "traits_obj", "say_", digest, AT, "m-3")
    assert found is not None
    assert (found.name, found.missions) == (NAME, ("m-3",))
    assert approvals.last_question(root, "traits_obj", "say_", "0" * 64, AT, None) is None
    assert approvals.last_question(root, "traits_obj", "ask_", digest, AT, None) is None
    with pytest.raises(NotFound):
        approvals.last_question(root, "oid:0xffff", "say_", digest, AT, None)


def test_what_was_last_said_of_a_source(root: Any) -> None:
    """Asked and not answered is something else than never asked."""
    digest = candidate().digest

    def said(at: str, digest: str = digest) -> str | None:
        answer = approvals.last_answer(root, "traits_obj", "say_", digest, at)
        return None if answer is None else answer.word

    assert said(AT) is None
    ask(root)
    assert said(AT) == "asked"
    assert said(UNTIL) == "expired"
    approved(root)
    assert said(LATER) == "approved"
    assert said(AT, "0" * 64) is None


def test_a_source_that_is_not_its_digest_is_never_installed(root: Any) -> None:
    """Whoever changes what lies there has changed what was asked about."""
    ask(root)
    approval: Approval = root[roots.APPROVALS][NAME]
    approval.candidate = {**approval.candidate, "source": "def say_(self):\n    return 'other'\n"}
    assert approved(root).word == "outdated"
    assert isinstance(slot(root), Intent)


def test_a_yes_is_no_word_against_the_guardian_of_today(root: Any) -> None:
    """What was accepted under another policy is audited again: installed with the new verdict, or outdated with why."""
    ask(root)
    assert approved(root).word == "approved"
    assert slot(root).verdict["policy"] == SHIPPED.version
    hostile = "def ask_(self):\n    return self.__class__\n"
    question = asking(candidate(hostile, "ask_"), None, f"{NAME[:-1]}B")
    approvals.ask(root, question)
    answer = approved(root, question.name)
    assert answer.word == "outdated"
    assert "line 2" in str(answer.why)
    assert isinstance(own_slots(root["traits_obj"])["ask_"], Intent)


def test_what_comes_from_outside_needs_a_yes(root: Any) -> None:
    """Whatever the policy says: by itself it is refused, with a person's word it is installed."""
    external = replace(candidate(), provenance=installing.provenance(trust="external"))
    with pytest.raises(Refused, match="nobody approved it"):
        methods.install(root, external, AT)
    approvals.ask(root, asking(external))
    assert approved(root).word == "approved"
    assert slot(root).provenance["trust"] == "external"


def test_an_object_that_is_gone_takes_no_method(root: Any) -> None:
    """The question is outdated, and says why; so is one whose intent has changed."""
    ask(root)
    root[roots.APPROVALS][NAME].candidate["holder"] = "oid:0xffff"
    gone = approved(root)
    assert gone.word == "outdated"
    assert "no object" in str(gone.why)
    ask(root, name=f"{NAME[:-1]}B")
    root["traits_obj"].say_ = Intent("say goodbye")
    changed = approved(root, f"{NAME[:-1]}B")
    assert changed.word == "outdated"
    assert "intent" in str(changed.why)
    assert isinstance(slot(root), Intent)


def test_nothing_is_answered_that_was_not_asked(root: Any) -> None:
    """There is no such id, whoever says yes or no."""
    assert approvals.approve(root, "a-none", "ada", AT) is None
    assert approvals.reject(root, "a-none", "ada", "no", (AT, UNTIL)) is None


def test_a_mission_waits_as_long_as_any_question_that_it_names(root: Any) -> None:
    """Only a reason of that code names questions; what is answered is awaited no more."""
    ask(root)
    other = approvals.ask(root, asking(candidate(selector="ask_"), None, f"{NAME[:-1]}B"))
    reason = ApprovalNeeded("It asks.", NAME, others=(other.name,)).as_dict()
    assert approvals.is_waiting(root, reason)
    approved(root)
    assert approvals.is_waiting(root, reason)
    approvals.reject(root, other.name, "ada", "no", (LATER, UNTIL))
    assert not approvals.is_waiting(root, reason)
    assert not approvals.is_waiting(root, OllamaUnreachable("It is away.").as_dict())
    assert not approvals.is_waiting(root, None)


def test_the_words_are_the_same_everywhere() -> None:
    """What an image writes, a request may ask for; the command line offers the choices of the request."""
    for word in get_args(ApprovalWord):
        assert ApprovalsArgs.model_validate({"status": word}).status == word


class Questions(RuleBasedStateMachine):
    """Anybody asks, answers, lets time pass, retires and restarts in any order: the law of what becomes a method."""

    SOURCES = tuple(f"def say_(self):\n    return {number}\n" for number in range(3))

    def __init__(self) -> None:
        super().__init__()
        self.storage = MappingStorage()
        self.day = 1
        self.count = 0
        #: id -> (source, day of asking) of every question that was made.
        self.made: dict[str, tuple[str, int]] = {}
        #: ids that got a yes which counted, in order.
        self.yes: list[str] = []
        self.no: set[str] = set()

    @initialize()
    def open(self) -> None:
        """A new image."""
        self.database = DB(self.storage, class_factory=class_factory)
        self.connection = opened(self.database)

    @property
    def root(self) -> Any:
        return root_of(self.connection)

    def at(self, day: int) -> str:
        return f"2026-12-{day:02}T00:00:00.000Z"

    def active(self) -> Method | None:
        value = slot(self.root)
        return value if isinstance(value, Method) else None

    @rule(source=st.sampled_from(SOURCES), mission=st.sampled_from([None, "m-1", "m-2"]))
    def ask(self, source: str, mission: str | None) -> None:
        """A question is new, or is one that was asked about exactly this source."""
        self.count += 1
        name = f"a-{self.count:026}"
        question = asking(candidate(source), mission, name, self.at(self.day))
        answer = approvals.ask(self.root, replace(question, until=self.at(self.day + 2)))
        if answer.changed:
            self.made[name] = source, self.day
        else:
            assert self.made[answer.name][0] == source
        self.connection.transaction_manager.commit()

    @precondition(lambda self: self.made)
    @rule(data=st.data(), kill=st.booleans())
    def approve(self, data: st.DataObject, kill: bool) -> None:
        """A yes counts if the question is open; killed before its commit, it is as if it had never been said."""
        name = data.draw(st.sampled_from(sorted(self.made)))
        before = self.root[roots.APPROVALS][name].word_at(self.at(self.day))
        answer = approvals.approve(self.root, name, "ada", self.at(self.day))
        assert answer is not None
        if kill:
            self.restart()
            return
        assert (answer.word == "approved" and answer.changed) <= (before == "asked")
        assert before in {"asked", answer.word}
        if answer.word == "approved" and answer.changed:
            self.yes.append(name)
        self.connection.transaction_manager.commit()

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        """A no counts if the question is open."""
        name = data.draw(st.sampled_from(sorted(self.made)))
        moments = self.at(self.day), self.at(self.day + 2)
        answer = approvals.reject(self.root, name, "ada", "no", moments)
        assert answer is not None
        if answer.changed:
            self.no.add(name)
        self.connection.transaction_manager.commit()

    @precondition(lambda self: self.day < 28)
    @rule(written=st.booleans())
    def wait(self, written: bool) -> None:
        """A day passes; what lapses may be written down then, or nobody was there to do it."""
        self.day += 1
        for approval in list(approvals.open_approvals(self.root)) if written else ():
            approvals.expire(self.root, approval.name, self.at(self.day))
        self.connection.transaction_manager.commit()

    @precondition(lambda self: self.active() is not None)
    @rule()
    def retire(self) -> None:
        """What was approved goes out of use."""
        lineage = methods.lineage_of(self.root, self.root["traits_obj"], "say_")
        assert lineage is not None
        methods.retire(lineage, "it was no good", self.at(self.day))
        self.connection.transaction_manager.commit()

    @rule()
    def restart(self) -> None:
        """The process ends; what was not committed is gone."""
        self.connection.transaction_manager.abort()
        self.connection.close()
        self.connection = opened(self.database)

    @invariant()
    def a_method_is_what_was_approved_in_time(self) -> None:
        """One revision for each yes that counted, in that order, of that source; within its time, none rejected."""
        if not hasattr(self, "database"):
            return
        lineage = methods.lineage_of(self.root, self.root["traits_obj"], "say_")
        revisions = [] if lineage is None else list(lineage.revisions.values())
        assert [each.provenance["approval"] for each in revisions] == self.yes
        assert [each.source for each in revisions] == [self.made[name][0] for name in self.yes]
        assert len(set(self.yes)) == len(self.yes)
        assert not self.no & set(self.yes)
        for each in revisions:
            asked = self.made[each.provenance["approval"]][1]
            assert self.at(asked) <= each.provenance["approved_at"] < self.at(asked + 2)

    @invariant()
    def what_is_awaited_is_what_was_asked_and_not_answered(self) -> None:
        """The two agree, and there is one open question for a source at most."""
        if not hasattr(self, "database"):
            return
        known = self.root[roots.APPROVALS]
        assert set(known) == set(self.made)
        assert list(self.root[roots.AWAITED]) == [name for name, each in known.items() if each.word == "asked"]
        open_now = [
            (each.candidate["digest"], each.former)
            for each in known.values()
            if each.word_at(self.at(self.day)) == "asked"
        ]
        assert len(open_now) == len(set(open_now))


TestQuestions = Questions.TestCase
TestQuestions.settings = settings(deadline=None, stateful_step_count=30)

"""The dialogue with a small coder: the method alone is asked for, then calls that check it, each in a few words.

A small model that is asked for both at once writes neither. Replies are free text. The checks of a facet or protocol
are written by rule: it returns what the model answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from batos.inference.ollama.bridge import ChatRequest
from batos.inference.session import Step
from batos.methods.generation import lean_request
from batos.methods.generation import method_checks as checking
from batos.methods.generation.check_lines import MOST, beside, join_checks, parse_lines, wish_checks
from batos.methods.generation.dialogue import REPAIRS, Dialogue
from batos.methods.generation.method_checks import Check
from batos.methods.generation.method_spec import MethodSpec, parameter_names
from batos.methods.generation.quota import MORE_CALLS
from batos.methods.generation.trial import Trial, TrialResult
from batos.minds.prompt import Message
from batos.protocol.errors import AnswerUnreadable

#: The most tokens of a reply: a small model that writes more goes on without end.
TOKENS: Final = 400
#: The number of repairs if the wish has checks: a call in lean form costs a tenth of one in full form.
LEAN_REPAIRS: Final = MORE_CALLS * (REPAIRS + 1) - 1
#: The words of the provenance for checks that no model wrote.
BY_RULE: Final = "its checks were written by rule"
#: And for those that the wish itself has.
BY_WISH: Final = "its checks stand in the wish"
_NO_CHECKS: Final = "no checks were written"
_ALONE: Final = "no second method that passes the checks of the wish does the same"
_METHOD: Final = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t].*\n(?:.*\n)*?[ \t]+return[ \t]", re.MULTILINE)
#: Calls of a method that speaks, each with the answer of the model, which it returns.
_SPOKEN: Final = (("Why is the sky blue?", "Because."), ("Who keeps the lamp?", "The keeper."))
#: So many messages of a kind are answered in a check.
_ANSWERS: Final = 3


@dataclass(slots=True)
class LeanDialogue(Dialogue):
    """A dialogue in which each call has one task: the method, then its checks."""

    trial: Trial
    #: The method that the guardian accepts, and its checks.
    _draft: TrialResult | None = None
    _checks: tuple[Check, ...] = ()
    _asks_checks: bool = False
    #: The checks of replies that had too few.
    _found: tuple[Check, ...] = ()
    #: The methods that passed the checks of the wish.
    _passed: list[TrialResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Checks by the model pass no more methods in more calls (decision 0017).
        self.repairs = LEAN_REPAIRS if wish_checks(self.wanted) else REPAIRS

    async def _ask(self, step: Step) -> str:
        """Return the coder's text, also if it was cut: the method stands before what a small model adds to it."""
        messages = self._paid_request(step) or self._fitting_messages()
        try:
            return (await self.session.think(self._request(messages), step)).text
        except AnswerUnreadable:  # cut within a letter
            return ""

    async def _judge(self, text: str) -> TrialResult:
        """Judge a reply as what was asked for."""
        return await (self._judge_checks(text) if self._asks_checks else self._judge_method(text))

    async def _judge_method(self, text: str) -> TrialResult:
        """Audit a method, and run its checks if there are any."""
        draft = await self.trial.draft(text)
        if draft.faults:
            return draft
        same = self._draft is not None and draft.source == self._draft.source
        self._draft = draft
        spoken = spoken_checks(self.wanted)
        if spoken:
            judged = await self.trial.source(draft.source, spoken)
            return replace(judged, changes=(*draft.changes, BY_RULE))
        given = wish_checks(self.wanted)
        if not checking.weaknesses(given, _written_slots(draft)):
            return await self._confirm(draft, given)
        if not self._checks or same:  # a coder that insists on its method may be right: other checks tell
            self._asks_checks = True
            return replace(draft, is_pending=True)
        return replace(await self.trial.source(draft.source, self._checks), changes=draft.changes)

    async def _confirm(self, draft: TrialResult, given: Sequence[Check]) -> TrialResult:
        """Run the checks of the wish; what passes them stands when a second draft does the same in other calls too.

        The coder is not shown these checks: a small one that is writes for them alone.
        """
        judged = await self.trial.source(draft.source, given)
        if judged.faults:
            return judged
        judged = replace(judged, changes=(*draft.changes, BY_WISH))
        for earlier in self._passed:
            if await self.trial.agree(earlier, judged):
                return earlier
        self._passed.append(judged)
        return replace(judged, faults=(_ALONE,), is_pending=True)

    async def _judge_checks(self, text: str) -> TrialResult:
        """Read checks, and run them; if they fail, the method is asked for again."""
        names = tuple(parameter_names(self.wanted.signature))
        checks, faults = parse_lines(text, self.wanted.selector, names)
        draft = self._draft
        if draft is None or draft.verdict is None:
            return TrialResult((_NO_CHECKS,), is_readable=False)
        self._found = tuple(check for check in join_checks((*self._found, *checks)) if check.tells)
        joined = beside(wish_checks(self.wanted), self._found)[:MOST]
        weak = checking.weaknesses(joined, _written_slots(draft))
        if weak:
            return TrialResult((*faults, *weak), is_readable=False)
        self._checks, self._found, self._asks_checks = joined, (), False
        checks = self._checks
        judged = await self.trial.source(draft.source, checks)
        return replace(judged, changes=draft.changes)

    def _go_on(self, unshown: int = 0) -> None:
        """Ask for checks, or for a second method by another seed."""
        Dialogue._go_on(self, unshown if self._asks_checks else self._unshown + 1)

    def _take(self, text: str, judged: TrialResult) -> None:
        """Take in a reply with faults: one that only returns something else is asked for anew, without being shown.

        A small model that is told what a method returned writes the same method again.
        """
        Dialogue._take(self, text, judged if judged.refused else replace(judged, is_readable=False))

    def _first(self) -> tuple[Message, ...]:
        """Return the request for the method, or for its checks."""
        return lean_request.check_messages(self.wanted) if self._asks_checks else self.begun

    def _repair(self, text: str, judged: TrialResult) -> tuple[Message, ...]:
        """Return the messages that show a method and its faults."""
        return lean_request.repair(judged.source, judged.faults)

    def _fitting_messages(self) -> tuple[Message, ...]:
        """Return the request with the last repair: a small model follows no longer talk."""
        return self._messages(self._repairs[-1:])

    def _request(self, messages: tuple[Message, ...]) -> ChatRequest:
        """Return the request with these messages; of a reply that repeats itself the method before the loop stands."""
        return replace(Dialogue._request(self, messages), keep=None if self._asks_checks else whole_method)

    def _schema(self) -> dict[str, object] | None:
        """Return None: the reply is free text."""
        return None

    def _answer_tokens(self) -> int:
        """Return the number of tokens that the answer may have."""
        return min(TOKENS, self.wanted.coder.window // 2)


def _written_slots(draft: TrialResult) -> frozenset[str]:
    """Return the slots that an audited method writes or deletes."""
    slots = draft.audit_verdict().slots
    return frozenset(slots.writes | slots.deletes)


def whole_method(text: str, until: int) -> str:
    """Return the whole lines of a text before a place, if a method that returns something is among them; else "".

    >>> whole_method("def size_(self, text):\\n    return len(text)\\n# a\\n# a\\n# a\\n", 46)
    'def size_(self, text):\\n    return len(text)\\n'
    """
    head = text[: text.rfind("\n", 0, until) + 1]
    return head if _METHOD.search(head) else ""


def spoken_checks(wanted: MethodSpec) -> Sequence[Check]:
    """Return the checks of a facet or protocol with one parameter: it asks the model, and returns what that answers."""
    if not wanted.speaks or len(parameter_names(wanted.signature)) != 1:
        return ()
    none: Sequence[Any] = [[]] * _ANSWERS
    return tuple(
        Check(arguments=[asked], replies={"infer_": [answer] * _ANSWERS, "recall_": none}, result=answer)
        for asked, answer in _SPOKEN
    )

"""The dialogue with a small coder: an example as an earlier exchange, then the task for the method alone, then checks.

A small model continues what it sees. With the example in place of rules SmolLM2-135M writes Python in 20 of 20 methods;
with the rules of the dialect and a schema in none (decision 0017).

A small model that is asked for a method and its checks at once writes neither. Replies are free text. The checks of a
facet or protocol are written by rule: it returns what the model answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from batos.inference.ollama.bridge import ChatRequest
from batos.inference.session import Step
from batos.methods.generation import method_checks as checking
from batos.methods.generation.coder_replies import MOST, beside, join_checks, parse_lines, wish_checks
from batos.methods.generation.dialogue import REPAIRS, Dialogue, shorten
from batos.methods.generation.generation_limits import MORE_CALLS
from batos.methods.generation.method_checks import Check
from batos.methods.generation.method_spec import IDENTITY, MethodSpec, parameter_names
from batos.methods.generation.trial import Trial, TrialResult
from batos.minds.calls import decisions
from batos.minds.prompt import Message
from batos.protocol.errors import AnswerUnreadable

HEAD: Final = "You write one Python method. Answer with the code alone."
CHECKS_HEAD: Final = "You write calls of a function and what they return."
AGAIN: Final = "Write the whole method again."
#: The fault of nearly every facet that fails: it sends other messages, or takes several answers apart.
ONCE: Final = "Make one prompt of all this, ask once with `await self.infer_(prompt)`, and return its answer as it is."
#: The most faults of an attempt that a small coder is told.
FAULTS: Final = 3


def method_messages(wanted: MethodSpec) -> tuple[Message, ...]:
    """Return the messages that ask for the method alone."""
    example = example_for(wanted)
    return (
        {"role": "system", "content": HEAD},
        {"role": "user", "content": _method_task(_task_lines(example), example.signature, wanted)},
        {"role": "assistant", "content": fence(example.source)},
        {"role": "user", "content": _method_task(_wanted_lines(wanted), wanted.signature, wanted)},
    )


def check_messages(wanted: MethodSpec) -> tuple[Message, ...]:
    """Return the messages that ask for calls which check the method; its source is not shown."""
    shown = (PLAIN, KEEPING) if example_for(wanted) is KEEPING else (PLAIN, LISTING)
    exchanges = [
        message
        for example in shown
        for message in (
            {"role": "user", "content": _call_task(_task_lines(example), example.signature)},
            {"role": "assistant", "content": example.checks.strip()},
        )
    ]
    asked = _call_task(_wanted_lines(wanted), wanted.signature)
    return ({"role": "system", "content": CHECKS_HEAD}, *exchanges, {"role": "user", "content": asked})


def repair(source: str, faults: Sequence[str]) -> tuple[Message, ...]:
    """Return the messages to append after a method with faults: the method as it was read, and its faults."""
    told = "\n".join(shorten(each) for each in faults[:FAULTS])
    return (
        {"role": "assistant", "content": fence(source)},
        {"role": "user", "content": f"{told}\n{AGAIN}"},
    )


def repeat_request(begun: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the request for a facet or protocol with what a first try of it lacked, before the method's first line."""
    task, gap, start = begun[-1]["content"].rpartition("\n\n")
    return (*begun[:-1], {"role": "user", "content": f"{task}\n{ONCE}{gap}{start}"})


def fence(code: str) -> str:
    """Return code in a fence, as models write it."""
    return f"```python\n{code.strip()}\n```"


def _method_task(lines: str, signature: str, wanted: MethodSpec) -> str:
    """Return the task with the first line of the method last."""
    start = "async def" if wanted.speaks else "def"
    return f"{lines}\n\n{start} {signature}:"


def _call_task(lines: str, signature: str) -> str:
    """Return the task of writing calls, with the function first, as a reader of its page sees it."""
    return f"def {_call_form(signature)}\n{lines}"


def _task_lines(example: CoderExample) -> str:
    """Return the task of an example, with its arguments and slots."""
    return _lines(example.task, example.signature, example.arguments, example.slots)


def _wanted_lines(wanted: MethodSpec) -> str:
    """Return the task of a method, with its arguments and slots."""
    title = f"{wanted.title}: " if wanted.title and wanted.speaks else ""
    task = " ".join(f"{title}{wanted.text}".split())
    granted = "".join(f"\nGranted: {each}" for each in wanted.granted)
    return _lines(task, wanted.signature, wanted.arguments, kept_slots(wanted)) + granted


def _lines(task: str, signature: str, arguments: Sequence[str], slots: Sequence[tuple[str, str]]) -> str:
    """Return a task on one line, and on another one what the method is given and keeps, where that is known."""
    named = zip(parameter_names(signature), arguments, strict=False)
    given = [f"{name} ({kind})" for name, kind in named if kind != "None"]
    kept = [f"self.{name} ({kind})" for name, kind in slots]
    return f"{task}\nGiven: {', '.join((*given, *kept))}" if given or kept else task


def _call_form(signature: str) -> str:
    """Return a signature as a call is written, without the receiver.

    >>> _call_form("size_(self, text)"), _call_form("tick_(self)")
    ('size_(text)', 'tick_()')
    """
    inside = signature.partition("(")[2].rpartition(")")[0]
    return f"{signature.partition('(')[0]}({inside.partition(',')[2].strip()})"


# -- examples of the dialect: one method of each kind, with calls that check it
#    Each is accepted by the guardian and passes its checks in a cell, which a test holds.


@dataclass(frozen=True, slots=True)
class CoderExample:
    """A method as it is asked for and written: the task, the first line, the source and the lines of its checks."""

    task: str
    signature: str
    source: str
    checks: str = ""
    #: The slots that the task names, each with its type.
    slots: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()


PLAIN: Final = CoderExample(
    "Return how often the letter stands in the text.",
    "count_letter_(self, text, letter)",
    """def count_letter_(self, text, letter):
    total = 0
    for sign in text:
        if sign == letter:
            total += 1
    return total
""",
    """count_letter_("banana", "a") == 3
count_letter_("tree", "x") == 0
""",
    arguments=("str", "str"),
)

LISTING: Final = CoderExample(
    "Return the even ones of the numbers.",
    "evens_(self, numbers)",
    """def evens_(self, numbers):
    return [number for number in numbers if number % 2 == 0]
""",
    """evens_([1, 2, 4]) == [2, 4]
evens_([3]) == []
""",
    arguments=("list",),
)

KEEPING: Final = CoderExample(
    "Add the visitors to those of the day, and return how many there are.",
    "add_visitors_(self, visitors)",
    """def add_visitors_(self, visitors):
    self.visits = self.visits + visitors
    total = self.visits
    self._p_changed = True
    return total
""",
    """self.visits = 2
add_visitors_(3) == 5
self.visits == 5

self.visits = 0
add_visitors_(1) == 1
self.visits == 1
""",
    (("visits", "int"),),
    ("int",),
)

FACET: Final = CoderExample(
    "The Elder Brother: Warn as a careful brother of what can go wrong.",
    "brother_facet_(self, query)",
    """async def brother_facet_(self, query):
    prompt = f"Warn as a careful brother of what can go wrong.\\n\\n{query}"
    return await self.infer_(prompt)
""",
    arguments=("str",),
)

PROTOCOL: Final = CoderExample(
    "The Plain Word: Write the answer again in short words.",
    "plain_word_protocol_(self, answer)",
    """async def plain_word_protocol_(self, answer):
    prompt = f"Write this again in short words: {answer}"
    return await self.infer_(prompt)
""",
    arguments=("str",),
)

EXAMPLES: Final = (PLAIN, LISTING, KEEPING, FACET, PROTOCOL)


def example_for(wanted: MethodSpec) -> CoderExample:
    """Return the example that fits a method: of its kind, and with slots if the method may keep something in its own.

    A tool keeps nothing.
    """
    if wanted.kind == "facet":
        return FACET
    if wanted.kind == "protocol":
        return PROTOCOL
    return KEEPING if kept_slots(wanted) else PLAIN


def kept_slots(wanted: MethodSpec) -> tuple[tuple[str, str], ...]:
    """Return the slots with plain data that the intent of a method names; a tool has none of its own."""
    if wanted.kind != "method":
        return ()
    named = set(wanted.text.replace("`", " ").replace(".", " ").replace(",", " ").split())
    mine = [each for each in wanted.slots if each[0] not in IDENTITY and each[0] not in wanted.protected]
    return tuple(each for each in mine if each[0] in named and each[1] != "object")


#: The most tokens of a reply: a small model that writes more goes on without end.
TOKENS: Final = 400
#: The number of repairs if the wish has checks: a call in lean form costs a tenth of one in full form.
LEAN_REPAIRS: Final = MORE_CALLS * (REPAIRS + 1) - 1
#: The words of the provenance for checks that no model wrote.
BY_RULE: Final = "its checks were written by rule"
#: And for those that the wish itself has.
BY_WISH: Final = "its checks stand in the wish"
_COPIED: Final = "it has the words of the example, and not its own"
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
        if self.wanted.speaks and decisions.copies(draft.source, example_for(self.wanted).task, self.wanted.text):
            return replace(draft, faults=(_COPIED,), is_readable=False)
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
        """Return the request for the method, or for its checks; a facet that failed is told what fails."""
        if self._asks_checks:
            return check_messages(self.wanted)
        return repeat_request(self.begun) if self.wanted.speaks and self._unshown else self.begun

    def _repair(self, text: str, judged: TrialResult) -> tuple[Message, ...]:
        """Return the messages that show a method and its faults."""
        return repair(judged.source, judged.faults)

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

"""The dialogue with the coder: its prompt, and the faults of each reply.

docs/generation.md describes the format line by line, for the authors of the emulator too. Stable text stands first, so
that generations share the runner's prompt cache; a repair only appends.

A reply that cannot be read, repeats itself or is the same as an earlier one is never shown to the model: it would go on
with it. The same is asked anew then, with another seed and temperature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from batos.events import Events
from batos.inference.decide import sample_differently, whole
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.schema import Decision
from batos.inference.session import Session, Step
from batos.methods.generation.method_checks import REPLY
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.trial import TrialResult
from batos.minds import prompt
from batos.minds.prompt import Message, with_guide
from batos.minds.trace import ratio
from batos.objects.method import IntentKind
from batos.protocol.errors import (
    AnswerCut,
    ContextOverflow,
    CovenantViolation,
    GenerationFailed,
    MethodFailed,
    Refused,
    Runaway,
    TimedOut,
)
from batos.protocol.event_payloads import METHOD_REPAIR, MethodRepair

HEAD: Final = "You write one method for an object of BAT OS."
REFUSED: Final = "The method is not accepted:"
_AGAIN: Final = "Give the whole reply again, with these mended."
#: The most faults of an attempt that the coder is told, and the most characters of a fault.
FAULTS: Final = 10
FAULT: Final = 320

_KINDS: Final[dict[IntentKind, str]] = {
    "facet": (
        "It is sent one question as text and answers with text: what the persona above says to it, in that voice. "
        "It thinks with `await self.infer_(prompt)`, which answers a text; the prompt tells who speaks, how, and the "
        "question itself. It is no function that computes an answer: its voice is in how it asks."
    ),
    "protocol": (
        "It is sent the text of an answer and returns the whole text as it is after the protocol. It thinks with "
        "`await self.infer_(prompt)`, which answers a text; the prompt tells what to do, in the voice above, and holds "
        "the answer itself."
    ),
    "tool": "It takes and returns plain data, as its intent says, and does one thing.",
}

_PLAIN: Final = "It takes and returns plain data, as its intent says."

CHECKS: Final = (
    "Each check is one call of the method, and its fields are JSON, written as text: "
    'with `arguments` ["why?"], `replies` {"infer_": ["Because."]}, `result` "Because." and the others empty, '
    "the method is called with why?, the first `infer_` it sends is answered Because., and it must return that. "
    "Nothing is really asked: what a method sends is answered from `replies` alone. "
    'A slot that must be gone afterwards is {"$gone": true} in `slots`. Every slot that the method changes is compared '
    "in `slots` of a check. At least two checks must fail against a method that returns None and changes nothing. "
    "`name`, `core_identity` and `core_method` are there in every check as they are. "
    "It is always 2026-01-01T12:00:00Z in a check."
)


def messages(wanted: MethodSpec, dialect: str, guide: str) -> tuple[Message, ...]:
    """Return the messages of the first request; `guide` is the reply's schema in prose."""
    sections = [
        _section("Owner", wanted.owner),
        _head_lines(wanted),
        _section("Intent", wanted.text),
        _list_section("Examples", wanted.examples),
        _list_section("Slots", [f"{name}: {kind}" for name, kind in wanted.slots]),
        _list_section("Messages", wanted.messages),
        _list_section("Grants", wanted.granted),
        _section("Task", with_guide(task(wanted), guide)),
    ]
    asked = "\n\n".join(section for section in sections if section)
    system = f"{HEAD}\n\n{dialect.strip()}"
    return ({"role": "system", "content": system}, {"role": "user", "content": asked})


def task(wanted: MethodSpec) -> str:
    """Return the task: the arguments and result of a method of this kind, and the form of its checks."""
    what = (
        f"Write the method `{wanted.selector}` so that it does what its intent says. {_KINDS.get(wanted.kind, _PLAIN)}"
    )
    return f"{what}\n{CHECKS}"


def repair(text: str, faults: Sequence[str]) -> tuple[Message, ...]:
    """Return the messages to append after a failed attempt: the reply as the model gave it, and its faults."""
    told = "\n".join(f"- {shorten(each)}" for each in faults[:FAULTS])
    asked = f"{REFUSED}\n{told}\n{_AGAIN}"
    return ({"role": "assistant", "content": text or "{}"}, {"role": "user", "content": asked})


def _head_lines(wanted: MethodSpec) -> str:
    """Return the lines that name the receiver, selector, signature, kind and arguments."""
    lines = [
        f"Receiver: {wanted.name}",
        f"Selector: {wanted.selector}",
        f"Signature: {wanted.signature}",
        f"Kind: {wanted.kind}",
        f"Name: {wanted.title}" if wanted.title else "",
        f"Inspiration: {wanted.inspiration}" if wanted.inspiration else "",
        f"Arguments: {', '.join(wanted.arguments)}" if wanted.arguments else "",
    ]
    return "\n".join(line for line in lines if line)


def _section(heading: str, text: str) -> str:
    """Return a section of the prompt; "" if its text is empty."""
    return f"{heading}:\n{text.strip()}" if text.strip() else ""


def _list_section(heading: str, lines: Sequence[str]) -> str:
    """Return a section with a list; "" if the list is empty."""
    return _section(heading, "\n".join(f"- {line}" for line in lines))


def shorten(text: str) -> str:
    """Return a fault on one line of at most FAULT characters, without control characters.

    The fault may quote a model's text, which could otherwise move a cursor.
    """
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    text = " ".join(text.split())
    return text if len(text) <= FAULT else f"{text[: FAULT - 3]}..."


#: The number of repairs in the full form.
REPAIRS: Final = 3
#: A source of so many lines, of which fewer than half are different, repeats itself.
_LOOP: Final = 8


class Tries(Protocol):
    """Tries the replies of a dialogue."""

    async def reply(self, text: str) -> TrialResult:
        """Try a reply, and return its faults and the parsed source and checks."""
        ...


@dataclass(slots=True)
class Dialogue:
    """A dialogue with the coder.

    Each call has its own path in the journal, so that an interrupted dialogue continues without paying again.

    `begun` are the messages of its first request, as they were if the dialogue was begun before. The object may have
    other slots by now, but the journal finds a paid answer only by the same request.
    """

    wanted: MethodSpec
    session: Session
    trial: Tries
    events: Events
    #: The path of its calls in the journal.
    path: str
    begun: tuple[Message, ...]
    #: The schema of the coder's answer.
    decision: Decision[Any] = REPLY
    #: The number of repairs after which the generation fails.
    repairs: int = REPAIRS
    attempts: int = 0
    _repairs: list[tuple[Message, ...]] = field(default_factory=list)
    #: The replies so far, and the number of those since the last repair that the coder is not shown.
    _replies: list[str] = field(default_factory=list)
    _unshown: int = 0

    async def run(self) -> TrialResult:
        """Return the reply that passed its trial.

        Errors of Ollama, and CellMissing, pass through: they say nothing about the method.

        Raises: CovenantViolation: the guardian refuses the last attempt. GenerationFailed: the last attempt fails
        otherwise, the request does not fit, or the limits are used up.
        """
        judged = TrialResult(())
        for attempt in range(self.repairs + 1):
            self.attempts = attempt + 1
            step = Step(f"{self.path}/attempt{attempt}")
            text, judged = await self._attempt(step)
            if not judged.faults and not judged.is_pending:
                return judged
            if judged.is_pending and attempt < self.repairs:
                self._go_on()
                continue
            self.session.waste(step.path)
            self._take(text, judged)
            if attempt < self.repairs:
                self._emit_repair(attempt + 1, judged)
        raise self._failure(judged)

    def _go_on(self, unshown: int = 0) -> None:
        """Begin anew with what is asked for next; `unshown` is the number of replies that it is sampled apart from."""
        self._repairs, self._replies, self._unshown = [], [], unshown

    def _take(self, text: str, judged: TrialResult) -> None:
        """Take in a reply with faults: it is shown with them, or asked for anew if it says nothing new."""
        said = " ".join(text.split())
        if not judged.is_readable or said in self._replies or loops(judged.source):
            self._unshown += 1
        else:
            self._repairs.append(self._repair(text, judged))
            self._unshown = 0
        self._replies.append(said)

    def _repair(self, text: str, judged: TrialResult) -> tuple[Message, ...]:
        """Return the messages that show a reply and its faults."""
        return repair(text, judged.faults)

    async def _attempt(self, step: Step) -> tuple[str, TrialResult]:
        """Ask the coder once and try its reply. An endless answer counts as a reply that cannot be read."""
        try:
            text = await self._ask(step)
        except Runaway as error:
            return "", TrialResult((f"The reply is not valid: {error.message}.",), is_readable=False)
        except (Refused, TimedOut) as error:
            raise GenerationFailed(
                f"{self._method_name()} has used up what it may cost: {error.message}",
                remedy="Raise generation_tokens or generation_seconds in batos.toml, or name another coder.",
            ) from error
        return text, await self._judge(text)

    async def _judge(self, text: str) -> TrialResult:
        """Try a reply."""
        return await self.trial.reply(text)

    async def _ask(self, step: Step) -> str:
        """Return the coder's text. If the request does not fit, ask again with the last attempt only."""
        try:
            return (
                await whole(self.session, self._request(self._paid_request(step) or self._fitting_messages()), step)
            ).text
        except (ContextOverflow, AnswerCut) as overflow:
            lighter = self._messages(self._repairs[-1:])
            if len(self._repairs) < 2:
                raise self._overflow_error(overflow) from overflow
            try:
                return (await whole(self.session, self._request(lighter), step)).text
            except (ContextOverflow, AnswerCut) as again:
                raise self._overflow_error(again) from again

    def _paid_request(self, step: Step) -> tuple[Message, ...]:
        """Return the request of this step if the journal has its answer, otherwise ().

        The wording of faults may differ now.
        """
        for record in self.session.earlier:
            if record.path == step.path and record.state == "done":
                return tuple(record.request["messages"])
        return ()

    def _fitting_messages(self) -> tuple[Message, ...]:
        """Return all messages so far; only the last attempt's if the coder's window is too small for all."""
        said = self._messages(self._repairs)
        coder = self.wanted.coder
        density = ratio(*self.session.measured.get(coder.model, (0, 0)), coder.ratio)
        room = prompt.room(coder.window, self._answer_tokens(), density)
        return said if prompt.size(said) <= room else self._messages(self._repairs[-1:])

    def _messages(self, repairs: Sequence[tuple[Message, ...]]) -> tuple[Message, ...]:
        """Return the first messages followed by those of these repairs."""
        return (*self._first(), *(message for each in repairs for message in each))

    def _first(self) -> tuple[Message, ...]:
        """Return the request before any repair."""
        return self.begun

    def _request(self, messages: tuple[Message, ...]) -> ChatRequest:
        """Return the request to the coder with these messages."""
        coder = self.wanted.coder
        options = dict(coder.options)
        for _ in range(self._unshown):
            options = sample_differently(options)
        options["num_predict"] = self._answer_tokens()
        return ChatRequest(coder.model, messages, options, schema=self._schema(), think=False)

    def _schema(self) -> dict[str, object] | None:
        """Return the schema that the daemon enforces; None for free text."""
        return self.decision.format

    def _answer_tokens(self) -> int:
        """Return the number of tokens that the answer may have."""
        needed = min(self.decision.num_predict, self.wanted.coder.window // 2)
        return max(needed, int(self.wanted.coder.options.get("num_predict", 0)))

    def _emit_repair(self, attempt: int, judged: TrialResult) -> None:
        """Emit the event of a repair."""
        first, others = shorten(judged.faults[0]), len(judged.faults) - 1
        why = f"{first} (and {others} more)" if others else first
        self.events.emit(
            METHOD_REPAIR,
            MethodRepair(receiver=self.wanted.name, selector=self.wanted.selector, attempt=attempt, why=why),
        )

    def _failure(self, judged: TrialResult) -> MethodFailed:
        """Return the error for a dialogue whose last attempt failed."""
        faults = judged.faults or ("it has no checks",)
        said = "; ".join(faults[:FAULTS])[: 4 * FAULT]
        if judged.refused:
            return CovenantViolation(
                f"the guardian refuses {self._method_name()} after {self.repairs} repairs: {said}",
                faults=judged.refused,
            )
        return GenerationFailed(f"{self._method_name()} does not pass its checks after {self.repairs} repairs: {said}")

    def _overflow_error(self, overflow: ContextOverflow | AnswerCut) -> GenerationFailed:
        """Return the error for a request that does not fit the coder's window."""
        return GenerationFailed(
            f"the request for {self._method_name()} does not fit the coder's window: {overflow.message}",
            remedy="Raise num_ctx in the codex, or shorten the intent.",
        )

    def _method_name(self) -> str:
        """Name the method in errors."""
        return f"{self.wanted.selector!r} of {self.wanted.name}"


def loops(source: str) -> bool:
    """Test if a source says the same lines over and over."""
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    return len(lines) >= _LOOP and 2 * len(set(lines)) < len(lines)

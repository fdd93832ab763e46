"""Counts what a mission may spend and has spent: calls, tokens and seconds, over all of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, pairwise
from typing import Any, Final

from batos.inference.journal import Record, is_embedding, is_outside
from batos.inference.ollama.chat import Answer
from batos.inference.vram.placement import LOADED
from batos.protocol.errors import BatosError, Refused, TimedOut
from batos.protocol.mission_documents import CostDocument

#: No tokenizer makes fewer tokens of a byte: what a prompt has at least.
LEAST_RATIO: Final = 0.05
#: Later than any moment.
_NEVER: Final = "9999"


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """Bounds what one mission may spend."""

    calls: int
    tokens: int
    seconds: float

    def refuse_spent(self, cost: Cost) -> None:
        """Raise Refused if a cost has reached the limit of its calls or tokens."""
        for name, used, limit in (("calls", cost.calls, self.calls), ("tokens", cost.tokens, self.tokens)):
            if used >= limit:
                raise Refused(
                    f"the mission has spent its {limit} {name if limit > 1 else name[:-1]}",
                    field=f"budget.{name}",
                    remedy=f"Ask again with a larger budget, or raise mission_{name} in batos.toml.",
                )

    def time_error(self) -> TimedOut:
        """Return the error of a mission whose time is over."""
        return TimedOut(
            f"the mission's {self.seconds:g} seconds are over",
            field="budget.seconds",
            remedy="Ask again with a larger budget, or raise mission_seconds in batos.toml.",
        )


def is_spent(error: BatosError) -> bool:
    """Test if an error says that what a mission may spend is spent."""
    return isinstance(error, Refused) and (error.field or "").startswith("budget.")


@dataclass(slots=True)
class Cost:
    """Counts what one mission spent, in all of its runs; `from_journal` and `wasted` are of the last.

    `seconds` is what Ollama thought (it read prompts and wrote answers), `waited` what its calls waited there for their
    turn and for `loads` of a model; `wasted` are tokens that led nowhere.
    """

    calls: int = 0
    embeds: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    loads: int = 0
    from_journal: int = 0
    wasted: int = 0

    @property
    def tokens(self) -> int:
        """Return the tokens of prompts and answers together."""
        return self.prompt_tokens + self.answer_tokens

    def charge(self, answer: Answer) -> None:
        """Add an answer that was paid for."""
        self.prompt_tokens += answer.prompt_tokens
        self.answer_tokens += answer.answer_tokens
        self.seconds += answer.thinking_seconds
        self.waited += max(0.0, answer.total_seconds - answer.thinking_seconds)
        self.loads += answer.load_seconds >= LOADED
        self.wasted += answer.wasted

    def add_failure(self, record: Record) -> None:
        """Add a call whose answer is of no use: its tokens as far as they are known, and its seconds if words came."""
        self.prompt_tokens += record.tokens.get("prompt", 0)
        self.answer_tokens += record.tokens.get("answer", 0)
        self.wasted += record.tokens.get("answer", 0)
        if record.state == "cut" and record.ended is not None:
            taken = datetime.fromisoformat(record.ended) - datetime.fromisoformat(record.started)
            self.seconds += max(0.0, taken.total_seconds())

    def begin_call(self) -> None:
        """Count a call that is made now."""
        self.calls += 1

    def begin_embed(self) -> None:
        """Count a call for vectors."""
        self.embeds += 1

    def reuse(self) -> None:
        """Count an answer that the journal has."""
        self.from_journal += 1

    def waste(self, tokens: int) -> None:
        """Count tokens of an answer that is of no use."""
        self.wasted += tokens

    def as_dict(self) -> CostDocument:
        """Return the `cost` of a mission as clients get it."""
        return CostDocument(
            calls=self.calls,
            embeds=self.embeds,
            prompt_tokens=self.prompt_tokens,
            answer_tokens=self.answer_tokens,
            seconds=round(self.seconds, 3),
            waited=round(self.waited, 3),
            loads=self.loads,
            from_journal=self.from_journal,
            wasted=self.wasted,
        )


@dataclass(frozen=True, slots=True)
class Spending:
    """Sums up what answers came to: how many, their tokens, prompts counted, and the seconds that Ollama thought."""

    answers: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        """Return both together."""
        return Spending(self.answers + other.answers, self.tokens + other.tokens, self.seconds + other.seconds)

    def __sub__(self, other: Spending) -> Spending:
        """Return what came since."""
        return Spending(self.answers - other.answers, self.tokens - other.tokens, self.seconds - other.seconds)


def cost_of(records: Iterable[Record], cost: Cost | None = None) -> Cost:
    """Sum up what was spent, as the journal tells it: a call that failed is one, with its tokens; add it to `cost`."""
    cost = Cost() if cost is None else cost
    for record in records:
        if is_outside(record):
            continue
        if is_embedding(record):
            cost.begin_embed()
            continue
        cost.begin_call()
        if record.state == "done" and record.response is not None:
            cost.charge(Answer(**record.response))
        else:
            cost.add_failure(record)
    return cost


def seconds_of_runs(notes: Sequence[Mapping[str, Any]], records: Sequence[Record]) -> float:
    """Return the seconds of a mission's earlier runs, each from its beginning to the last that is known of it.

    The time in which it stood still, or no process ran it, is not among them.
    """
    begins = sorted(note["begun"] for note in notes if "begun" in note)
    told = (note["at"] for note in notes if "at" in note)
    moments = sorted(chain(begins, told, *((each.started, each.ended or each.started) for each in records)))
    return sum(_between(begin, end, moments) for begin, end in pairwise([*begins, _NEVER]))


def _between(begin: str, end: str, moments: Sequence[str]) -> float:
    last = max((moment for moment in moments if begin <= moment < end), default=begin)
    return (datetime.fromisoformat(last) - datetime.fromisoformat(begin)).total_seconds()

"""Free text: a reply without a schema, bounded in letters; a reply that was cut keeps its whole sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from batos.inference.decisions.schema import SLACK_TOKENS, Mode
from batos.inference.decisions.shapes import tokens_of
from batos.protocol.errors import DecisionInvalid

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class ReplyShape(Protocol[V_co]):
    """The shape that a reply is asked for in: a decision by a schema, or free text, whose `format` is None."""

    @property
    def format(self) -> dict[str, object] | None:
        """Return the schema that the daemon enforces."""
        ...

    @property
    def num_predict(self) -> int:
        """Return the tokens that a reply can need."""
        ...

    @property
    def guide(self) -> str:
        """Return the description of the reply for a prompt; "" if it needs none."""
        ...

    def in_mode(self, mode: Mode) -> ReplyShape[V_co]:
        """Return the same shape in another mode."""
        ...

    def parse(self, text: str) -> V_co:
        """Return the value of a reply. Raises: DecisionInvalid: it is none."""
        ...

    def salvage(self, text: str, *, last: bool) -> V_co | None:
        """Return the value of a reply that was cut, or None if it has none. `last`: no longer reply can be had."""
        ...


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text that a model wrote; `was_cut` tells that it would have gone on."""

    text: str
    was_cut: bool = False


class FreeText:
    """Text of at most `longest` characters. `shorten` returns the whole sentences at the head of a text, or ""."""

    format: Final = None
    guide: Final = ""

    def __init__(self, longest: int, shorten: Callable[[str], str]) -> None:
        self.longest = longest
        self.num_predict = tokens_of(longest) + SLACK_TOKENS
        self._shorten = shorten

    def in_mode(self, mode: Mode) -> FreeText:
        """Return itself: reasoning in the reply would be part of the answer, and two phases are two calls."""
        return self

    def parse(self, text: str) -> SpokenText:
        """Return the text without the blanks around it, cut to its bound at a whole sentence if there is one.

        Raises: DecisionInvalid: there is no text.
        """
        bare = text.strip()
        if not bare:
            raise DecisionInvalid("The reply is not valid: it is empty.")
        if len(bare) <= self.longest:
            return SpokenText(bare)
        head = bare[: self.longest]
        return SpokenText(self._shorten(head).strip() or head.rstrip(), was_cut=True)

    def salvage(self, text: str, *, last: bool) -> SpokenText | None:
        """Return the whole sentences of a text that was cut at its limit of tokens.

        A text that has fewer letters than its bound was cut because its letters cost more tokens than was thought, so
        more of it can be had, unless this is the `last` try.
        """
        bare = text.strip()
        if len(bare) < self.longest and not last:
            return None
        kept = self._shorten(bare[: self.longest]).strip()
        return SpokenText(kept, was_cut=True) if kept else None

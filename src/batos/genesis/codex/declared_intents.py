"""Declared intents: the facets of a persona's pillars, and its key protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict

from batos.genesis.codex import protocol_conditions
from batos.genesis.codex.value_checks import CLOSED, Flag, OptionalText, OptionalTexts, Text, digest_of

FACET_SUFFIX = "_facet_"
PROTOCOL_SUFFIX = "_protocol_"


@dataclass(frozen=True, slots=True)
class IntentText:
    """A pillar's facet or a key protocol, as the codex declares it: what becomes an Intent in a slot."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    slot: Text
    name: Text
    intent: Text
    inspiration: OptionalText = ""
    signature: OptionalText = ""
    examples: OptionalTexts = ()
    may_learn: Flag = True
    when: Annotated[dict[str, object], AfterValidator(protocol_conditions.check)] | None = None
    #: "tool" where the protocol's product is one; a protocol without it changes the answer.
    makes: Literal["", "tool"] = ""
    #: "audit" or "cost" where a protocol is told of it beside the answer.
    given: Literal["", "audit", "cost"] = ""
    #: Questions that a protocol is meant for: it is chosen by their meaning, and by `when` alone without any.
    exemplars: OptionalTexts = ()
    #: Words that by themselves call for a protocol.
    triggers: OptionalTexts = ()
    #: The part of the Composite Entropy Metric that a protocol raises.
    metric: Literal["", "Hrel", "Hcog", "Hsol", "Hstruc"] = ""
    #: The intent in one sentence, for small models; "" where its first sentence says enough.
    line: OptionalText = ""

    @property
    def by_meaning(self) -> bool:
        """Test if this protocol is chosen by the meaning of the question."""
        return bool(self.exemplars or self.triggers)

    @property
    def digest(self) -> str:
        """Return the sha256 (hex) of the declaration, by which a changed intent is recognised.

        Exemplars and triggers are the router's: they change the choice of a protocol, and not the protocol.
        """
        return digest_of([self.slot, self.name, self.inspiration, self.intent, self.signature,
                        list(self.examples), self.may_learn, dict(self.when) if self.when else None,
                        *([self.makes] if self.makes else []),
                        *([f"given {self.given}"] if self.given else []),
                        *([f"line {self.line}"] if self.line else []),
                        *([f"metric {self.metric}"] if self.metric else []),
                        *(["by meaning"] if self.by_meaning else [])])  # fmt: skip

    def __post_init__(self) -> None:
        """Give a method that declares no signature the usual one."""
        if not self.signature:
            object.__setattr__(self, "signature", f"{self.slot}(self, query)")

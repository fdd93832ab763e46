"""Declared intents: the facets of a persona's pillars, and its key protocols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from batos.codex import protocol_conditions, rules
from batos.codex.reader import TomlTable
from batos.codex.value_digests import digest_of

FACET_SUFFIX = "_facet_"
PROTOCOL_SUFFIX = "_protocol_"


@dataclass(frozen=True, slots=True)
class IntentText:
    """A pillar's facet or a key protocol, as the codex declares it: what becomes an Intent in a slot."""

    slot: str
    name: str
    inspiration: str
    intent: str
    signature: str
    examples: tuple[str, ...]
    may_learn: bool
    when: Mapping[str, Any] | None
    #: "tool" where the protocol's product is one; a protocol without it changes the answer.
    makes: str = ""
    #: "audit" or "cost" where a protocol is told of it beside the answer.
    given: str = ""
    #: Questions that a protocol is meant for: it is chosen by their meaning, and by `when` alone without any.
    exemplars: tuple[str, ...] = ()
    #: Words that by themselves call for a protocol.
    triggers: tuple[str, ...] = ()
    #: The part of the Composite Entropy Metric that a protocol raises.
    metric: str = ""
    #: The intent in one sentence, for small models; "" where its first sentence says enough.
    line: str = ""

    @property
    def by_meaning(self) -> bool:
        """Tell whether this protocol is chosen by the meaning of the question."""
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


def read(table: TomlTable, suffix: str) -> IntentText:
    """Read a facet (`suffix` is `_facet_`) or a key protocol. Faults are added to its file."""
    slot = table.text("slot")
    conditions = protocol_conditions.read(table.table("when"))
    intent = IntentText(
        slot=slot,
        name=table.text("name"),
        inspiration=table.text("inspiration", default=""),
        intent=table.text("intent"),
        signature=table.text("signature", default=f"{slot}(self, query)"),
        examples=table.texts("examples", required=False),
        may_learn=table.flag("may_learn", default=True),
        when=None if conditions is None else MappingProxyType(conditions),
        makes=table.text("makes", default=""),
        given=table.text("given", default=""),
        exemplars=table.texts("exemplars", required=False),
        triggers=table.texts("triggers", required=False),
        metric=table.text("metric", default=""),
        line=table.text("line", default=""),
    )
    if slot:
        other = PROTOCOL_SUFFIX if suffix == FACET_SUFFIX else FACET_SUFFIX
        rules.refuse_slot(table, slot, suffix, other)
        if "signature" in table:
            rules.refuse_signature(table, slot, intent.signature)
    rules.refuse_makes(table, intent.makes, protocol=suffix == PROTOCOL_SUFFIX)
    rules.refuse_given(table, intent.given, protocol=suffix == PROTOCOL_SUFFIX)
    rules.refuse_metric(table, intent.metric, protocol=suffix == PROTOCOL_SUFFIX)
    rules.refuse_facet_choice(table, protocol=suffix == PROTOCOL_SUFFIX)
    if suffix == FACET_SUFFIX and "when" in table:
        table.fault("when", "a facet has no `when`", "Remove it: every facet of a cycle is asked.")
    elif "when" in table and table.raw("when") == {}:
        table.fault("when", "`when` has no condition", "Write one, or remove `when`.")
    table.close()
    return intent

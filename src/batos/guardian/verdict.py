"""The verdict of an audit: accepted, or every fault with its place, its rule, the reason and a remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from batos.protocol.method_documents import GuardianDocument, GuardianReach, SlotUseDocument, SourceFaultDocument

#: Rules whose breach means that the slots a method uses cannot be listed: no cell may run such a source.
UNLISTABLE: Final = frozenset({"text", "bounds", "parse", "shape", "receiver", "computed-name", "audit"})


@dataclass(frozen=True, slots=True, order=True)
class SourceFault:
    """A fault of a source: line (from 1) and column (from 0), both 0 if it has no place."""

    line: int
    column: int
    rule: str
    why: str
    remedy: str

    def as_dict(self) -> SourceFaultDocument:
        """Return every field by name."""
        return SourceFaultDocument(line=self.line, column=self.column, rule=self.rule, why=self.why, remedy=self.remedy)

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column} [{self.rule}]: {self.why}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class SlotUse:
    """The names of the receiver's slots that a source uses, exactly: what cannot be listed is a fault.

    `reads` and `writes` are loads and stores of `self.<name>`, `deletes` what is deleted; `mutates` are slots whose
    list or dict may be changed in place, through any alias (never too few, sometimes too many).
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    mutates: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()

    def as_dict(self) -> SlotUseDocument:
        """Return every field as a sorted list."""
        return {
            "reads": sorted(self.reads),
            "writes": sorted(self.writes),
            "mutates": sorted(self.mutates),
            "deletes": sorted(self.deletes),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The guardian's result for one source under one policy: plain data, equal for equal input.

    `policy` is the policy's name and the digest of its content, `digest` the SHA-256 of the source's UTF-8 bytes (hex),
    `parameters` the parameter list as Python text, `sends` the selectors that the source sends to any object.
    `capabilities` are the grants and the made objects that it reaches for.
    """

    accepted: bool
    faults: tuple[SourceFault, ...]
    policy: str
    digest: str
    selector: str = ""
    parameters: str = ""
    is_async: bool = False
    slots: SlotUse = field(default_factory=SlotUse)
    sends: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()

    @property
    def listable(self) -> bool:
        """Test if `slots` lists everything that the source uses, whatever its other faults are."""
        return not any(fault.rule in UNLISTABLE for fault in self.faults)

    def as_dict(self) -> GuardianDocument:
        """Return the verdict as data that JSON can hold."""
        reaches: GuardianReach = {"capabilities": sorted(self.capabilities)} if self.capabilities else {}
        return {
            **reaches,
            "accepted": self.accepted,
            "faults": [fault.as_dict() for fault in self.faults],
            "policy": self.policy,
            "digest": self.digest,
            "selector": self.selector,
            "parameters": self.parameters,
            "is_async": self.is_async,
            "slots": self.slots.as_dict(),
            "sends": sorted(self.sends),
        }

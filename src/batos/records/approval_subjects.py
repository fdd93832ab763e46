"""Subjects of an approval: a candidate for a slot, memories to forget, effects, a mission's calls, a server's tools."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, cast

from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import own_slots
from batos.protocol.method_documents import (
    ApprovedBy,
    CandidateDocument,
    CheckDocument,
    FormerRevision,
    MethodProvenance,
    MutantsDocument,
    StoredVerdict,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Holds everything that becomes a Method when it is installed, as plain data that a person can be shown.

    `holder` is the reference of the object whose slot it is for (a root name or `oid:0x2a`), `intent` the digest of
    the Intent that it was made from, `checks` what it passed and `mutants` {made, killed}: how many broken variants of
    it those checks tell from it. `provenance` has the keys of `image.methods.PROVENANCE`, `trust` among them.
    """

    holder: str
    selector: str
    intent: str
    source: str
    verdict: StoredVerdict
    checks: tuple[CheckDocument, ...]
    provenance: MethodProvenance
    mutants: MutantsDocument = field(default_factory=MutantsDocument)
    #: The fields of the Intent that takes the declared one's place with it; None: as declared.
    wish: Mapping[str, Any] | None = None
    #: The revision that it takes the place of, as {revision, source}; None: it is the first.
    former: FormerRevision | None = None
    #: Of a whole object: its methods, which are installed together or not at all. `source` is then that of all.
    methods: tuple[Candidate, ...] = ()
    #: Of a question whether memories may be forgotten: the documents. Nothing is installed then.
    forgets: tuple[str, ...] = ()
    #: Of a question whether effects on the world may happen: their ids. Nothing is installed then.
    effects: tuple[str, ...] = ()
    #: Of a question whether tools of a server may be used: each as JSON. Nothing is installed then.
    pins: tuple[str, ...] = ()
    #: Of a question about a mission's calls: the mission, and what an edited plan may name. Nothing is installed then.
    frame: Mapping[str, Any] | None = None

    @property
    def installs(self) -> bool:
        """Test if a yes installs a method."""
        return not (self.forgets or self.effects or self.pins or self.frame is not None)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the source in UTF-8, in hex: an approval is bound to it."""
        return digest_of_source(self.source)

    def with_approval(self, said: ApprovedBy) -> Candidate:
        """Return a copy whose provenance, and that of each of its methods, says who approved it and when."""
        methods = tuple(each.with_approval(said) for each in self.methods)
        return replace(self, provenance={**self.provenance, **said}, methods=methods)

    def with_missions(self, missions: Collection[str]) -> Candidate:
        """Return a copy whose provenance, and that of each of its methods, names the missions that it was made for."""
        named, methods = sorted(set(missions)), tuple(each.with_missions(missions) for each in self.methods)
        return replace(self, provenance={**self.provenance, "missions": named}, methods=methods)

    def as_dict(self) -> CandidateDocument:
        """Return every field as plain data of its own, with the digest; `from_dict` reads it back."""
        methods = [each.as_dict() for each in self.methods]
        shown = {**asdict(replace(self, methods=())), "digest": self.digest, "methods": methods}
        return cast("CandidateDocument", shown)

    @classmethod
    def from_dict(cls, shown: CandidateDocument) -> Candidate:
        """Return the candidate that `as_dict` showed."""
        fields: dict[str, Any] = {name: value for name, value in shown.items() if name != "digest"}
        methods = tuple(map(cls.from_dict, fields.get("methods", ())))
        several = {name: tuple(fields.get(name, ())) for name in ("checks", "forgets", "effects", "pins")}
        return cls(**{**fields, **several, "methods": methods})


def digest_of_source(source: str) -> str:
    """Return the SHA-256 of a source in UTF-8, in hex; a lone surrogate has bytes too."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


#: The kind of contribution by which a mission asks: {documents}, by their ids.
FORGET_KIND: Final = "forget"
#: The object and the selector that the question is about.
HOLDER, SELECTOR = "knowledge_catalog_obj", "forget_"


def forget_candidate(root: Root, names: Sequence[str], mission: str, at: str) -> Candidate | None:
    """Return the question about a mission's documents that are there and its user's; None: there are none of them.

    The text has a line for each document with the digest of its content: a yes counts for exactly this text.
    """
    user = roots.mission_record(root, mission).brief.value["user"]
    documents = {name: own_slots(root[roots.DOCUMENTS][name]) for name in names if name in root[roots.DOCUMENTS]}
    own = {name: slots for name, slots in documents.items() if slots["user"] == user}
    if not own:
        return None
    lines = (_line(name, slots["sha256"], slots["title"]) for name, slots in sorted(own.items()))
    return Candidate(
        holder=HOLDER,
        selector=SELECTOR,
        intent="",
        source="\n".join(lines),
        verdict={"accepted": True, "faults": [], "policy": SHIPPED.version},
        checks=(),
        provenance=MethodProvenance(missions=[mission], trust="model", at=at, by=f"a method of {mission}"),
        forgets=tuple(sorted(own)),
    )


def reason_not_forgettable(root: Root, candidate: Candidate) -> str | None:
    """Return why a yes does not count any more: a document is gone or has another content. None: it counts."""
    for name, line in zip(candidate.forgets, candidate.source.split("\n"), strict=True):
        if name not in root[roots.DOCUMENTS]:
            return f"{name} is not there any more"
        slots = own_slots(root[roots.DOCUMENTS][name])
        if line != _line(name, slots["sha256"], slots["title"]):
            return f"{name} is not what it was when it was asked about"
    return None


def _line(name: str, sha256: str, title: str) -> str:
    return f"forget {name} {sha256[:16]} {' '.join(title.split())}"

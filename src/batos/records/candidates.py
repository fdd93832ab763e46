"""Define a candidate: a method that its author wrote and its checks passed, and that is not installed yet."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

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
        several = {name: tuple(fields.get(name, ())) for name in ("checks", "forgets")}
        return cls(**{**fields, **several, "methods": methods})


def digest_of_source(source: str) -> str:
    """Return the SHA-256 of a source in UTF-8, in hex; a lone surrogate has bytes too."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()

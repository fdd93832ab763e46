"""Makes facts of texts: the value that a key has, the facts that it supersedes, and those that it rests on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from batos.memory.document_store import Incoming


@dataclass(frozen=True, slots=True)
class FactKey:
    """The subject and attribute of a fact in one word, and the keys of facts that it supersedes or depends on."""

    key: str
    supersedes: str = ""
    depends_on: tuple[str, ...] = ()


def fact_of(given: Incoming, fact: FactKey) -> Incoming:
    """Return a text as the fact of a key, whose words are its title: it is found by them.

    >>> typed = Incoming("ann", "default", "", "18 March", "text/plain", "18 March", "0", "user")
    >>> fact_of(typed, FactKey("launch_date")).title
    'launch date'
    """
    title = " ".join(fact.key.replace("_", " ").replace("-", " ").split()) or fact.key
    digest = hashlib.sha256(f"{fact.key}\0{given.text}".encode("utf-8", "surrogatepass")).hexdigest()
    return replace(
        given, title=title, sha256=digest, kind="fact",
        key=fact.key, supersedes=fact.supersedes, depends_on=fact.depends_on,
    )  # fmt: skip

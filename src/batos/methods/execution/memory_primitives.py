"""The messages by which a method, or a person's message, adds to memory and compares texts by their meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from batos.memory.exchanges import IndexedDocument
from batos.memory.records import memory_records
from batos.methods.execution.argument_binding import bind_arguments
from batos.minds import remembered
from batos.minds.context import MindContext
from batos.objects.prototype import own_slots
from batos.protocol.brief import NO_MEMORY
from batos.protocol.errors import NotFound, ObjectError

#: The most characters of a document's title and of its text, and the most documents of a mission.
MOST_TITLE, MOST_TEXT, MOST_DOCUMENTS = 200, 64 * 1024, 256
#: The most texts of one `embed_`, and the most characters of each.
MOST_EMBEDDED, MOST_EMBEDDED_TEXT = 64, 8_000
#: The answer of `forget_`.
ASKED: Final = "asked"


def index_document(
    context: MindContext, args: Sequence[Any], kwargs: Mapping[str, Any], trust: str, *, is_evidence: bool
) -> None:
    """Note a document that is remembered once the mission is done. Of one text in a mission the first counts.

    `trust` is the class of everything that the text was made from. A text that is not evidence is found by a recall,
    and never shown to a mission as something that was given.

    Raises: ObjectError: an argument is wrong, there are too many documents, or the mission keeps nothing in memory.
    """
    given = bind_arguments(lambda title, text: None, "index_document_", args, kwargs)
    title, text = _check_text("title", given["title"], MOST_TITLE), _check_text("text", given["text"], MOST_TEXT)
    policy = context.mission.brief.policy
    if policy is not None and policy.memory == NO_MEMORY:
        raise ObjectError("`index_document_`: this mission keeps nothing in memory (`--no-memory`)")
    document = IndexedDocument(title, text, trust, is_evidence)
    if any(each.text == text for each in context.trace.indexed):
        return
    if len(context.trace.indexed) >= MOST_DOCUMENTS:
        raise ObjectError(f"a mission remembers at most {MOST_DOCUMENTS} documents of methods")
    context.trace.indexed.append(document)


def forget(context: MindContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Note documents of which a person is asked whether they may be forgotten, and return "asked".

    Ids, sources, or the mission that left them name documents; all are the mission's user's, and in its scope.

    Raises: ObjectError: an argument is wrong, or there is no such document.
    """
    named = bind_arguments(lambda documents: None, "forget_", args, kwargs)["documents"]
    several = [named] if isinstance(named, str) else named
    if not isinstance(several, list | tuple) or not 1 <= len(several) <= MOST_DOCUMENTS:
        raise ObjectError(f"`forget_` takes the name of a document, or a list of 1 to {MOST_DOCUMENTS} names")
    reach = remembered.reach_of(context.mission.brief)
    found: list[str] = []
    for name in several:
        if not isinstance(name, str) or reach is None or reach.scopes is None:
            raise ObjectError("`forget_` takes names of documents, in a mission that uses memory")
        try:
            documents = memory_records.find_documents(context.mission.root, name, context.mission.brief.user)
        except NotFound as error:
            raise ObjectError(f"`forget_`: {error.message}") from None
        found += [own_slots(each)["name"] for each in documents if own_slots(each)["scope"] in reach.scopes]
    if not found:
        raise ObjectError("`forget_`: these documents are of another scope than the mission's")
    context.trace.note_forgetting(found)
    return ASKED


async def embed(
    context: MindContext, path: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[list[float]] | list[float]:
    """Return the vector of a text, or those of a list of texts; `path` is their place in the journal.

    Raises: ObjectError: an argument is wrong, or no embedder gives a vector.
    """
    texts = bind_arguments(lambda texts: None, "embed_", args, kwargs)["texts"]
    several = [texts] if isinstance(texts, str) else texts
    if not isinstance(several, list | tuple) or not 1 <= len(several) <= MOST_EMBEDDED:
        raise ObjectError(f"`embed_` takes a text, or a list of 1 to {MOST_EMBEDDED} texts")
    checked = [_check_text("text", each, MOST_EMBEDDED_TEXT, "embed_") for each in several]
    meanings = context.io.meanings
    vectors = None if meanings is None else await meanings.vectors(checked, path)
    if vectors is None:
        raise ObjectError("`embed_`: there is no embedder, or it gives no vector")
    found = [[float(number) for number in vector] for vector in vectors]
    return found[0] if isinstance(texts, str) else found


def _check_text(name: str, value: Any, most: int, selector: str = "index_document_") -> str:
    if not isinstance(value, str) or not value.strip():
        raise ObjectError(f"`{selector}` takes its {name} as a text that is not empty")
    if len(value) > most:
        raise ObjectError(f"`{selector}` takes a {name} of at most {most:,} characters, not {len(value):,}")
    return value

"""The vectors of an answer's sentences that words leave alone, and of the evidence nearest to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from batos.gate.attribution import Attribution, SentenceVectors
from batos.gate.evidence_index import CONVERSATION, EvidenceIndex
from batos.gate.ground import Ground
from batos.gate.texts.stems import stems
from batos.minds.context import MindContext

#: Sentences of the answer and of the evidence that are embedded.
MOST_SAID, MOST_EVIDENCE = 8, 24
#: The end of the path of the vectors.
PATH: Final = "judging#0"


async def find_meanings(context: MindContext, found: Attribution, ground: Ground) -> SentenceVectors | None:
    """Return vectors for the sentences whose words are in no document; None where there is nothing to compare.

    A mind within another has none: its answer is judged again in what it is joined to.
    """
    said = [number for number, each in enumerate(found.sentences) if each.reason == "words"][:MOST_SAID]
    if not said or context.mind.inner or context.io.meanings is None:
        return None
    index = ground.index
    places = _nearest(index, " ".join(found.sentences[number].text for number in said))
    texts = [found.sentences[number].text for number in said] + [index.sentences[at].quote for at in places]
    vectors = await context.io.meanings.vectors(texts, f"{context.mind.name}/{PATH}")
    if vectors is None:
        return None
    of_said = dict(zip(said, vectors, strict=False))
    of_evidence = dict(zip(places, vectors[len(said) :], strict=True))
    nothing: Sequence[float] = ()
    return SentenceVectors(
        [of_said.get(number, nothing) for number in range(len(found.sentences))],
        [of_evidence.get(at, nothing) for at in range(len(index.sentences))],
    )


def _nearest(index: EvidenceIndex, text: str) -> list[int]:
    """Return the places of the documents' sentences that share most with a text, at most MOST_EVIDENCE of them."""
    shared = index.hits(stems(text, index.language))
    places = [at for at, each in enumerate(index.sentences) if each.document != CONVERSATION]
    return sorted(sorted(places, key=lambda at: (-shared.get(at, 0.0), at))[:MOST_EVIDENCE])

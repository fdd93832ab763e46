"""The voices beside an answer: each part and the parts of a mind within a mind, and what each call changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batos.protocol.mission_documents import ProvenanceDocument, VoiceDocument
from batos.terminal.console import count_text
from batos.terminal.layout import wrap

#: The columns before a line's text.
_MARGIN = 9


def voices_lines(voices: Sequence[VoiceDocument], *, whole: bool, depth: int = 0) -> Iterator[str]:
    """List the parts, a line each, and with `whole` their answers; a persona's facets stand beneath, further in."""
    for voice in voices:
        indent = "  " * depth
        kind = "facet" if "voices" not in voice else "persona"
        asked = f", asked: {voice['query']}" if voice["query"] else ""
        yield f"{indent}{kind.ljust(_MARGIN)}{voice['name']}{asked} ({_outcome_text(voice)})"
        if whole and voice["answer"]:
            yield wrap(voice["answer"], indent + " " * _MARGIN)
        yield from voices_lines(voice.get("voices", ()), whole=whole, depth=depth + 1)


def _outcome_text(voice: VoiceDocument) -> str:
    if "failure" in voice:
        return f"failed: {voice['failure']['message']}"
    said = _answer_text(voice)
    faults = voice.get("faults", ())
    return f"{said}; the gate found {count_text(len(faults), 'fault')}" if faults else said


def _answer_text(voice: VoiceDocument) -> str:
    """Test if there is an answer, and if documents carry any of it: without that it is not `known`."""
    if not voice["answer"].strip():
        return "had no answer"
    return "answered" if voice["known"] else "answered; no document carries it"


def changes_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """List the changes of each call, a line each."""
    for change in provenance.get("changes", ()):
        kind = "changed" if change["changed"] else "same"
        yield f"{kind.ljust(_MARGIN)}{change['path'].removesuffix('#0')}: {change['what']}"

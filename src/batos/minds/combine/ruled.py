"""An answer by rule, where no words of the model are of use: the evidence, quoted, or that nothing was found."""

from __future__ import annotations

from typing import Final

from batos.gate.texts import languages
from batos.memory.search.focus import focus
from batos.minds.calls import answers
from batos.minds.context import MindContext
from batos.minds.results import MindAnswer, Synthesis

#: The statement that nothing was found, by the language of the question.
_NOTHING: Final = {
    "German": "Dazu wurde nichts gefunden.",
    "French": "Aucune réponse n'a été trouvée.",
    "Spanish": "No se encontró ninguna información.",
    "Italian": "Nessuna informazione è stata trovata.",
    "Portuguese": "Não se encontrou nenhuma informação.",
    "Dutch": "Er is geen antwoord gevonden.",
}
_NOTHING_ENGLISH: Final = "Nothing was found."


def answer(context: MindContext, synthesis: Synthesis, path: str, why: str) -> MindAnswer:
    """Return the sentences of the evidence that bear most on the question, each quoted with its document's number.

    Without such a sentence the first part's statement that nothing was found is used, or one by rule. A mind within
    another has no answer then, since that one combines what others answered.
    """
    if context.mind.inner:
        return tell(context, synthesis, path, why, "")
    found = focus(synthesis.recalled.passages, context.mind.question)
    text = "\n\n".join(f"> {' '.join(each.text.split())} [{each.number}]" for each in found)
    said = next((part.answer for part in synthesis.parts if part.answer.strip()), "")
    language = languages.guess(context.mind.question) or ""
    text = text or said or _NOTHING.get(language, _NOTHING_ENGLISH)
    return tell(context, synthesis, path, why, text)


def tell(context: MindContext, synthesis: Synthesis, path: str, why: str, text: str) -> MindAnswer:
    """Return a text as the answer by rule, for a reason, and tell it."""
    context.decide_by_rule(path, "answer", why)
    synthesis.combined["ruled"] = why
    answers.tell(context, path, text)
    return MindAnswer(text, is_ruled=True)

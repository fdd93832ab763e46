"""Orders to act in a question: by rule it is seen that an answer is to be written down or sent, where, and what.

The question goes on without the order, since no model can do it; ordered_effects.py carries it out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Final

from batos.agency.records import effect_records
from batos.agency.records.effect_records import GrantKind
from batos.image.roots import Root
from batos.memory.segmentation import sentence_spans
from batos.objects.prototype import own_slots
from batos.protocol.brief import MissionBrief

#: The file of what is noted down and has no place named.
USUAL: Final = "notes.txt"
#: Endings of files of text; one name with such an ending is a place.
_ENDINGS: Final = "txt|md|markdown|csv|tsv|log|json|jsonl|html?|rst|tex|ya?ml|xml|ini|srt|bib|ics|text"
_PATH: Final = rf"(?:[\w-]+/)*[\w-][\w.-]*\.(?:{_ENDINGS})"
_QUOTES: Final = re.compile(r"[\"“„«»”]\s?(?P<text>[^\"“„«»”]{1,4000}?)\s?[\"”“»«]")


@dataclass(frozen=True, slots=True)
class EffectOrder:
    """An order of a person: by which grants it may be carried out, with which message, and what is known of it.

    `question` is what is asked besides, `text` the person's own words that are to be written or sent, "" for the
    answer; with neither of them it is the answer before, in the conversation. `path` is "" for a capability of another
    kind, and where no name was given.
    """

    grants: tuple[str, ...]
    selector: str
    question: str
    path: str = ""
    text: str = ""
    language: str = "English"

    @property
    def line(self) -> str:
        """Return what a model is told of it: the form that its answer needs."""
        does = {"append_": "appended to", "write_": "written to", "post_": "sent to"}[self.selector]
        return f"Your answer will be {does} {self.path or self.grants[0]} as it stands: give only that text."


def find(root: Root, brief: MissionBrief) -> EffectOrder | None:
    """Return the order in a question whose brief names a grant for it; None: it orders nothing."""
    if not brief.grants or brief.message is not None or brief.answer_schema is not None:
        return None
    found = ((name, effect_records.find_capability(root, name, brief.user)) for name in brief.grants)
    kinds = {name: own_slots(each)["kind"] for name, each in found if each is not None}
    return read(brief.text, kinds)


def remove_order(brief: MissionBrief, order: EffectOrder | None) -> MissionBrief:
    """Return the brief as its mission works on it: the question without the order."""
    return brief if order is None or not order.question else brief.model_copy(update={"text": order.question})


def read(text: str, kinds: Mapping[str, GrantKind]) -> EffectOrder | None:
    """Return the order in a text by some grants, each with its kind; None: it orders nothing.

    >>> read("What holds a pier? Write it to piers.md.", {"notes": "file"})
    EffectOrder(grants=('notes',), selector='append_', question='What holds a pier?', path='piers.md', text='', \
language='English')
    >>> read("What does piers.md say?", {"notes": "file"})
    """
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    for language, words in order_phrases().items():
        whole = _patterns(tuple(words.items()), tuple(sorted(kinds)))[-1].search(text.strip())
        if whole is not None and (order := _order(whole, "", words, kinds)) is not None:
            return replace(order, language=language)
        for place, sentence in enumerate(sentences):
            for found in _matches(sentence, words, kinds):
                others = [*sentences[:place], sentence[: found.start()].strip(" ,;:"), *sentences[place + 1 :]]
                rest = " ".join(filter(None, others)).strip()
                order = _order(found, rest, words, kinds)
                if order is not None:
                    return replace(order, language=language)
    return None


def _matches(sentence: str, words: Mapping[str, str], kinds: Mapping[str, GrantKind]) -> Iterator[re.Match[str]]:
    """Yield what may be an order in a sentence, the surest first."""
    for pattern in _patterns(tuple(words.items()), tuple(sorted(kinds)))[:-1]:
        if (found := pattern.search(sentence)) is not None:
            yield found


def _order(
    found: re.Match[str], rest: str, words: Mapping[str, str], kinds: Mapping[str, GrantKind]
) -> EffectOrder | None:
    """Return the order that a match is, beside the rest of its text; None: it is none after all."""
    told = {name: value or "" for name, value in found.groupdict().items()}
    what, named = told.get("what", "").strip(" ,:;"), _grant_named(told.get("grant", ""), kinds)
    wanted: GrantKind = "http" if told.get("give") or (named and kinds[named] == "http") else "file"
    grants = (named,) if named else tuple(name for name, kind in kinds.items() if kind == wanted)
    if not grants or kinds[grants[0]] != wanted or _is_about(words["never"], found[0]):
        return None
    quoted = _QUOTES.fullmatch(what.strip()) if what else None
    own = quoted["text"] if quoted is not None else told.get("own", "")
    if what and quoted is None and told.get("note"):
        own = _own_sentence(what, words)
    if what and not own and told.get("verb") and _is_about(words["stop"], what):
        return None
    is_new = re.search(words["new"], found[0], re.IGNORECASE) is not None
    selector = "post_" if wanted == "http" else "write_" if is_new else "append_"
    usual = USUAL if told.get("note") and not (told.get("path") or told.get("file")) else ""
    path = "" if wanted == "http" else told.get("path") or usual
    question = rest if own else " ".join(filter(None, (rest, _as_question(told.get("verb", ""), what))))
    return EffectOrder(grants, selector, question, path, own)


def _grant_named(said: str, kinds: Mapping[str, GrantKind]) -> str:
    return next((name for name in kinds if said and _normalise(name).casefold() == _normalise(said).casefold()), "")


def _normalise(name: str) -> str:
    return re.sub(r"[\s_]+", " ", name)


def _is_about(words: str, text: str) -> bool:
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", text, re.IGNORECASE) is not None


def _own_sentence(what: str, words: Mapping[str, str]) -> str:
    """Return the person's own words in what is to be noted; "" where it is a question or a matter."""
    begun = re.match(rf"(?:{words['that']})(?P<text>.+)", what, re.IGNORECASE)
    return "" if begun is None else f"{begun['text'][:1].upper()}{begun['text'][1:]}".rstrip(".") + "."


def _as_question(verb: str, what: str) -> str:
    """Return what is to be written as the question that a model is asked: a text to be written is asked for so."""
    if not what:
        return ""
    makes = re.fullmatch(r"write|schreibe?|écris|écrivez|escribe|escriba", verb, re.IGNORECASE)
    asked = f"{verb} {what}" if makes else what
    return f"{asked[:1].upper()}{asked[1:]}" + ("" if asked[-1] in ".!?" else "." if makes else "?")


@lru_cache(maxsize=64)
def _patterns(words: tuple[tuple[str, str], ...], grants: tuple[str, ...]) -> Sequence[re.Pattern[str]]:
    """Return the forms of an order in one language: what was asked besides, a matter with a place, a note, a text."""
    told = dict(words)
    named = "|".join(re.escape(_normalise(each)).replace(r"\ ", r"[\s_]") for each in grants)
    path = rf"[\"“„«'`]?(?P<path>{_PATH})[\"”“»'`]?"
    grant = rf"(?:(?:{told['article']})\s+)*(?P<grant>{named})"
    file = rf"(?P<file>{told['file']})"
    place = rf"(?:{told['links']})\s+(?:(?:(?:{told['file']})\s+)?{path}|{grant}|{file})"
    end = rf"(?:\s+(?:{told['end']}))*\s*[.!?]*$"
    polite = rf"(?:(?:{told['polite']}),?\s+)*"
    begin = rf"(?:^|[,;:]?\s+(?:{told['join']})\s+){polite}"
    deed = rf"(?:(?P<give>{told['give']})|(?P<verb>{told['put']}))"
    forms = (
        rf"{begin}{deed}[\s-]+(?:{told['it']})\s+{place}{end}",
        rf"^{polite}{deed}\s+(?P<what>.+?)\s+{place}{end}",
        rf"^{polite}(?P<note>{told['note']}),?\s+(?P<what>[^:].*?)(?:\s+{place})?{end}",
        rf"^{polite}{deed}\s+(?:(?:{told['it']})\s+)?{place}\s*:\s*(?P<own>.+)$",
    )
    return [re.compile(each, re.IGNORECASE | re.DOTALL) for each in forms]


@lru_cache(maxsize=1)
def order_phrases() -> Mapping[str, Mapping[str, str]]:
    """Return the phrases of orders, by language."""
    return tomllib.loads(files(__package__).joinpath("effect_orders.toml").read_text(encoding="utf-8"))

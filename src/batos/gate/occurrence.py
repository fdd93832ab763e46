"""Checks that the statements of an answer occur in its ground: numbers, dates and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from batos.gate import dates, figures, languages, numerals, sums
from batos.gate.figures import Figure
from batos.gate.ground import Draft, Ground, Spot
from batos.memory.terms import words

# Blanks within a line only: where `\s` could also eat line breaks, a text of line breaks takes cubic time.
_BLANK = r"[^\S\n]"
_LIST_MARK = re.compile(
    rf"^{_BLANK}*(?:[-*•]{_BLANK}*)?(?:\(?\d+[.):](?=\s)|\(\d+\)|\*\*\d+[.)]?\*\*[.)]?|\d+(?:\.\d+){{1,3}}\.?(?={_BLANK}+[A-Z]\w*{_BLANK}))",
    re.MULTILINE,
)
_STEP = re.compile(
    r"\b(?:steps?|schritte?|étapes?|pasos?|passos?|stap|steg|trinn|шаг)\s\d+|第\s?\d+\s?步", re.IGNORECASE
)
#: A document that is named in the text: `document 3`, `[3]`, `[1, 2]`.
_REFERENCE = re.compile(
    r"\b(?:documents?|dokumente?n?|documentos?|documenti?|docs?|id)\.?\s?#?(\d{1,2})\b|"
    r"(?<![\w\])])\[(\d{1,2}(?:\s?[,;]\s?\d{1,2}){0,8})\](?![(\[])|文[档件]\s?(\d{1,2})",
    re.IGNORECASE,
)
_HEADING = re.compile(
    rf"^{_BLANK}*#[^\n]*$|^{_BLANK}*(?:(?:[-*•]|\d+[.)]){_BLANK}*)?\*\*[^*\n]+\*\*|^{_BLANK}*\|[^\n]*\|{_BLANK}*$",
    re.MULTILINE,
)

_UPPER = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĖĘĚĞĢĪİĶŁŃŇŌŐŒŘŚŞŠŤŪŮŰŸŹŻŽΑ-ΩА-ЯЁЇІЄҐ"
_CAPITAL = rf"(?:[{_UPPER}]['’])?[{_UPPER}][^\W\d_]+(?:['’][^\W\d_]{{1,3}}\b)?"
_PARTICLE = r"van|von|der|den|de|da|di|do|dos|das|del|della|la|le|du|zu|ter|ten|bin|ibn|af|av|of|the|y|e|i"
_LINK = rf"(?:[ -]|\s(?:[{_UPPER}]\.\s?){{1,4}}|\s(?:(?:{_PARTICLE})\s){{1,2}}|\sd['’])"
_NAME = re.compile(rf"(?<!\w)(?:[{_UPPER}]\.\s?){{0,4}}{_CAPITAL}(?:{_LINK}{_CAPITAL})+")
_TITLE = "Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Mme|Monsieur|Madame|Señora?|Sra?|Signora?|Mevrouw|Meneer"
_TITLED = re.compile(rf"(?<!\w)(?:(?:{_TITLE})\.? )+({_CAPITAL}(?:{_LINK}{_CAPITAL})*)")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:…\n]|[-*•]|\d[.)])[\s\"“„«'(*_]*\Z")
_POSSESSIVE = re.compile(r"['’]s?\Z")

#: Capitalised words that name nobody: months and days, and what sentences begin with.
_NOBODY = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday lundi mardi mercredi jeudi vendredi samedi dimanche lunes"
    " martes miércoles jueves viernes sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica january"
    " february march april may june july august september october november december i".split()
)
_OPENERS = languages.SMALL_WORDS | frozenset(
    "yesterday today tomorrow when while although though because since after before during until if unless where who"
    " whose both each every either neither another other many some most few several all any such only even also then"
    " there here thus hence therefore however moreover furthermore meanwhile instead besides still yet once again later"
    " now so but they he she we its his her their our these those like unlike under over between among within without"
    " against about according based given following despite per via please note see thanks dear hello hi yes perhaps"
    " maybe can could should would will may might must let first second third next last two three four five ten"
    " hier aujourd'hui demain quand pendant lorsque puis alors ensuite ainsi donc enfin selon chez comme si mais ils"
    " elles nous leur chaque certains ayer hoy mañana cuando mientras aunque después antes entonces según si pero ellos"
    " cada algunos también ieri oggi domani quando mentre dopo prima poi allora secondo ogni anche loro gisteren"
    " vandaag morgen toen terwijl volgens elke".split()
)


_NO_NUMBER = "The number {} is in no document; correct it, show how it is calculated, or remove it."


def numbers(draft: Draft) -> Iterator[Spot]:
    """Check that numbers occur in evidence or question, or are calculated in the answer; counts below ten
    always pass.
    """
    ground = draft.ground
    if not ground.passages:
        return
    text = _blank_other_digits(draft.answer, ground)
    found = figures.find(text)
    worked = sums.calculate_sums(text, found)
    sure = {
        place
        for place, each in enumerate(found)
        if each.start in worked.constants or _is_there(each, ground) or worked.shows(each)
    }
    told: set[str] = set()
    for place, each in enumerate(found):
        if place in sure or each.text in told:
            continue
        if each.start not in worked.operands and sums.follows_from_others(found, place, sure, text):
            sure.add(place)
        else:
            told.add(each.text)
            yield Spot(_NO_NUMBER.format(each.text), each.text)
    for word, value in numerals.number_words(languages.prose(text), languages.guess(text) or "").items():
        if value not in ground.figures.values and value not in worked.results:
            yield Spot(_NO_NUMBER.format(word), word)


def _is_there(figure: Figure, ground: Ground) -> bool:
    # A quotation may begin or end inside a row of digit groups, which is then another number, as it stands.
    as_it_stands = not figure.text.isdigit() and bool(figure.readings) and figure.text in ground.text
    return (as_it_stands and not figure.scales) or figures.is_known(figure, ground.figures)


def _blank_other_digits(answer: str, ground: Ground) -> str:
    """Blank the parts of an answer that state no number: list marks, references, dates, known times of day."""
    text = figures.plain(answer)
    for form in (_LIST_MARK, _STEP, _REFERENCE):
        text = form.sub(_blank, text)
    text = _without(text, [(day.start, day.end) for day in dates.find(text)])
    there = ground.times
    known = [span for time, span in dates.times(text) if time in there or (time[0] + 12, time[1]) in there]
    return _without(text, known)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Blank these spans of a text. The spans are in order."""
    kept, at = [], 0
    for start, end in spans:
        kept += [text[at:start], _blank(text[start:end])]
        at = end
    return "".join([*kept, text[at:]])


def _blank(found: re.Match[str] | str) -> str:
    """Return as many characters, which belong to no number and join none."""
    return "\t" * len(found if isinstance(found, str) else found[0])


def days(draft: Draft) -> Iterator[Spot]:
    """Check that dates occur in evidence or question, in any notation."""
    ground = draft.ground
    if not ground.passages:
        return
    for text, day in {day.text: day for day in dates.find(figures.plain(draft.answer))}.items():
        if not dates.is_known(day, ground.days, ground.years) and text not in ground.text:
            yield Spot(f"The date {text} is in no document; correct it, or remove it.", text)


def documents(draft: Draft) -> Iterator[Spot]:
    """Check that every document that an answer names by its number exists."""
    if not draft.ground.passages:
        return
    # A document or the question may speak of documents of its own.
    others = set(references(draft.ground.text))
    for number in dict.fromkeys(number for number in references(draft.answer) if number not in others):
        if draft.ground.evidence.find(number) is None:
            yield Spot(f"There is no document {number}.")


def references(answer: str) -> Iterator[int]:
    """Yield the numbers of the documents that a text names."""
    for found in _REFERENCE.finditer(languages.prose(answer)):
        for number in re.findall(r"\d+", next(filter(None, found.groups()))):
            yield int(number)


def names(draft: Draft) -> Iterator[Spot]:
    """Check that names of two words or more, and names after a title, occur in the evidence or the question.

    German writes every noun like a name, so there only names after a title are checked.
    """
    if not draft.ground.passages:
        return
    text = _HEADING.sub("", languages.prose(draft.answer))
    claimed = {found[1] for found in _TITLED.finditer(text)}
    if languages.guess(text) != "German":
        claimed |= {_bare(found, text) for found in _NAME.finditer(text) if not found[0].isupper()}
    for name in sorted(claimed):
        if not all(_is_known(word, draft.ground) for word in _parts(name)):
            yield Spot(f"The name {name!r} is in no document; correct or remove it.", name)


def _parts(name: str) -> Iterator[str]:
    """Yield the words of a name that tell it from others: no initials, particles, days or months."""
    for part in re.split(r"[\s-]+", name):
        bare = _POSSESSIVE.sub("", part)
        if bare[:1].isupper() and not bare.endswith("."):
            yield from (word for word in words(bare) if len(word) > 1 and word not in _NOBODY)


def _bare(found: re.Match[str], text: str) -> str:
    """Return the name without a first word that only begins a sentence."""
    name = found[0]
    if not _SENTENCE_START.search(text[: found.start()][-8:] or "\n"):
        return name
    first, _, rest = name.partition(" ")
    opens = first.casefold() in _OPENERS or first.casefold().endswith("ly") or not first.isascii()
    return rest if opens else name


def _is_known(word: str, ground: Ground) -> bool:
    """Test if a word, or another of its forms, occurs: Петрова for Петров, Müllers for Müller."""
    near = ground.names.get(word[:3], set())
    return word in near or any(_same_stem(word, other) for other in near)


def _same_stem(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    if len(longer) - len(shorter) > 3:
        return False
    if longer.startswith(shorter):
        return True
    # Latin names differ by their last letter (Anna, Anne); elsewhere that is an ending.
    stem = shorter[: max(3, len(shorter) - 2)]
    return one[0] > "\u036f" and longer.startswith(stem)

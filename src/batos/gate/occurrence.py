"""Checks that the statements of an answer occur in its ground: numbers, dates and names; a wrong sum is put right."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import Final

from batos.gate import dates, figures, languages, numerals, sums
from batos.gate.figures import Figure
from batos.gate.ground import Draft, Ground, Spot
from batos.gate.sums import WrittenSum
from batos.gate.uncheckable import without_forms
from batos.memory.segmentation import words

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
#: A capitalised word behind another word that is none.
_SINGLE = re.compile(rf"(?<=[a-zà-ÿа-яё] )(?!(?:{_TITLE})\b)({_CAPITAL})(?![\w-]|[.'’]\w| [{_UPPER}])")
_TITLED = re.compile(rf"(?<!\w)(?:(?:{_TITLE})\.? )+({_CAPITAL}(?:{_LINK}{_CAPITAL})*)")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:…\n]|[-*•]|\d[.)])[\s\"“„«'(*_]*\Z")
#: A block of a program, beside which types and libraries are named.
_PROGRAM = re.compile(r"```(?!json|ya?ml|csv)\w", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?\Z")

_READ = tomllib.loads(files(__package__).joinpath("occurrence.toml").read_text(encoding="utf-8"))
#: Capitalised words that name nobody: months and days, and what sentences begin with.
_NOBODY = frozenset(" ".join(_READ["nobody"]).split())
_OPENERS = languages.SMALL_WORDS | frozenset(" ".join(_READ["openers"]).split())


#: From here on a result is shown with six digits.
_LARGEST = Decimal(10) ** 12
#: Text in square brackets that stands for what a person fills in.
_PLACEHOLDER = re.compile(r"\[[^\]\[\n]{1,60}\](?![(\[])|\{[A-Za-z_ ]{2,40}\}|<[A-Za-z_ ]{2,40}>")


def numbers(draft: Draft) -> list[Spot] | None:
    """Check that numbers occur in evidence or question, or follow from others; counts below ten always pass.

    Returns None where nothing is to be checked: there are no documents, or no numbers.
    """
    ground = draft.ground
    text, strange = _blank_other_digits(claims(draft.answer), ground)
    spelled = numerals.number_words(languages.prose(text), languages.guess(text) or "")
    spelled |= dict(numerals.chinese_numbers(text))
    # A number of two parts, such as 3万5千, is the one that they make.
    mixed = [word for word in spelled if any(map(str.isdigit, word))]
    found = [each for each in figures.find(text) if not any(each.text in word for word in mixed)]
    if not ground.passages or not (strange or spelled or any(not each.counts for each in found)):
        return None
    worked = sums.calculate_sums(text, found)
    told = [*strange, *_strange_figures(text, found, worked, ground)]
    told += [word for word, value in spelled.items() if value not in {*ground.figures.values, *worked.results}]
    return [Spot("number", each) for each in dict.fromkeys(told)]


def _strange_figures(text: str, found: list[Figure], worked: sums.CalculatedSums, ground: Ground) -> Iterator[str]:
    """Yield the figures of a text that the ground has not, and that follow from none of those it has."""
    held = [(each.start, each.end) for each in dates.find_spans(text) if ground.holds_span(each)]
    wrong = {
        each.stated.end for each in sums.written_sums(text, found) if not each.is_right
    }  # another check tells these
    sure = {
        place
        for place, each in enumerate(found)
        if each.start in worked.constants or _is_there(each, ground) or worked.shows(each) or _is_in(each, held)
    }
    for place, each in enumerate(found):
        if place in sure or each.end in wrong:
            continue
        if each.start not in worked.operands and sums.follows_from_others(found, place, sure, text):
            sure.add(place)
        else:
            yield each.text


def _is_in(figure: Figure, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= figure.start < end for start, end in spans)


def claims(answer: str) -> str:
    """Return an answer without its code and its placeholders; a block that is data stays."""
    return _PLACEHOLDER.sub(_blank_placeholder, figures.plain(languages.prose(answer, keeps_data=True)))


def _blank_placeholder(found: re.Match[str]) -> str:
    return found[0] if any(map(str.isdigit, found[0])) else _blank(found)


def written_sums(draft: Draft) -> list[Spot] | None:
    """Check that the sums which an answer writes out with their results are right, units included."""
    text, made = sums_of(draft)
    found = [
        Spot(
            "sum",
            " ".join(text[each.terms[0].start : each.stated.end].split()),
            (("result", _short_text(each.results[0])),),
        )
        for each in made
        if not each.is_right
    ]
    return found if made else None


def sums_of(draft: Draft) -> tuple[str, list[WrittenSum]]:
    """Return what an answer claims, without its dates, and the sums that it writes out, by their places there.

    Where a difference is asked for, one that it names is a sum too.
    """
    text = claims(draft.answer)
    text = _without(text, [(day.start, day.end) for day in dates.find(text)])
    found = figures.find(text)
    named = sums.named_differences(text, found) if sums.asks_for_difference(draft.ground.question) else ()
    return text, [*sums.written_sums(text, found), *named]


def _short_text(result: Decimal) -> str:
    """Return a result as a person reads it: without more digits than help."""
    return f"{result.quantize(Decimal('0.0001')).normalize():f}" if abs(result) < _LARGEST else f"{result:.6g}"


def _is_there(figure: Figure, ground: Ground) -> bool:
    # A quotation may begin or end inside a row of digit groups, which is then another number, as it stands.
    as_it_stands = not figure.text.isdigit() and bool(figure.readings) and figure.text in ground.text
    known = (as_it_stands and not figure.scales) or figures.is_known(figure, ground.figures)
    return known or bool(figure.values & (ground.products | ground.totals))


def _blank_other_digits(answer: str, ground: Ground) -> tuple[str, list[str]]:
    """Blank the parts of an answer that state no number of their own: list marks, references, dates and times of day
    that the ground has. Return the times that it has not as well.
    """
    text = answer
    for form in (_LIST_MARK, _STEP, _REFERENCE):
        text = form.sub(_blank, text)
    text = _without(text, [(day.start, day.end) for day in dates.find(text)])
    text = _without(text, [span[:2] for span in dates.clock_spans(text) if ground.holds_minutes(span[2])])
    known, strange = [], []
    for (hour, minute), (start, end) in dates.times(text):
        if {(hour, minute), (hour + 12, minute), (hour - 12, minute)} & ground.times:
            known.append((start, end))
        elif ":" in text[start:end]:
            known.append((start, end))
            strange.append(text[start:end])
    return _without(text, known), strange


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


def days(draft: Draft) -> list[Spot] | None:
    """Check that dates occur in evidence or question, in any notation, or lie a span that is named there from one."""
    ground = draft.ground
    found = {day.text: day for day in dates.find(claims(draft.answer))}
    if not ground.passages or not found:
        return None
    spans = dates.find_spans(draft.answer)
    return [Spot("day", text) for text, day in found.items() if not _is_known_day(day, ground, spans)]


def _is_known_day(day: dates.Day, ground: Ground, spans: list[dates.TimeSpan]) -> bool:
    if dates.is_known(day, ground.days, ground.years) or day.text in ground.text:
        return True
    reached = ground.reached_days | ground.days_from(spans)
    return any(
        (each.month, each.day) == (month, number or each.day) and year in (0, each.year)
        for year, month, number in day.readings
        for each in reached
    )


def documents(draft: Draft) -> list[Spot] | None:
    """Check that every document that an answer names by its number exists."""
    named = list(dict.fromkeys(references(draft.answer)))
    if not draft.ground.passages or not named:
        return None
    # A document or the question may speak of documents of its own.
    others = set(references(draft.ground.text))
    unknown = (each for each in named if each not in others and draft.ground.evidence.find(each) is None)
    return [Spot("document", "", (("number", str(each)),)) for each in unknown]


def references(answer: str) -> Iterator[int]:
    """Yield the numbers of the documents that a text names."""
    for found in _REFERENCE.finditer(languages.prose(answer)):
        for number in re.findall(r"\d+", next(filter(None, found.groups()))):
            yield int(number)


def names(draft: Draft) -> list[Spot] | None:
    """Check that names, beside those of one word that begin a sentence, occur in the evidence or the question.

    German writes every noun like a name: there, and beside a program, only names after a title are checked.
    """
    text = without_forms(_HEADING.sub("", claims(draft.answer)))
    claimed = {found[1] for found in _TITLED.finditer(text)}
    spoken = languages.guess(text) or languages.guess(draft.ground.question) or draft.ground.index.language
    if spoken != "German" and not _PROGRAM.search(draft.answer):
        claimed |= {_bare(found, text) for found in _NAME.finditer(text) if not found[0].isupper()}
        claimed |= {found[1] for found in _SINGLE.finditer(text)}
    if not draft.ground.passages or not claimed:
        return None
    unknown = (name for name in sorted(claimed) if not all(_is_known(word, draft.ground) for word in _parts(name)))
    return [Spot("name", each) for each in unknown]


def full_names(text: str) -> Iterator[str]:
    """Yield the names of several words in a text, and those after a title, without what only begins a sentence."""
    for found in _TITLED.finditer(text):
        yield found[1]
    for found in _NAME.finditer(text):
        if " " in (name := _bare(found, text)):
            yield name


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


_PART: Final = re.compile(r"[.,](\d+)\Z")
_GROUPED: Final = re.compile(r"\d([.,'’ \u00a0\u202f])\d{3}(?!\d)")
#: Digits of a group, which a decimal part has not.
_GROUP: Final = 3


def correct_sums(draft: Draft) -> str:
    """Return an answer whose wrong sums have their right results; "" where none is corrected.

    Only totals and differences are, of numbers that the documents or the question have, where their marks have one
    meaning. A wrong result that the answer repeats is replaced everywhere, unless a document has that number too.
    """
    if "```" in draft.answer:
        return ""
    answer = draft.answer
    for each in sums_of(draft)[1]:
        if _is_sure(draft, each):
            right = write_like(each.grouped, [figure.text for figure in (*each.terms, each.stated)])
            answer = re.sub(rf"(?<![\d.,]){re.escape(each.stated.text)}(?![.,]?\d)", right, answer)
    return "" if answer == draft.answer else answer


def _is_sure(draft: Draft, made: WrittenSum) -> bool:
    """Test if a sum is wrong, and its right result beyond doubt."""
    known, numbers = draft.ground.figures, (*made.terms, made.stated)
    plain = not any(each.scales or each.is_percent or each.measured for each in numbers)
    return (
        not made.is_right
        and made.is_addition
        and (len(made.results) == 1 or _are_thousands(numbers))
        and made.grouped >= 0
        and plain
        and all(figures.is_known(each, known) for each in made.terms)
        and not made.stated.values & known.values
    )


def _are_thousands(numbers: Sequence[Figure]) -> bool:
    """Test if the numbers that could be read in two ways all have one mark of thousands, and no other has that mark."""
    marks = {found[0][0] for each in numbers if (found := _PART.search(each.text)) and len(found[1]) == _GROUP}
    decimals = {found[0][0] for each in numbers if (found := _PART.search(each.text)) and len(found[1]) != _GROUP}
    return len(marks) == 1 and not marks & decimals


def write_like(number: Decimal, examples: Sequence[str]) -> str:
    """Return a number with the marks and the decimals that other numbers of its sum have.

    >>> write_like(Decimal("4400.95"), ["7.738,45", "3.337,50"]), write_like(Decimal(1300), ["1000", "300"])
    ('4.400,95', '1300')
    """
    group = next((found[1] for each in examples if (found := _GROUPED.search(each))), "")
    parts = [found for each in examples if (found := _PART.search(each)) and len(found[1]) != _GROUP]
    mark = next((found[0][0] for found in parts), "," if group == "." else ".")
    digits = max([len(found[1]) for found in parts] + [max(0, -int(number.normalize().as_tuple().exponent))])
    whole, _, part = f"{number:,.{digits}f}".partition(".")
    return whole.replace(",", group) + (mark + part if part else "")

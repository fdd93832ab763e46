"""Find in a question what has a form of its own: addresses, paths, numbers, journeys and the words of an enum."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from batos.agency.toolbox import Tool
from batos.minds.tools import words

ADDRESS: Final = re.compile(r"https?://[^\s<>\"'»”]+[^\s<>\"'»”.,;:!?)]", re.IGNORECASE)
MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PATH: Final = re.compile(r"(?<![\w:/.])(?:~|\.{0,2})?/[\w.~-][\w./~-]*[\w~]|\b[A-Za-z]:\\[\w\\.-]+")
_NUMBER: Final = re.compile(r"(?<![\w.,-])\d[\d.,]*(?![\w-])")
#: Numbers of things: with a letter, a dash, or of several figures.
_CODE: Final = re.compile(r"(?<![\w/.@-])(?=[\w-]*\d)[A-Z]{0,4}-?\d[\w-]*\d\b|(?<![\w/.@-])[A-Z]{1,4}\d\b")
#: A name: words with capitals, and the small ones within it.
NAME: Final = (
    r"[A-ZÀ-ÖØ-Þ][\w'’.-]*(?:\s(?:(?:de|del|la|von|van|der|am|an|of|the|upon|le|les|sur)\s){0,2}[A-ZÀ-ÖØ-Þ][\w'’.-]*)*"
)


def properties_of(tool: Tool) -> Mapping[str, Mapping[str, Any]]:
    """Return the schema of each argument of a tool."""
    found: Any = tool.parameters.get("properties", {})
    return found if isinstance(found, dict) else {}


def list_required(tool: Tool) -> tuple[str, ...]:
    """Return the names of the arguments that a call must have; all where the tool names none."""
    named = tool.parameters.get("required")
    return tuple(map(str, named)) if isinstance(named, (list, tuple)) else tuple(properties_of(tool))


def form_of(name: str, schema: Mapping[str, Any]) -> str:
    """Return the form that an argument must have in a question: address, mail, path, code, number, or ""."""
    kind, form = schema.get("type"), schema.get("format")
    said = describe_argument(name, schema)
    if form == "email" or " e mail address " in said:
        return "mail"
    if kind in ("number", "integer"):
        return "number"
    if re.search(r" (?:path|directory) ", said):
        return "path"
    if form in ("uri", "url") or (kind == "string" and name in ("address", "link", "uri", "url")):
        return "address"
    is_plain = kind == "string" and form is None and "pattern" not in schema and "enum" not in schema
    return "code" if is_plain and re.search(r" (?:number|id|code|identifier) ", said) else ""


def describe_argument(name: str, schema: Mapping[str, Any]) -> str:
    """Return the plain words of an argument's name and description in one line."""
    return words.plain_line(f"{name.replace('_', ' ')} {schema.get('description', '')}")


def find_form(form: str, question: str) -> list[str]:
    """Return what stands in a question in a form of an argument."""
    if form in ("path", "code"):
        question = ADDRESS.sub(" ", question)
    pattern = {"address": ADDRESS, "mail": MAIL, "path": PATH, "code": _CODE, "number": _NUMBER}[form]
    return [found[0] for found in pattern.finditer(question)]


def find_number(question: str) -> float | None:
    """Return the only number of a question; None where there is none, or several."""
    numbers = [each for each in map(_number, find_form("number", question)) if each is not None]
    return numbers[0] if len(numbers) == 1 else None


def _number(text: str) -> float | None:
    """Return the value of a number; a point or comma before exactly three figures joins them."""
    bare = text.rstrip(".,")
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", bare):
        bare = re.sub(r"[.,]", "", bare)
    try:
        return float(bare.replace(",", "."))
    except ValueError:
        return None


def find_enum(values: Collection[Any], question: str) -> list[Any]:
    """Return the values of an enum that a question names, in its order."""
    line, known = words.plain_line(question), words.keys_of("values")
    places: list[tuple[int, str, Any]] = []
    for value in values:
        name = words.plain(str(value))
        pattern = words.phrases("values", name) if name in known else re.compile(f"(?<= )({re.escape(name)})(?= )")
        found = pattern.search(line)
        if found is not None:
            places.append((found.start(), name, value))
    return [value for _, _, value in sorted(places, key=lambda each: each[:2])]


def find_journey(question: str) -> tuple[str, str] | None:
    """Return the two places of a way, by the words before them; None where there is none.

    >>> find_journey("Is there a train from Kiel to Ulm?")
    ('Kiel', 'Ulm')
    """
    for pair in words.read_list("journey", "pairs").split("\n"):
        first, _, second = (each.strip() for each in pair.partition("|"))
        if not first:
            continue
        forms = [accent_pattern(each) for each in (first, second)]
        found = re.search(rf"(?<!\w){forms[0]}\s(?P<a>{NAME})\s{forms[1]}\s(?P<b>{NAME})", question)
        if found is not None:
            return bare(found["a"]), bare(found["b"])
    return None


def accent_pattern(word: str) -> str:
    """Return the pattern of a plain word in a text with accents, whatever its case."""
    letters = {"a": "[aàâáA]", "u": "[uùüúU]", "e": "[eéèE]", " ": "[ '’]"}
    return "".join(letters.get(each, f"[{each}{each.upper()}]" if each.isalpha() else each) for each in word)


def bare(text: str) -> str:
    """Return a text without the marks at its ends."""
    return text.strip(" .,;:?!'’")

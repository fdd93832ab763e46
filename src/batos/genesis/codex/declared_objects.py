"""Declared objects that do not exist yet: the text of an API, parsed into the methods that the object will have."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, ConfigDict

from batos.genesis.codex.value_checks import CLOSED, Text, ValueFault, refusal
from batos.guardian.parsing import parse
from batos.guardian.policy import SHIPPED
from batos.image import roots

#: Most methods of one object: all are written in one reply, which half of a window must hold.
MOST: Final = 6
#: The most characters of a signature; Python's own parser reads it.
SIGNATURE: Final = 200

_NAME = re.compile(r"[a-z][a-z0-9_]{0,38}[a-z0-9]")
_SELECTOR = re.compile(r"[a-z][a-z0-9_]{0,78}_")
#: A line that begins as a call does.
_CALL = re.compile(r"(\w+)\(")
_TAKEN: Final = frozenset((*roots.OBJECTS, *roots.RECORDS, "name", "tools"))
#: Selectors that every generated object understands already.
_INHERITED: Final = frozenset({"log_", "recall_", "infer_", "embed_", "index_document_", "forget_"})


@dataclass(frozen=True, slots=True)
class ApiMethod:
    """A method of an API: its selector, its signature with `self`, and the description of its task."""

    selector: str
    signature: str
    text: str


def _check_name(name: str) -> str:
    if not (_NAME.fullmatch(name) and "__" not in name):
        remedy = "Write up to 40 lower case letters, digits and `_`, a letter first and no `_` at the end."
        raise refusal(ValueFault(f"`{name}` cannot be an object's name", remedy))
    if name in _TAKEN:
        raise refusal(ValueFault(f"`{name}` is an object of the image", "Give the absent one another name."))
    if _protected(name):
        raise refusal(ValueFault(f"`{name}` is a protected name", "Give it another name."))
    return name


def _check_api(text: str) -> str:
    if faults := api_of(text)[1]:
        raise refusal(*(ValueFault(*each) for each in faults))
    return text


@dataclass(frozen=True, slots=True)
class AbsentObject:
    """An object that is declared and does not exist: a message to it is a wish for a tool."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    name: Annotated[Text, AfterValidator(_check_name)]
    api: Annotated[Text, AfterValidator(_check_api)]

    @property
    def methods(self) -> tuple[ApiMethod, ...]:
        """Return the methods that the object will have."""
        return api_of(self.api)[0]


def api_of(text: str) -> tuple[tuple[ApiMethod, ...], tuple[tuple[str, str], ...]]:
    """Parse the text of an API: return its methods, and each fault as (what, remedy).

    A line that begins with a call, `often_(text, part)`, declares a method. The rest of that line and the indented
    lines below it describe the method. All other lines apply to every method and are added to each description.
    """
    found: list[tuple[str, str, list[str]]] = []
    general: list[str] = []
    faults: list[tuple[str, str]] = []
    for line in text.strip("\n").split("\n"):
        call = _CALL.match(line)
        if call is not None:
            signature, rest = _split(line)
            found.append((call[1], signature, [rest] if rest else []))
        elif line[:1].isspace() and line.strip() and found and not general:
            found[-1][2].append(line.strip())
        elif line.strip():
            general.append(line.strip())
    methods = []
    for selector, signature, said in found:
        made, why = _read_signature(selector, signature)
        silent = (f"the api does not say what `{selector}` answers", "Write that after the call.")
        faults += why if said or why else [silent]
        methods.append(ApiMethod(selector, made, "\n".join((*said, *general))))
    return tuple(methods), (*faults, *_between([selector for selector, _, _ in found]))


def _split(line: str) -> tuple[str, str]:
    """Split a line after the closing bracket of its call; return the whole line and "" if the bracket is never
    closed.
    """
    depth = 0
    for at, character in enumerate(line):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and character == ")":
            return line[: at + 1], line[at + 1 :].lstrip(" :->").strip()
    return line, ""


def _read_signature(selector: str, call: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the signature of a method that is called like this, and its faults."""
    example = "Write it as `often_(text, part)`, at the beginning of a line."
    if not _SELECTOR.fullmatch(selector):
        return call, [
            (
                f"the api declares `{selector}`, which is no selector",
                "A selector is lower case letters, digits and `_`, and ends in `_`.",
            )
        ]
    if selector in _INHERITED or _protected(selector):
        return call, [(f"the api declares `{selector}`, which is the kernel's", "Give it another name.")]
    made = function_of(call)
    if made is None:
        return call, [(f"the api declares `{call[:SIGNATURE]}`, which is not how a method is called", example)]
    arguments = made.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    own = names if names[:1] == ["self"] else ["self", *names]
    if len(set(own)) < len(own) or arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        return call, [(f"the api declares `{call[:SIGNATURE]}`: a method takes named arguments, each once", example)]
    inside = call[len(selector) + 1 : -1].strip()
    return call if names[:1] == ["self"] else f"{selector}(self{', ' if inside else ''}{inside})", []


def function_of(signature: str) -> ast.FunctionDef | None:
    """Return the function that has a signature, of at most SIGNATURE characters; None if it is no signature."""
    try:
        parsed = parse(f"def {signature}: ...").body if len(signature) <= SIGNATURE else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    made = parsed[0] if len(parsed) == 1 else None
    whole = isinstance(made, ast.FunctionDef) and len(made.body) == 1 and made.returns is None
    return made if whole and isinstance(made, ast.FunctionDef) else None


def _between(selectors: list[str]) -> list[tuple[str, str]]:
    """List the faults that several declarations have together: none at all, one twice, too many."""
    if not selectors:
        return [
            (
                "the api declares no method",
                "Begin a line with each: `words_(text) answers how many words it has`.",
            )
        ]
    twice = sorted({each for each in selectors if selectors.count(each) > 1})
    faults = [(f"the api declares `{each}` twice", "Remove one of them.") for each in twice]
    if len(selectors) > MOST:
        faults.append(
            (
                f"the api declares {len(selectors)} methods, and an object is made of at most {MOST}",
                "Declare two objects.",
            )
        )
    return faults


def _protected(name: str) -> bool:
    return bool(SHIPPED.protected_pattern.search(name) or SHIPPED.kernel_pattern.search(name))

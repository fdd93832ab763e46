"""Find the code in a model's reply: fenced or not, among prose, indented or not; no line of it is made up."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from batos.guardian.parsing import parse

PROSE: Final = "text around the code was left out"
INDENTED: Final = "the lines after the first were indented"
COLON: Final = "`:` was put at the end of the first line"
HEADED: Final = "the first line was put before the body"

_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARK: Final = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
_DEF: Final = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
_CLASS: Final = re.compile(r"^[ \t]*class[ \t]+\w+", re.MULTILINE)
#: A line with which code begins that stands without a fence.
_BEGIN: Final = re.compile(
    r"(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]|@\w"
    r"|import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w.]+)*[ \t]*(?:#.*)?$"
    r"|from[ \t]+[\w.]+[ \t]+import[ \t]+[\w(*])"
)
_HEADER: Final = re.compile(r"^((?:async[ \t]+)?def[ \t]+\w+[ \t]*\([^#\n]*\))[ \t]*$", re.MULTILINE)
_PROMPT: Final = re.compile(r"^(?:>>>|\.\.\.)(?: |$)", re.MULTILINE)
#: A line that is code at the wrong indentation, and no prose: what stands there may belong to the function.
_CODE: Final = re.compile(
    r"(?:(?:else|elif|except|finally|try|for|while|if|with)\b[^\n]*:[ \t]*(?:#.*)?"
    r"|(?:return|yield|raise)\b[ \t]*[^\w\s].*"
    r"|(?:return|yield|raise)[ \t]+[\w.]+(?:[ \t]*[^\w\s'].*)?|pass|break|continue|\w+[ \t]*[-+*/]?=[^=].*)$"
)
#: So many ends of the code are tried before it is taken as it is.
_MOST_CUTS: Final = 40


@dataclass(frozen=True, slots=True)
class CodeText:
    """The code of a reply, and what was changed to have it, as short sentences."""

    code: str
    changes: tuple[str, ...] = ()


def find_code(text: str, selector: str, header: str = "") -> CodeText:
    r"""Return the code of a reply: the block with the function of that name, else the first with any function.

    Code that is no Python is mended only where nothing else can be meant: prose behind it is cut off, a body without
    indentation is indented, a missing colon is written. `header` is put before a body that stands alone.

    >>> find_code("Sure!\n```python\ndef f_(self):\n    return 1\n```\nIt works.", "f_").code
    'def f_(self):\n    return 1\n'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = [found[2] for found in _FENCE.finditer(text)]
    chosen = _choose(blocks, selector)
    if chosen is None:
        found = _code_in_prose(text, blocks, header)
    else:
        outside = _FENCE.sub("", text).strip() or len(blocks) > 1
        found = CodeText(chosen, (PROSE,) if outside else ())
    code = _without_prompts(found.code)
    mended = _mend(_tidy_ends(code), found.changes)
    return CodeText(f"{mended.code}\n" if mended.code else "", mended.changes)


def _choose(blocks: list[str], selector: str) -> str | None:
    """Return the block that defines the function, else the first that defines any; None if none does."""
    named = [block for block in blocks if any(found[1] == selector for found in _DEF.finditer(block))]
    return next(iter(named or [block for block in blocks if _DEF.search(block)]), None)


def _code_in_prose(text: str, blocks: list[str], header: str) -> CodeText:
    """Return the code of a text in which no fence holds a function."""
    if _DEF.search(text) and _is_python(text):
        return CodeText(text)
    lines = text.split("\n")
    begin = next((place for place, line in enumerate(lines) if _BEGIN.match(line.strip())), None)
    if begin is not None:
        before = any(line.strip() and not _MARK.match(line) for line in lines[:begin])
        kept = [line for line in lines[begin:] if not _MARK.match(line)]
        return CodeText("\n".join(kept), (PROSE,) if before else ())
    body = _body_alone(blocks[0] if blocks else text)
    if header and body:
        outside = bool(blocks) and bool(_FENCE.sub("", text).strip())
        return CodeText(f"{header}\n{body}", (*((PROSE,) if outside else ()), HEADED))
    return CodeText("\n".join(line for line in lines if not _MARK.match(line)))


def _body_alone(code: str) -> str:
    """Return the lines as the body of a function, "" if they are none that returns something."""
    lines = _tidy_ends(code).split("\n")
    if not any(line.strip().startswith("return ") for line in lines):
        return ""
    body = textwrap.indent("\n".join(lines), "    ")
    return body if _is_python(f"async def body():\n{body}\n") else ""


def _without_prompts(code: str) -> str:
    """Return code without the prompts of an interpreter, if each of its lines has one."""
    lines = [line for line in code.split("\n") if line.strip()]
    if lines and all(_PROMPT.match(line.strip()) for line in lines):
        return "\n".join(_PROMPT.sub("", line.strip()) for line in lines)
    return code


def _tidy_ends(code: str) -> str:
    """Return code without blank lines at its ends and without a common indentation."""
    lines = code.expandtabs(4).split("\n") if "\t" in code and not _is_python(f"{code}\n") else code.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    whole = textwrap.dedent("\n".join(lines))
    first = lines[0][: len(lines[0]) - len(lines[0].lstrip())] if lines else ""
    if whole[:1] not in (" ", "\t") or not first:
        return whole
    # A sentence behind the code may be less indented than the code itself.
    return "\n".join(line.removeprefix(first) for line in lines)


def _mend(code: str, changes: tuple[str, ...]) -> CodeText:
    """Return the code as Python if one of the listed changes makes it so; else as it is."""
    if _is_python(f"{code}\n"):
        return CodeText(code, changes)
    for whole, told in _mendings(code):
        for cut in _cuts(whole):
            if _is_python(f"{cut}\n"):
                more = (*told, *((PROSE,) if cut != whole else ()))
                return CodeText(cut, tuple(dict.fromkeys((*changes, *more))))
    return CodeText(code, changes)


def _mendings(code: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the code as it is, with a colon, indented, and with both, each with what was changed."""
    yield code, ()
    closed = _HEADER.sub(r"\1:", code)
    if closed != code:
        yield closed, (COLON,)
    for whole, told in ((code, ()), (closed, (COLON,))):
        indented = _indent_body(whole)
        if indented != whole and (whole is code or closed != code):
            yield indented, (*told, INDENTED)


def _indent_body(code: str) -> str:
    """Return the code with all lines after the header of its only function indented, if none of them is."""
    heads = list(_DEF.finditer(code))
    lines = code.split("\n")
    if len(heads) != 1 or _CLASS.search(code):
        return code
    at = code.count("\n", 0, heads[0].end())
    rest = lines[at + 1 :]
    first = next((line for line in rest if line.strip()), "")
    if not first or first[0] in " \t" or not lines[at].rstrip().endswith(":"):
        return code
    return "\n".join((*lines[: at + 1], *(f"    {line}" if line.strip() else line for line in rest)))


def _cuts(code: str) -> Iterator[str]:
    """Yield the code, then without its last lines: only from a line that is not indented, behind the first function.

    A line of a function's body is never left out, nor is one that may be of it and has lost its indentation.
    """
    yield code
    lines = code.split("\n")
    head = _DEF.search(code)
    if head is None:
        return
    first = code.count("\n", 0, head.end()) + 1
    places = [at for at in range(first, len(lines)) if lines[at].strip() and lines[at][0] not in " \t"]
    code_at = next((at for at in places if _CODE.match(lines[at])), len(lines))
    for at in [at for at in reversed(places) if at < code_at][:_MOST_CUTS]:
        kept = "\n".join(lines[:at]).rstrip()
        if "\n" in kept[head.end() :]:
            yield kept


def _is_python(code: str) -> bool:
    return tree_of(code) is not None


def tree_of(code: str) -> ast.Module | None:
    """Return the tree of a text that is Python; None for any other."""
    try:
        return parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None

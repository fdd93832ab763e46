"""The pages of docs/, which are in the package: found by name, by heading, by what a finding or an error is called."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import batos
from batos.protocol import errors
from batos.protocol.errors import BatosError, NotFound

_HEADING = re.compile(r"^(#{1,6}) (.*)$")
_ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>')
#: A row of the table "How do I", and a link to a page or a part of one.
_TASK = re.compile(r"^\| (.+?) \| (.+?) \| (\[.+?) \|$", re.MULTILINE)
_PAGE = re.compile(r"\]\(([\w-]+)\.md(?:#[\w-]+)?\)")
_MARKS = re.compile(r'<!--.*?-->\n?|<a id="[\w-]+"></a>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: a heading with what stands under it, or the paragraph at an anchor."""

    page: str
    anchor: str
    title: str
    text: str


@cache
def pages() -> dict[str, str]:
    """Return every page's text by its name: an installed package has them within, a checkout beside it."""
    packed = resources.files(batos) / "docs"
    folder = packed if packed.is_dir() else Path(__file__).resolve().parents[3] / "docs"
    found = {each.name.lower(): each for each in folder.iterdir() if each.name.endswith(".md")}
    return {name.removesuffix(".md"): found[name].read_text(encoding="utf-8") for name in sorted(found)}


def title(page: str) -> str:
    """Return the title of a page."""
    return pages()[page].partition("\n")[0].lstrip("# ")


def find_text(topic: str) -> str:
    """Return the text on a topic: `docs/maintenance.md#backup`, `backup`, `ollama.answers`, `model_missing`.

    NotFound, with what is near, where nothing is called so.
    """
    name, _, anchor = topic.strip().removeprefix("docs/").partition("#")
    name = name.removesuffix(".md").lower()
    if not anchor and name in pages():
        return strip_marks(pages()[name])
    if not anchor and (told := _error(name)):
        return told
    wanted = slug((anchor or name).replace(".", "-"))
    sections = [each for each in _sections() if not anchor or each.page == name]
    exact = [each for each in sections if wanted and wanted in (each.anchor, slug(each.title))]
    if exact:
        return strip_marks("\n\n".join(each.text for each in exact))
    tasks = [] if anchor else list(_tasks(wanted))
    within = [each for each in sections if wanted and wanted in slug(each.title)]
    if within:
        lines = [f"  batos help {each.page}#{each.anchor or slug(each.title)}" for each in within]
        tasks.append("\n".join([f"{topic!r} is mentioned in:", *lines]))
    if tasks:
        return "\n\n".join(tasks)
    raise NotFound(
        f"there is no help on {topic!r}{_near(name)}", field="topic", remedy="`batos help` lists the topics."
    )


def _tasks(word: str) -> Iterator[str]:
    """Yield what a person may want in which a word stands, with the command and the page: rows of "How do I"."""
    text = next(each.text for each in _sections() if (each.page, each.title) == ("readme", "How do I"))
    for want, command, more in _TASK.findall(text):
        if word and word in slug(want).split("-"):
            pages_named = ", ".join(f"`batos help {each}`" for each in _PAGE.findall(more))
            yield f"{want}:\n  {command}\n  more: {pages_named}"


def slug(heading: str) -> str:
    """Write a heading as links to it are written.

    >>> slug("When `something` is wrong")
    'when-something-is-wrong'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def strip_marks(text: str) -> str:
    """Strip a page of the marks that are for browsers and for scripts."""
    return _MARKS.sub("", text).strip()


def _error(code: str) -> str:
    """Return what an error's code means, and what helps."""
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, BatosError) and kind.code == code:
            what = (kind.__doc__ or "").partition("\n")[0]
            again = "The same may work later." if kind.retry else ""
            lines = [f"{code}: {what}", kind.remedy, again, f"The command ends with exit code {kind.exit_code}."]
            return "\n".join(line for line in lines if line)
    return ""


@cache
def _sections() -> tuple[Section, ...]:
    return tuple(each for page, text in pages().items() for each in _read_sections(page, text))


def _read_sections(page: str, text: str) -> Iterator[Section]:
    lines = text.splitlines()
    coded = False
    for at, line in enumerate(lines):
        coded ^= line.startswith("```")
        if coded:
            continue
        if heading := _HEADING.match(line):
            end = _end(lines, at + 1, len(heading[1]))
            yield Section(page, "", heading[2], "\n".join(lines[at:end]).strip())
        elif anchor := _ANCHOR.match(line):
            end = next((n for n in range(at + 1, len(lines)) if not lines[n].strip()), len(lines))
            yield Section(page, anchor[1], anchor[1], "\n".join(lines[at:end]))


def _end(lines: list[str], start: int, level: int) -> int:
    """Find the line where a section ends: at the next heading that is no smaller."""
    coded = False
    for at in range(start, len(lines)):
        coded ^= lines[at].startswith("```")
        heading = None if coded else _HEADING.match(lines[at])
        if heading and len(heading[1]) <= level:
            return at
    return len(lines)


def _near(name: str) -> str:
    known = {*pages(), *(each.anchor or slug(each.title) for each in _sections())}
    near = difflib.get_close_matches(slug(name), known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""

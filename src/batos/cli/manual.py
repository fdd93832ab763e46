"""The pages of docs/, which are in the package: found by name or heading, and the verb `help`, which shows them."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from batos.cli import entry
from batos.cli.command_line import given_name
from batos.protocol import errors
from batos.protocol.errors import BatosError, NotFound
from batos.terminal.console import Console
from batos.terminal.layout import table

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
def list_pages() -> dict[str, str]:
    """Return every page's text by its name: an installed package has them within, a checkout beside it."""
    packed = resources.files("batos") / "docs"
    folder = packed if packed.is_dir() else Path(__file__).resolve().parents[3] / "docs"
    found = {each.name.lower(): each for each in folder.iterdir() if each.name.endswith(".md")}
    return {name.removesuffix(".md"): found[name].read_text(encoding="utf-8") for name in sorted(found)}


def title(page: str) -> str:
    """Return the title of a page."""
    return list_pages()[page].partition("\n")[0].lstrip("# ")


def find_text(topic: str) -> str:
    """Return the text on a topic: `docs/maintenance.md#backup`, `backup`, `ollama.answers`, `model_missing`.

    NotFound, with what is near, where nothing is called so.
    """
    name, _, anchor = topic.strip().removeprefix("docs/").partition("#")
    name = name.removesuffix(".md").lower()
    if not anchor and name in list_pages():
        return strip_marks(list_pages()[name])
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
    return tuple(each for page, text in list_pages().items() for each in _read_sections(page, text))


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
    known = {*list_pages(), *(each.anchor or slug(each.title) for each in _sections())}
    near = difflib.get_close_matches(slug(name), known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


_MAX_WIDTH = 100


def _topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a topic: return the pages and verbs that begin so."""
    pages = [CompletionItem(each, help=title(each)) for each in list_pages()]
    verbs = [CompletionItem(name, help=what) for name, (_, what) in entry.VERBS.items()]
    return [each for each in (*pages, *verbs) if str(each.value).startswith(incomplete)]


@click.command
@click.argument("topic", type=given_name, nargs=-1, shell_complete=_topics)
@click.option("--json", "as_json", is_flag=True, help="Results as JSON documents on stdout.")
def help(topic: tuple[str, ...], as_json: bool) -> None:
    """Show the documentation on a TOPIC; without one, list the topics.

    A topic is a page (operating), a part of one (maintenance#backup, or backup), a verb without a page (ask, method
    show), a name that the doctor or an error gives (ollama.answers, model_missing), or an address as messages show it
    (docs/codex.md).
    """
    console = Console.from_streams(sys.stdout, sys.stderr, as_json=as_json)
    if not topic:
        _list(console)
        return
    text = "" if " ".join(topic) in list_pages() else _verb(topic)
    text = text or find_text(" ".join(topic))
    if as_json:
        console.document({"topic": " ".join(topic), "text": text})
    elif sys.stdout.isatty():
        click.echo_via_pager(f"{text}\n")
    else:
        console.write(text)


def _list(console: Console) -> None:
    pages = {name: title(name) for name in list_pages()}
    if console.as_json:
        console.document({"topics": pages, "verbs": {name: what for name, (_, what) in entry.VERBS.items()}})
        return
    console.write(table([[name, what] for name, what in pages.items()], ["topic", "about"]))
    console.write(
        "\n`batos help TOPIC` shows one, `batos help VERB` what a verb takes, `batos --help` lists the verbs."
    )


def _verb(topic: tuple[str, ...]) -> str:
    """Return the help of a verb, or of a verb of a group; empty where the topic is none."""
    command: click.Command = entry.batos
    context = click.Context(command, info_name="batos")
    for name in topic:
        known = isinstance(command, click.Group) and name in command.list_commands(context)
        found = command.get_command(context, name) if known and isinstance(command, click.Group) else None
        if found is None:
            return ""
        names = entry.batos.context_settings["help_option_names"]
        context = click.Context(
            found, info_name=name, parent=context, help_option_names=names, max_content_width=_MAX_WIDTH
        )
        command = found
    return command.get_help(context)

"""The options that ask, submit and chat share for a question, and the brief that is made from them."""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, get_args

import click

from batos.cli import standard_input
from batos.cli.command_line import file_names
from batos.cli.verb_options import VerbCall
from batos.config import Settings
from batos.protocol.brief import (
    NO_MEMORY,
    Combine,
    EffortChoice,
    File,
    Install,
    Interpret,
    PersonaName,
    as_file,
    read_file,
)
from batos.protocol.errors import BriefError

#: The beginning of an address, which would have to be fetched.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
#: The form of an option's text, told where another was given.
_REMEDIES: Final = {
    "deadline": "Give a span from now, --deadline 90s (or 5m, 2h, 1d), or a moment, --deadline 2026-11-21T09:30Z.",
    "schema": """Name a file of JSON, or give its text: --schema '{"type": "object", "properties": {...}}'.""",
    "budget": "Give some of calls, tokens and seconds: --budget calls=5,tokens=2000,seconds=60.",
}
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")
#: The bounds of a budget, and the kind of number of each.
_BOUNDS: Final[Mapping[str, Callable[[str], float]]] = {"calls": int, "tokens": int, "seconds": float}


@dataclass(frozen=True, slots=True)
class BriefOptions:
    """The options of a question: how it is to be worked on.

    `fields` are those of a brief; `ancestor` and `in_reply_to` may still be `last`, which a door resolves.
    """

    fields: Mapping[str, object] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    voices: bool = False
    #: The answer is shown as it grows, or not; None: only on a terminal.
    stream: bool | None = None

    def brief(self, text: str, settings: Settings, client: str) -> dict[str, object]:
        """Return the brief of this question without its attachments, asked by the settings' user."""
        origin = {"door": "cli", "client": client}
        return {**self.fields, "text": text, "user": settings.asker, "origin": origin}

    def brief_and_files(self, text: str | None, called: VerbCall, client: str) -> tuple[dict[str, object], list[File]]:
        """Return the brief and its files; stdin is the question if none is given or it is `-`, and else a document.

        UsageError: there is no question. BriefError: stdin is asked for twice, is closed, or is no text.
        """
        mine = text is not None and text != "-"
        if not mine and "-" in self.paths:
            raise BriefError("stdin cannot be both the question and a file", field="text", remedy="Put one in a file.")
        brief = self.brief(standard_input.question(text, called.note, client), called.settings, client)
        files = self.files(called.settings, called.note)
        if mine and "-" not in self.paths:
            files += standard_input.document(called.settings.attachment_bytes, called.note)
        return brief, files

    def files(self, settings: Settings, say: Callable[[str], None]) -> list[File]:
        """Read the attachments, `-` being stdin. Raises: BriefError: one cannot be read or is no text."""
        limit = settings.attachment_bytes
        # A byte more than the limit is read, so that what is too long is refused and never cut.
        return [
            as_file(standard_input.NAME, standard_input.read_stdin(limit + 1, "attachments", say), limit)
            if path == "-"
            else read_file(_local(path), limit)
            for path in self.paths
        ]


def _local(path: str) -> Path:
    """Return a path on this machine; BriefError for an address."""
    if _ADDRESS.match(path):
        raise BriefError(
            f"{path} is an address, and nothing is fetched",
            field="attachments",
            remedy=f"Fetch it: curl -sL {shlex.quote(path)} | batos ask ... --file -",
        )
    return Path(path)


# -- values of options


def moment(text: str, now: datetime) -> str:
    """Return a span from `now` (`90s`, `5m`, `2h`, `1d`), or a moment with its zone, as ISO 8601 in UTC.

    Raises: BriefError: the text is neither.
    """
    span = _SPAN.fullmatch(text)
    try:
        found = now + timedelta(**{_UNITS[span[2]]: float(span[1])}) if span else datetime.fromisoformat(text)
        if found.tzinfo is None:
            raise _wrong("deadline", f"{text!r} names no time zone; end it with Z for UTC")
        return found.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise _wrong("deadline", f"{text!r} is neither a span nor a moment") from None


def bounds(text: str) -> dict[str, float]:
    """Read `calls=5,tokens=2000,seconds=60`, or some of these, as a brief's budget. Raises: BriefError: it is none."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (each.strip() for each in part.partition("="))
        if name not in _BOUNDS or name in found:
            raise _wrong("budget", f"{part!r} is not one of calls=N, tokens=N, seconds=N, each at most once")
        try:
            found[name] = _BOUNDS[name](number)
        except ValueError:
            raise _wrong("budget", f"{number!r} is not a number of {name}") from None
    return found


def read_schema(text: str) -> Any:
    """Read a JSON schema: the text itself, or the name of a file with it. Raises: BriefError: it is no JSON."""
    try:
        return json.loads(text if text.lstrip().startswith("{") else Path(text).read_bytes())
    except OSError as error:
        raise _wrong("schema", f"{text!r} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _wrong("schema", f"it is not JSON: {error}") from None


def _wrong(name: str, what: str) -> BriefError:
    return BriefError(f"{name}: {what}", field=name, remedy=_REMEDIES.get(name, f"Correct --{name}."))


#: Options that are a field of the brief under another name, or inside one: option -> path of the field.
_PLACES: Final = {
    "reply_to": ("in_reply_to",),
    "combine": ("policy", "combine"),
    "install": ("policy", "install"),
    "interpret": ("policy", "interpret"),
    "wait_ollama": ("policy", "wait_ollama"),
    "memory": ("policy", "memory"),
    "only_memory": ("policy", "only_memory"),
}


#: Options whose text means something else.
_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    "deadline": lambda text: moment(text, datetime.now(UTC)),
    "budget": bounds,
    "grants": list,
    "schema": read_schema,
}


def policy_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb what a mission may say of methods that there are not: `install` and `interpret`."""
    install = click.option(
        "--install",
        type=click.Choice(get_args(Install)),
        help="The model writes code for a facet after the answer, before it, after your approval, or never.",
    )
    interpret = click.option(
        "--interpret",
        type=click.Choice(get_args(Interpret)),
        help="A facet without code: the model follows its words, or the mission waits for you, or fails.",
    )
    return install(interpret(verb))


#: Options with the names of fields of a brief.
_PLAIN: Final = (
    "conversation", "effort", "persona", "model", "temperature", "seed", "system", "schema", "deadline", "priority",
    "budget", "ancestor", "grants", "plan",
)  # fmt: skip


def brief_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a verb the options of a brief as its argument `options`; above the decorators of verb_options.py."""

    @click.option("--file", "files", multiple=True, metavar="PATH", shell_complete=file_names,
                  help="A text file to answer from; - is stdin. Repeatable.")  # fmt: skip
    @click.option("--conversation", metavar="ID",
                  help="The conversation to continue; `last` is your newest, `new` begins one.")  # fmt: skip
    @click.option("--continue", "-c", "goes_on", is_flag=True, help="The same as --conversation last.")
    @click.option("--effort", type=click.Choice(get_args(EffortChoice)),
                  help="One call; one persona with its facets; several personas, each with its own.")  # fmt: skip
    @click.option("--persona", type=click.Choice(get_args(PersonaName), case_sensitive=False),
                  help="The persona that answers.")  # fmt: skip
    @click.option("--model", metavar="NAME", help="The model for this question, in the place of the persona's.")
    @click.option("--temperature", type=click.FloatRange(0, 2), help="The temperature for this question.")
    @click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="The seed for this question.")
    @click.option("--system", metavar="TEXT", help="What the model is told beside the persona's own text.")
    @click.option("--schema", metavar="FILE", shell_complete=file_names,
                  help="A JSON schema, in a file or as text: one call answers with JSON that has it.")  # fmt: skip
    @click.option("--combine", type=click.Choice(get_args(Combine)),
                  help="The way to one answer from several parts: the best, the majority's, or all woven.")  # fmt: skip
    @policy_options
    @click.option("--deadline", metavar="WHEN", help="The deadline: 90s, 5m, 2h, or 2026-11-21T09:30Z.")
    @click.option("--priority", type=click.IntRange(-9, 9), help="Higher runs first; the default is 0.")
    @click.option("--budget", metavar="BOUNDS",
                  help="The largest budget: calls=5,tokens=2000,seconds=60, or some of these.")  # fmt: skip
    @click.option("--ancestor", metavar="MISSION", help="Reuse the calls that this mission (or `last`) paid for.")
    @click.option("--grant", "grants", multiple=True, metavar="NAME",
                  help="A grant by which this may act on the world (`batos grants`). Repeatable.")  # fmt: skip
    @click.option("--plan", is_flag=True, default=None,
                  help="Show first what would be asked, called and done; it waits for your yes.")  # fmt: skip
    @click.option("--reply-to", metavar="MISSION", help="The mission (or `last`) that this question replies to.")
    @click.option("--memory", metavar="SCOPE", help="Use what is remembered in this scope only.")
    @click.option("--no-memory", is_flag=True, help="Use nothing of what is remembered, and remember nothing of this.")
    @click.option("--only-memory", is_flag=True, default=None,
                  help="Answer from what is remembered or given, or say that it has no answer.")  # fmt: skip
    @click.option("--wait-ollama", is_flag=True, default=None, help="Wait while Ollama is away; do not fail.")
    @click.option("--voices", is_flag=True, help="Show each part beside the answer.")
    @click.option("--stream/--no-stream", default=None, help="Show the answer as it grows (default: on a terminal).")
    @functools.wraps(verb)
    def run_verb(
        *, files: tuple[str, ...], voices: bool, stream: bool | None, goes_on: bool, no_memory: bool, **given: Any
    ) -> Any:
        if goes_on and given["conversation"] not in (None, "last"):
            raise _wrong("conversation", "--continue means the newest conversation, and another is named")
        if no_memory and given["memory"] is not None:
            raise _wrong("memory", "--no-memory means none, and a scope is named")
        if no_memory and given["only_memory"]:
            raise _wrong("memory", "--no-memory means none, and --only-memory nothing else")
        given["memory"] = NO_MEMORY if no_memory else given["memory"]
        given["conversation"] = "last" if goes_on else given["conversation"]
        names = (*_PLAIN, *_PLACES)
        fields: dict[str, Any] = {}
        for name in names:
            value = given.pop(name)
            if value is not None and value != ():
                value = _READ[name](value) if name in _READ else value
                _put(fields, _PLACES.get(name, (name,)), value)
        return verb(options=BriefOptions(fields, files, voices, stream), **given)

    return run_verb


def _put(fields: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    *outer, last = place
    for name in outer:
        fields = fields.setdefault(name, {})
    fields[last] = value

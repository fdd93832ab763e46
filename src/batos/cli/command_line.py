"""The command line around a verb: its surroundings, the options that all share, and words for a wrong one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from batos.protocol.errors import UsageError
from batos.terminal.console import Console

_ONE_LINE: Final = ("--json, -q, -v, --home, ...", "Options that verbs share: `batos --help`.")
_LONGEST_NAME: Final = 256
_LEVELS: Final = ("debug", "info", "warning", "error")


def given_name(value: str) -> str:
    """Return the name of something as given. An empty one is refused: in a script it is a variable that was never set.

    Raises: click.BadParameter: it is empty, is no Unicode text, or is longer than any name.
    """
    if not value.strip():
        raise click.BadParameter("it is empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # a byte of the command line that is no UTF-8
        raise click.BadParameter("it is no Unicode text") from error
    if len(value) > _LONGEST_NAME:
        raise click.BadParameter(f"it has {len(value):,} characters, and no name has more than {_LONGEST_NAME}")
    return value


def given_options(*names: str) -> list[str]:
    """Return those of a verb's options that were given, as a person types them: a default is none."""
    context = click.get_current_context()
    return [
        f"--{each.replace('_', '-')}"
        for each in names
        if context.get_parameter_source(each) is not ParameterSource.DEFAULT
    ]


def given_names(value: str) -> list[str]:
    """Return names that were given with commas between them.

    Raises: click.BadParameter: one of them is empty or can be no name.
    """
    return [given_name(each.strip()) for each in value.split(",")]


def given_moment(value: str) -> str:
    """Return a moment in UTC. A day or a time without a time zone is one of this machine's own.

    Raises: click.BadParameter: it is none.
    """
    try:
        return datetime.fromisoformat(value).astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError) as error:
        raise click.BadParameter("it is not a time like 2026-11-21 or 2026-11-21T09:30") from error


class HomeFolder(click.Path):
    """A folder as given; an empty one is refused, as every empty name is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the folder; click.BadParameter: it is empty, or it is a file."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


class Common(click.Option):
    """An option of all verbs: their help has one line for all of them, in the place of the first."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line on all common options for the first of them, and nothing for the others."""
        return _ONE_LINE if self.name == "as_json" else None

    def whole(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the verb's line in the help of `batos`."""
        return super().get_help_record(ctx)


def common_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a verb the options that all have: `as_json`, `quiet`, `verbose`, `plain` and settings."""
    for option in reversed(
        (
            click.option(
                "--json",
                "as_json",
                cls=Common,
                is_flag=True,
                help="Results as JSON documents on stdout; with -q the last one alone.",
            ),
            click.option("--quiet", "-q", cls=Common, is_flag=True, help="Print only the result."),
            click.option("--verbose", "-v", cls=Common, is_flag=True, help="Print all details, and every step."),
            click.option("--plain", cls=Common, is_flag=True, help="Print the Markdown of answers as it is."),
            click.option("--home", cls=Common, type=HomeFolder(file_okay=False), help="The home, a folder."),
            click.option("--image", cls=Common, metavar="URI", help="The image's storage URI."),
            click.option("--journal", cls=Common, metavar="URI", help="The journal's storage URI."),
            click.option("--log-level", cls=Common, type=click.Choice(_LEVELS), help="Lowest severity of log lines."),
        )
    ):
        verb = option(verb)
    return verb


def file_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return a completion that lets the shell itself complete files."""
    return [CompletionItem(incomplete, type="file")]


def server_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a verb the options that say where the server is."""
    told = "A server's address (default: that of the home's server, which is started if there is none)."
    here = "Run the verb in its own process, past any server."
    verb = click.option("--here", "server", cls=Common, flag_value="here", help=here)(verb)
    return click.option("--server", cls=Common, metavar="URI", shell_complete=file_names, help=told)(verb)


def shared_options() -> list[Common]:
    """Return all the common options."""

    @common_options
    @server_option
    def every(**given: object) -> None:
        """Do nothing: its options are what is asked for."""

    return [each for each in click.command(every).params if isinstance(each, Common)]


def examples(*lines: str) -> str:
    """Write the examples at the end of a verb's help: lines that can be typed as they stand."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


#: The verbs whose text may begin with a dash.
_WITH_TEXT: Final = frozenset({"batos ask", "batos submit", "batos send", "batos dream new"})
#: The verbs that take a question.
_WITH_QUESTION: Final = frozenset({"batos ask", "batos submit", "batos dream new"})
#: So many letters allow a slip of the fingers; a shorter word allows one as well.
_LETTERS: Final = 3


def nearest(typed: str, known: Iterable[str]) -> str | None:
    """Return the known word that was most likely meant, None where none is near: a wrong guess helps less than none.

    >>> nearest("fil", ["file", "follow"]), nearest("timeout", ["image", "quiet"]), nearest("verb", ["verbose"])
    ('file', None, 'verbose')
    """
    words = sorted(known)
    slips = {word: _slips(typed, word) for word in words}
    # Of "x" any word of one letter is near: a guess keeps some of what was typed.
    near = [word for word in words if slips[word] <= max(1, max(len(typed), len(word)) // _LETTERS) < len(typed)]
    begun = [word for word in words if typed and word.startswith(typed)]
    return min(near, key=slips.__getitem__, default=begun[0] if len(begun) == 1 else None)


def _slips(typed: str, meant: str) -> int:
    """Count the letters to add, drop, change or swap with the next one, until `typed` is `meant`."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for down, letter in enumerate(typed, 1):
        above, before, row = before, row, [down]
        for right, other in enumerate(meant, 1):
            cost = min(before[right] + 1, row[-1] + 1, before[right - 1] + (letter != other))
            swapped = down > 1 < right and letter == meant[right - 2] and typed[down - 2] == other
            row.append(min(cost, above[right - 2] + 1) if swapped else cost)
    return row[-1]


def no_verb(ctx: click.Context, name: str, known: Collection[str]) -> click.UsageError:
    """Make the error for a verb that there is not, after those that were typed before it."""
    near = nearest(name, known)
    if ctx.parent is None:
        return click.UsageError(f"there is no verb {name!r}{f'; did you mean {near!r}?' if near else ''}", ctx)
    hint = f"did you mean {near!r}?" if near else f"one of {', '.join(known)}"
    return click.UsageError(f"`{ctx.command_path}` has no verb {name!r}; {hint}", ctx)


#: The verb that a word with verbs of its own means where nothing else is typed.
_LIST: Final = "list"


class Subverbs(click.Group):
    """A verb that has verbs of its own."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find one, or tell which was meant."""
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            raise no_verb(ctx, cmd_name, self.commands)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read arguments; where nothing at all is typed, and there is a list, that is meant."""
        return super().parse_args(ctx, [_LIST] if self._means_list(ctx, args) else args)

    def _means_list(self, ctx: click.Context, args: list[str]) -> bool:
        """Test if a person typed nothing at all where there is a list; a shell that completes is offered the verbs."""
        return not args and _LIST in self.commands and not ctx.resilient_parsing


class DefaultVerb(Subverbs):
    """A verb with verbs of its own, of which one is meant where none is named."""

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:
        """Take `default`, the verb that is meant, and all that a group takes."""
        super().__init__(*args, **kwargs)
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read arguments that may lack the verb; a shell is offered the verbs of one whose default takes no word."""
        offers = ctx.resilient_parsing and not args and not self._takes_word()
        return super().parse_args(ctx, args if offers or self._means_list(ctx, args) else self.with_verb(args))

    def with_verb(self, args: list[str]) -> list[str]:
        """Put the default before what names no verb and asks for no help."""
        is_own = bool(args) and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return args if is_own or not self.takes(args) else [self._default, *args]

    def takes(self, args: Sequence[str]) -> bool:
        """Test if the default is meant by these arguments, none of which is a verb: where it takes none, by options."""
        return not args or args[0].startswith("-") or self._takes_word()

    def _takes_word(self) -> bool:
        return any(isinstance(each, click.Argument) for each in self.commands[self._default].params)


def as_error(wrong: click.ClickException, typed: Sequence[str], verbs: Collection[str]) -> UsageError:
    """Make the error of a wrong command line, which was `typed`, for a program that has these verbs."""
    context = getattr(wrong, "ctx", None)
    # Of a flag that was given a value click does not say whose it is.
    verb = next((each for each in typed if each in verbs), "")
    path = context.command_path if context else f"batos {verb}".strip()
    said, remedy = wrong.format_message(), f"See `{path} --help`."
    if isinstance(wrong, click.exceptions.NoArgsIsHelpError) and isinstance(wrong.ctx.command, click.Group):
        said = f"`{path}` needs one of: {', '.join(wrong.ctx.command.list_commands(wrong.ctx))}"
    elif path in _WITH_QUESTION and said.startswith("Got unexpected extra argument"):
        remedy = f'Put a question of several words in quotation marks: {path} "..."'
    elif isinstance(wrong, click.NoSuchOption) and context is not None:
        said, remedy = _no_option(wrong.option_name, context, verb, remedy)
    elif path == "batos dream":
        remedy = f'Put a question in quotation marks: {path} "..."'
    return UsageError(said, remedy=remedy, field=getattr(getattr(wrong, "param", None), "name", None))


def _no_option(name: str, ctx: click.Context, verb: str, remedy: str) -> tuple[str, str]:
    """Return what is wrong with an option that a verb does not have, and the remedy."""
    path = ctx.command_path
    known = {opt for each in ctx.command.get_params(ctx) for opt in (*each.opts, *each.secondary_opts)}
    if ctx.parent is None:
        shared = {opt for each in shared_options() for opt in each.opts}
        if name in shared:
            return f"{name!r} is an option of verbs, and must follow one", f"As in: batos {verb or 'status'} {name}"
        known |= shared
    near = nearest(name.lstrip("-"), (each[2:] for each in known if each.startswith("--")))
    if near and name.startswith("--"):
        return f"`{path}` has no option {name!r}; did you mean '--{near}'?", remedy
    if path in _WITH_TEXT:
        remedy = f"{remedy} Put a text that begins with a dash after two dashes: {path} -- '{name} ...'"
    return f"`{path}` has no option {name!r}", remedy


@dataclass(slots=True)
class Ending:
    """The things that a verb leaves to the command line: those to be undone at the end, and the console it wrote to."""

    until_end: ExitStack = field(default_factory=ExitStack)
    console: Console | None = None
    _log: Callable[[], AbstractContextManager[None]] | None = None

    def offer_log(self, log: Callable[[], AbstractContextManager[None]]) -> None:
        """Take the log of a verb, which is begun by whatever works in this process, and by no client of a server."""
        self._log = log

    def begin_log(self) -> None:
        """Begin the log, if there is one that was not begun."""
        log, self._log = self._log, None
        if log is not None:
            self.until_end.enter_context(log())


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment, streams and folder of a command, where they are not those of this process."""

    environ: Mapping[str, str]
    folder: Path
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Make them those of the process, which libraries read as well, and give the process its own back at the end.

        Enter one at a time: a process has one environment, one folder and one set of streams.
        """
        environ, stdin = dict(os.environ), sys.stdin
        with redirect_stdout(self.stdout), redirect_stderr(self.stderr), chdir(self.folder):
            try:
                sys.stdin = self.stdin
                _set_environment(self.environ)
                yield
            finally:
                sys.stdin = stdin
                _set_environment(environ)


def _set_environment(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)

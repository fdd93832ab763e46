"""The options that all verbs share. The help of `batos` describes them, and a verb's help names them in one line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

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
    """Give a verb the options that all have: `as_json`, `quiet`, `verbose` and settings."""
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
    """Give a verb the options that say where the server is."""
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

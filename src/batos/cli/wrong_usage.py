"""Words for a wrong command line: the fault, a name that is near to the one typed, and the remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import click

from batos.cli.shared_options import shared_options
from batos.protocol.errors import UsageError

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


class Subverbs(click.Group):
    """A verb that has verbs of its own."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find one, or tell which was meant."""
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            raise no_verb(ctx, cmd_name, self.commands)
        return found


class DefaultVerb(Subverbs):
    """A verb with verbs of its own, of which one is meant where none is named."""

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:
        """Take `default`, the verb that is meant, and all that a group takes."""
        super().__init__(*args, **kwargs)
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read arguments that may lack the verb; a shell is offered the verbs of one whose default takes no word."""
        offers = ctx.resilient_parsing and not args and not self._takes_word()
        return super().parse_args(ctx, args if offers else self.with_verb(args))

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

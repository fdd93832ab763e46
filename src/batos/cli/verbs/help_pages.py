"""The verb `help`: the documentation, a page or a part of one, wherever BAT OS is installed."""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem

from batos.cli import entry, manual
from batos.cli.shared_options import given_name
from batos.terminal.console import Console
from batos.terminal.layout import table

_MAX_WIDTH = 100


def _topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a topic: return the pages and verbs that begin so."""
    pages = [CompletionItem(each, help=manual.title(each)) for each in manual.pages()]
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
    text = "" if " ".join(topic) in manual.pages() else _verb(topic)
    text = text or manual.find_text(" ".join(topic))
    if as_json:
        console.document({"topic": " ".join(topic), "text": text})
    elif sys.stdout.isatty():
        click.echo_via_pager(f"{text}\n")
    else:
        console.write(text)


def _list(console: Console) -> None:
    pages = {name: manual.title(name) for name in manual.pages()}
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

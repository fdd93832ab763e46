"""The command `batos`: its verbs, each loaded only when it is called, and the one place where errors become exits."""

from __future__ import annotations

import gc
import importlib
import io
import keyword
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

try:
    import click
    from click.shell_completion import CompletionItem

    from batos.cli import command_line
    from batos.cli.command_line import Ending, Surroundings, shared_options
    from batos.cli.imports import pause_collector
    from batos.protocol.errors import BatosError, InternalError
    from batos.terminal.console import Console, Terminated
    from batos.version import __version__
except KeyboardInterrupt:  # Ctrl-C before a verb begins: there is nothing to tell, least of all a traceback
    sys.exit(130)

#: verb -> (module, what it does). The module declares the verb, or has its command as the attribute of its name
#: (of `import`: import_).
VERBS: dict[str, tuple[str, str]] = {
    "genesis": ("batos.cli.verbs.genesis", "Make models and image match the codex."),
    "ask": ("batos.cli.verbs.ask", "Ask, and wait for the answer."),
    "chat": ("batos.cli.chat.chat", "Hold a conversation of questions and answers."),
    "serve": ("batos.cli.verbs.serve", "Hold the image open, run missions and answer clients."),
    "stop": ("batos.cli.verbs.serve", "Stop the home's server."),
    "status": ("batos.cli.verbs.status", "Show the status on one screen, with a server or without one."),
    "submit": ("batos.cli.verbs.ask", "Submit a question, and return without waiting."),
    "wait": ("batos.cli.verbs.ask", "Wait for a mission's end."),
    "missions": ("batos.cli.verbs.show", "List the newest missions, or follow them."),
    "show": ("batos.cli.verbs.show", "Show a mission: states, calls, tokens, provenance, prompts."),
    "why": ("batos.cli.verbs.show", "Show what a sentence, a mission, a slot or a memory came from."),
    "dream": ("batos.cli.verbs.dream_verb", "Ask in a copy of the mind; promote what comes of it, or drop it."),
    "replay": ("batos.cli.verbs.dream_verb", "Ask a mission again as of its snapshot, with another model or codex."),
    "undo": ("batos.verbs.history_verbs", "Take a mission out of the mind, with all that it left there."),
    "redo": ("batos.verbs.history_verbs", "Bring an undone mission back."),
    "rate": ("batos.verbs.motion_verbs", "Rate an answer as good or bad."),
    "cancel": ("batos.verbs.mission_verbs", "Cancel a mission."),
    "pause": ("batos.verbs.mission_verbs", "Pause a mission."),
    "resume": ("batos.cli.verbs.ask", "Resume a mission, or run all unfinished ones."),
    "retry": ("batos.cli.verbs.ask", "Repeat a mission's question, and pay for no call twice."),
    "send": ("batos.cli.verbs.ask", "Send a message to an object of the image."),
    "approvals": ("batos.verbs.approval_verbs", "List what waits for your approval, or show one."),
    "approve": ("batos.cli.verbs.method", "Approve methods: each is installed exactly as it was shown."),
    "reject": ("batos.verbs.approval_verbs", "Reject a method, and give the reason."),
    "remember": ("batos.cli.remembering.remember_verb", "Remember a file, a folder, or a text."),
    "recall": ("batos.cli.remembering.memories_verb", "Find what is remembered about something."),
    "memories": ("batos.cli.remembering.memories_verb", "List, show, edit or retract what is remembered."),
    "pin": ("batos.verbs.correction_verbs", "Let a memory be recalled for every question."),
    "unpin": ("batos.verbs.correction_verbs", "Let a pinned memory be recalled like any other."),
    "forget": ("batos.cli.remembering.memories_verb", "Forget documents."),
    "curate": ("batos.cli.remembering.memories_verb", "Fold memories that nobody recalls into summaries."),
    "grants": ("batos.cli.verbs.grant_verbs", "Let missions act on a folder or a program of this machine."),
    "effects": ("batos.verbs.effect_verbs", "List what missions did in the world; settle what is unknown."),
    "schedule": ("batos.verbs.schedule_verbs", "Let the mind ask, remind or remember at a time."),
    "inbox": ("batos.verbs.schedule_verbs", "Show what schedules brought: answers and reminders."),
    "cem": ("batos.verbs.motion_verbs", "Show what the mind measures of itself, day by day."),
    "trials": ("batos.verbs.trial_verbs", "Show changes that the mind tried of itself; keep or undo one."),
    "slot": ("batos.verbs.trial_verbs", "Show and redefine slots of personas and protocols while running."),
    "heartbeat": ("batos.verbs.motion_verbs", "Let the mind wake by itself when nobody asks, or not."),
    "inspect": ("batos.verbs.mission_verbs", "Show an object of the image, or one of its slots."),
    "method": ("batos.cli.verbs.method", "Show methods, roll one back to a revision, redefine one."),
    "tools": ("batos.verbs.method_verbs", "List the tools that can be called."),
    "codex": ("batos.cli.verbs.codex", "Show, check and compare the codex: who the personas are."),
    "adapters": ("batos.cli.verbs.adapters", "List, check and choose the adapters that personas think with."),
    "backup": ("batos.cli.verbs.upkeep_verbs", "Copy the mind to a folder, also while its server runs."),
    "restore": ("batos.cli.verbs.upkeep_verbs", "Bring a backup back into an empty home."),
    "upgrade": ("batos.cli.verbs.upkeep_verbs", "Bring an image of an older version into the present form."),
    "export": ("batos.cli.verbs.upkeep_verbs", "Write the whole mind to a folder, as lines of JSON."),
    "import": ("batos.cli.verbs.upkeep_verbs", "Make the mind of an export in an empty home."),
    "verify": ("batos.cli.verbs.upkeep_verbs", "Read every record of the image, and name each fault."),
    "repair": ("batos.cli.verbs.upkeep_verbs", "Mend the faults that `verify` names."),
    "pack": ("batos.verbs.server_verbs", "Free the space of past states that are older than the kept history."),
    "audit": ("batos.cli.verbs.audit_verb", "Check that no record was changed or removed; export the records."),
    "doctor": ("batos.cli.verbs.system_verbs", "Check Ollama, models, codex and image, and print remedies."),
    "budget": ("batos.cli.verbs.budget", "Show the memory of the models on the card, and the window that fits."),
    "ps": ("batos.cli.verbs.system_verbs", "Show which models are in memory and which are on disk."),
    "config": ("batos.cli.verbs.system_verbs", "Show every setting, its value and where it came from."),
    "token": ("batos.cli.verbs.keys", "Show the token with which programs of this machine connect."),
    "keys": ("batos.cli.verbs.keys", "List, make and revoke the keys of clients elsewhere."),
    "mcp": ("batos.cli.verbs.mcp_verb", "Serve MCP over standard input and output, for hosts of other models."),
    "help": ("batos.cli.manual", "Show the documentation, a page or a part of one."),
    "completion": ("batos.cli.completion", "Print the completion script for a shell."),
    "emulator": ("batos.cli.verbs.emulator_verb", "Run the stand-in for the Ollama daemon (it is not a model)."),
}


class Verbs(click.Group):
    """A group whose help needs no verb loaded."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which a newcomer needs them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the verb."""
        if cmd_name not in VERBS:
            if ctx.resilient_parsing:
                return None  # a shell completes, it does not complain
            raise command_line.no_verb(ctx, cmd_name, VERBS)
        with pause_collector():
            module = importlib.import_module(VERBS[cmd_name][0])
            name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
            found: click.Command | None = getattr(module, name, None)
            if found is None:  # the module declares the verb, and the command follows from that
                found = importlib.import_module("batos.cli.declared").command_of(cmd_name, module)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a verb or an option, without loading one."""
        verbs = [CompletionItem(name, help=what) for name, (_, what) in VERBS.items() if name.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them from the table above."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, what) for name, (_, what) in VERBS.items()])
        records = (each.whole(ctx) for each in shared_options())
        with formatter.section("Options that verbs share"):
            formatter.write_dl([each for each in records if each])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="batos %(version)s")
def batos() -> None:
    """Talk to BAT OS: a local-first mind that lives in a database and thinks through Ollama.

    Begin with `batos genesis`, then `batos ask "..."`. Every verb takes --help, and all but completion and
    emulator take --json.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a verb in this process and exit with its code, as CONTRACT.md has it."""
    # To look for plug-ins of models pydantic would read the metadata of each package that is installed; ours have none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # A process may be started with its streams closed; what it says then goes nowhere.
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal may lack a letter
        code = run(list(sys.argv[1:] if arguments is None else arguments))
        # At its end Python collects garbage among all that was ever imported, a fifth of a short verb's CPU.
        gc.freeze()
        sys.exit(code)


def run(arguments: list[str], surroundings: Surroundings | None = None) -> int:
    """Run a verb and return its exit code; without `surroundings` it has those of this process.

    Errors are told on stderr, or as one JSON document where --json was asked for. Nothing of the call is left in the
    process: its logs, its umask and its surroundings end with it.
    """
    with ExitStack() as until_end:
        if surroundings is not None:
            until_end.enter_context(surroundings.enter())
        until_end.enter_context(_private_files())
        return _run(arguments, until_end)


@contextmanager
def _private_files() -> Iterator[None]:
    """Make every file its owner's alone: whatever is written holds what people asked and were told."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _run(arguments: list[str], until_end: ExitStack) -> int:
    """Run a verb, which may leave in `until_end` what is to be undone when all is told, and return its exit code."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    ending, as_json = Ending(until_end), "--json" in options
    try:
        result: Any = batos.main(args=arguments or ["--help"], prog_name="batos", standalone_mode=False, obj=ending)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except SystemExit as accused:  # the loop watch, which has said of what
        return accused.code if isinstance(accused.code, int) else 1
    except BaseException as raised:  # all are told in one place; what is no error is raised on from there
        # The console of the verb knows whether what it wrote was lost.
        console = ending.console or Console.from_streams(sys.stdout, sys.stderr, as_json=as_json)
        return _tell(console, raised, options, ending)


def _tell(console: Console, raised: BaseException, options: list[str], ending: Ending) -> int:
    """Tell what ended a verb, and return the exit code of that."""
    if isinstance(raised, KeyboardInterrupt | click.Abort | Terminated):
        stopped = isinstance(raised, Terminated)
        console.print_interruption("terminated" if stopped else "interrupted")
        return 143 if stopped else 130
    if isinstance(raised, click.ClickException):
        raised = command_line.as_error(raised, options, VERBS)
    if not isinstance(raised, BatosError):
        if not isinstance(raised, Exception):
            raise raised
        ending.begin_log()
        raised = _unforeseen(raised, options)
    console.error(raised)
    return raised.exit_code


def _unforeseen(error: Exception, options: list[str]) -> InternalError:
    """Make the error for one that nobody foresaw: it is told as every other is, and the log has its traceback."""
    from batos.terminal import logs

    logs.fault(error, loud="debug" in options or "--log-level=debug" in options)
    return InternalError(f"{type(error).__name__}: {error}")

"""The verbs about the codex: show its values, check its files, compare them with the codex of the image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from batos.autotelic import slot_values
from batos.cli.command_line import Subverbs
from batos.cli.render import prompt_tokens
from batos.cli.verb_options import VerbCall, common
from batos.config import CONFIG_FILE, LoadedSettings, Settings
from batos.genesis.codex import codex as codices
from batos.genesis.codex import origins
from batos.genesis.codex.codex import PILLARS, Codex, CodexReading
from batos.genesis.codex.origins import CodexRow
from batos.genesis.codex.reader import TomlSource
from batos.image import roots
from batos.image.readable import is_there, open_read_only
from batos.image.roots import Root
from batos.protocol.errors import BatosError, CodexError
from batos.terminal.console import Console, count_text
from batos.terminal.layout import table, wrap

_WHOSE = ("mind", *(name.lower() for name in PILLARS))
_SHOWN = 56  # characters of a value that stands in a line of a table


@click.group(cls=Subverbs)
def codex() -> None:
    """Show, check and compare the codex: who the personas are. Needs no Ollama, and changes nothing."""


def _folder(settings: Settings) -> Path:
    return settings.home / "codex"


# -- show


@codex.command(short_help="Show every value, and where it comes from.")
@click.argument("whose", metavar="[mind|PERSONA]", required=False, type=click.Choice(_WHOSE, case_sensitive=False))
@common
def show(called: VerbCall, whose: str | None) -> int:
    """Show the codex as it is understood, and where each value comes from.

    Given `mind` (the shared part) or a persona: every value, with its file and line; given neither: an overview.
    """
    found, absent = codices.standing(_folder(called.settings))
    read = found.sound()
    profile = read.profile(called.settings.profile).name
    laid = origins.rows(found, _shipped_codex(), profile, absent)
    if whose is None:
        _tell_overview(called, read, laid, absent)
        return 0
    chosen = laid["mind" if whose == "mind" else whose.upper()]
    if called.console.as_json:
        values = [row.as_dict() for row in chosen]
        called.console.document({"whose": whose, "profile": profile, "values": values})
        return 0
    for row in chosen:
        _tell_row(called.console, row)
    return 0


def _shipped_codex() -> Codex:
    return codices.parse(codices.read_shipped()).sound()


def _tell_row(console: Console, row: CodexRow) -> None:
    source = f"{row.source}, edited" if row.edited else row.source
    value = _line(row.entry.value)
    if len(value) <= _SHOWN and "\n" not in value:
        console.write(f"{row.entry.key} = {value}  [{source}]")
        return
    many = row.entry.value if isinstance(row.entry.value, tuple | list) else (value,)
    shown = "\n".join(wrap(str(each), "    ") for each in many)
    console.write(f"{row.entry.key}  [{source}]\n{shown}")


def _line(value: object) -> str:
    plain = origins.plain(value)
    if isinstance(plain, list):
        return ", ".join(map(str, plain))
    if isinstance(plain, Mapping):
        return "; ".join(f"{key}: {_line(each)}" for key, each in plain.items())
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def _tell_overview(called: VerbCall, read: Codex, laid: Mapping[str, list[CodexRow]], absent: Iterable[str]) -> None:
    folder, profile = _folder(called.settings), called.settings.profile
    edited = {owner: [row.entry.key for row in rows if row.edited] for owner, rows in laid.items()}
    personas = {
        name: {
            "model": read.model_for(name, profile),
            "num_ctx": read.options_for(name, profile)["num_ctx"],
            "facets": [intent.slot for intent in persona.pillars if not intent.shelved],
            "protocols": [intent.slot for intent in persona.protocols if not intent.shelved],
            "edited": edited[name],
        }
        for name, persona in read.personas.items()
    }
    if called.console.as_json:
        about = {"folder": str(folder), "digest": read.digest, "profile": profile, "absent": sorted(absent)}
        called.console.document({**about, "mind": {"edited": edited["mind"]}, "personas": personas})
        return
    lines = [
        [
            name,
            each["model"],
            str(each["num_ctx"]),
            str(len(each["facets"])),
            str(len(each["protocols"])),
            _row_text(each),
        ]
        for name, each in personas.items()
    ]
    heads = ("persona", "model", "window", "facets", "protocols", "edited")
    called.console.write(f"{folder}, profile {profile}, digest {read.digest[:12]}")
    called.console.write(table(lines, heads))
    called.console.write(f"mind: {_row_text({'edited': edited['mind']})}")
    if absent:
        called.console.say(f"Not there yet, as shipped: {', '.join(sorted(absent))}.", dim=True)


def _row_text(each: Mapping[str, Any]) -> str:
    return ", ".join(each["edited"]) or "as shipped"


# -- check


@codex.command(short_help="Print every fault of every file.")
@common
def check(called: VerbCall) -> int:
    """Read every file and print every fault with its line and remedy; exit 1 if there is any.

    The tokens of each persona's prompts beside evidence and question are told too, with a warning for long ones.
    """
    found = codices.read(_folder(called.settings))
    faults = [*found.faults, *profile_faults(called.loaded, found.codex)]
    weighed = [] if found.codex is None else prompt_tokens.weigh(found.codex, called.settings)
    if called.console.as_json:
        told = [each.as_dict() for each in weighed]
        called.console.document({"ok": not faults, "faults": [_fault(each) for each in faults], "prompts": told})
        return 1 if faults else 0
    for fault in faults:
        called.console.write(f"{fault.message}\n    {fault.remedy}")
    if faults:
        files = count_text(len({fault.file for fault in faults}), "file")
        called.console.write(f"{count_text(len(faults), 'fault')} in {files}.")
    elif found.codex is not None and not called.quiet:
        intents = [intent for each in found.codex.personas.values() for intent in (*each.pillars, *each.protocols)]
        counts = f"{count_text(len(found.codex.personas), 'persona')}, {count_text(len(intents), 'intent')}"
        called.console.write(f"The codex is sound: {counts}, digest {found.codex.digest[:12]}.")
        for line in prompt_tokens.describe(weighed):
            called.console.write(line)
    return 1 if faults else 0


def _fault(fault: CodexError) -> dict[str, object]:
    return {
        "file": fault.file,
        "line": fault.line,
        "field": fault.field,
        "message": fault.what,
        "remedy": fault.remedy,
    }


def profile_faults(loaded: LoadedSettings, read: Codex | None) -> list[CodexError]:
    """Find fault with a profile that the settings name and the codex lacks."""
    name = loaded.settings.profile
    if read is None or name in read.profiles:
        return []
    source = loaded.sources.get("profile", "default")
    line = None
    if Path(source).name == CONFIG_FILE:
        line = TomlSource(source, Path(source).read_text(encoding="utf-8")).line(("profile",))
    remedy = f"Set `profile` to one of {', '.join(read.profiles)}, or write [profiles.{name}] in mind.toml."
    return [CodexError(f"the codex has no profile {name!r}", file=source, line=line, remedy=remedy, field="profile")]


# -- diff


@dataclass(frozen=True, slots=True)
class _Side:
    """The other side of a comparison: its name, its texts, the profile in use there.

    `note` says why this side is another than was asked for; `redefined` are slots in which another value than the
    codex's acts.
    """

    name: str
    texts: Mapping[str, str]
    profile: str
    note: str = ""
    redefined: Sequence[Mapping[str, object]] = ()


@codex.command(short_help="Compare with the codex that the image uses.")
@click.option("--shipped", "against_shipped", is_flag=True, help="Compare with the codex that ships with the program.")
@common
def diff(called: VerbCall, against_shipped: bool) -> int:
    """Compare the files with the codex of the image, and show what changes at the next mission."""
    settings = called.settings
    found, _ = codices.standing(_folder(settings))
    mine = {name: source.text for name, source in found.sources.items()}
    side = _Side("shipped", codices.read_shipped(), settings.profile) if against_shipped else _recorded_side(settings)
    lines = list(origins.unified_diff(side.texts, mine, side.name, "codex", 3 if called.console.as_json else 0))
    summary = _summary(side, found, settings.profile)
    if called.console.as_json:
        about = {"against": side.name, "note": side.note, "faults": [_fault(each) for each in found.faults]}
        shown = None if summary is None else summary.as_dict()
        called.console.document({**about, "diff": lines, "summary": shown, "redefined": side.redefined})
        return 0
    if side.note:
        called.console.say(side.note)
    for line in lines:
        called.console.write(line)
    if summary is not None:
        _tell_summary(called.console, summary, side)
    elif found.faults:
        called.console.write(
            f"The files have {count_text(len(found.faults), 'fault')}: `batos codex check` lists them."
        )
    else:
        called.console.write("The other codex was written by another version: only the text is compared.")
    if side.redefined:
        called.console.write("Redefined while running, so that the codex's value does not act (`batos slot rollback`):")
    for each in side.redefined:
        called.console.write(f"  {each['slot']}: {_line(each['value'])} instead of {_line(each['codex'])}")
    return 0


def _recorded_side(settings: Settings) -> _Side:
    """Return the codex that the image runs on; the shipped one where there is none, or none can be read."""
    try:
        if is_there(settings.image_uri):
            with open_read_only(settings.image_uri, settings.journal) as faces, faces.root() as root:
                kept: Mapping[str, Any] = root.get(roots.GENESIS) or {}
                texts = dict(kept.get("codex_texts", {}))
                if texts:
                    return _Side("image", texts, kept.get("profile") or "default", redefined=_list_redefined(root))
        why = "The image holds no codex yet"
    except BatosError as error:
        why = f"The image cannot be read ({error.message})"
    return _Side("shipped", codices.read_shipped(), settings.profile, f"{why}: compared with the shipped one.")


def _list_redefined(root: Root) -> list[Mapping[str, object]]:
    """Return the slots in which another value acts than the codex's."""
    kept = root.get(roots.REDEFINITIONS) or ()
    found = (slot_values.describe(root, each.name) for each in slot_values.list_places(root) if each.name in kept)
    rows = ({"slot": each["slot"], "value": each["value"], "codex": each["values"][0]["value"]} for each in found)
    return [each for each in rows if each["value"] != each["codex"]]


def _summary(side: _Side, found: CodexReading, profile: str) -> origins.CodexDifferences | None:
    """Compare the two sides by key; None where one of them cannot be understood."""
    before = codices.parse(side.texts).codex
    if before is None or found.codex is None:
        return None
    was = side.profile if side.profile in before.profiles else "default"
    return origins.summary_of_differences(before, found.codex, was, found.codex.profile(profile).name)


def _tell_summary(console: Console, summary: origins.CodexDifferences, side: _Side) -> None:
    if not summary.changes and summary.profiles is None:
        console.write(f"No value differs from the codex of {_side_name(side)}.")
        return
    for owner, found in origins.owners(summary.changes).items():
        console.write(f"{owner}: {', '.join(f'{each.key} {each.kind}' for each in found)}")
    told = (
        ("the profile", " instead of ".join(reversed(summary.profiles)) if summary.profiles else ""),
        ("models made again", ", ".join(summary.models)),
        ("models newly named", ", ".join(summary.pulls)),
        ("slots written again (methods that were made for them are dropped)", ", ".join(summary.slots)),
        ("slots removed", ", ".join(summary.gone)),
    )
    head = "Against what ships" if side.name == "shipped" else "At the next mission"
    console.write(f"{head}:")
    for what, which in told:
        if which:
            console.write(f"  {what}: {which}")


def _side_name(side: _Side) -> str:
    return "the image" if side.name == "image" else "the program"

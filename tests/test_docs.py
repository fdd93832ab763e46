"""The generated parts of docs/ say what the code says; run as a program (`make docs`) this file writes them."""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from pydantic_core import PydanticUndefined

from batos.cli import entry
from batos.config import Settings
from batos.gate import thresholds as gate_thresholds
from batos.genesis import state_steps
from batos.genesis.codex import value_checks
from batos.guardian import policy
from batos.memory import thresholds as memory_thresholds
from batos.protocol import errors, wire_messages
from batos.protocol.brief import MissionBrief
from batos.protocol.event_payloads import EVENTS
from batos.verbs.all_verbs import VERBS

ROOT = Path(__file__).resolve().parents[1]
SYSTEM = ROOT / "src" / "batos"
BLOCK = re.compile(r"(<!-- generated: (\w+) \(make docs\) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
ANCHORED = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
#: A file or folder of the repository, and a name with dots in one of our packages, as pages write them.
PLACE = re.compile(r"(?<![\w./-])((?:src|tests|bench|docs|examples|scripts|\.ci)/[\w./*-]*\w)")
NAME = re.compile(r"(?<![\w./@-])((?:batos|ollama_emulator|model_files)(?:\.\w+)+)(?![\w/])")
#: Names with dots that are files of a home or an address, not names of Python.
FILES = frozenset(("batos.toml", "batos.log"))


def settings_table() -> str:
    """One row a setting, in the order of `Settings`."""
    rows = ["| setting | environment | default | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        variable = "OLLAMA_HOST" if name == "ollama_host" else f"BATOS_{name.upper()}"
        default = "" if field.default in (PydanticUndefined, "") else f"`{field.default}`"
        rows.append(f"| `{name}` | `{variable}` | {default} | {field.description} |")
    return "\n".join(rows)


def errors_table() -> str:
    """One row a kind of error, in the order of protocol/errors.py."""
    rows = ["| code | exit | retry | meaning | remedy |", "|---|---|---|---|---|"]
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.BatosError) and name != "BatosError":
            what = (kind.__doc__ or "").partition("\n")[0]
            rows.append(
                f"| `{kind.code}` | {kind.exit_code} | {'yes' if kind.retry else ''} | {what} | {kind.remedy} |"
            )
    return "\n".join(rows)


def events_table() -> str:
    """One row an event, in the order of protocol/event_payloads.py."""
    rows = ["| event | keys |", "|---|---|"]
    rows += [f"| `{name}` | {', '.join(f'`{key}`' for key in event.keys)} |" for name, event in EVENTS.items()]
    return "\n".join(rows)


def decisions_table() -> str:
    """One row a page of decisions: its number, linked, its title, and the numbers that are folded into it."""
    rows = ["| | decision | folded |", "|---|---|---|"]
    for page in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        text = page.read_text(encoding="utf-8")
        number, _, title = text.partition("\n")[0].lstrip("# ").partition(": ")
        folded = set(re.findall(r"^## .* \((0\d{3})\)$", text, re.MULTILINE)) - {number}
        rows.append(f"| [{number}]({page.name}) | {title} | {', '.join(sorted(folded))} |")
    return "\n".join(rows)


def options_table() -> str:
    """One row an option that a persona may set, in the order of codex/value_checks.py; then those that are ours."""
    rows = ["| option | type | bounds | default | meaning |", "|---|---|---|---|---|"]
    for name, option in value_checks.OLLAMA.items():
        default = f"`{value_checks.DEFAULTS[name]}`" if name in value_checks.DEFAULTS else ""
        runner = " (runner)" if name in value_checks.RUNNER else ""
        kind = value_checks.KIND_NAMES[option.kind]
        rows.append(f"| `{name}` | {kind} | {value_checks.bounds(option)} | {default} | {option.what}{runner} |")
    modes = ", ".join(f"`{mode}`" for mode in value_checks.MODES)
    rows.append(
        f"| `mode` | a text | {modes} | `{value_checks.DEFAULTS['mode']}` | the form of a request for decisions |"
    )
    rows.append("| `think` | true or false | true, false | `false` | true: a model that can think may do so |")
    return "\n".join(rows)


def steps_table() -> str:
    """One row a step of a working state, in the order in which it is declared."""
    rows = ["| state | step | may be left out | after | work | bounds (default) |", "|---|---|---|---|---|---|"]
    for state, steps in state_steps.TABLE.items():
        for step in steps:
            bounds = "; ".join(f"`{each.name}`: {each.what}, {each.choices} ({each.default})" for each in step.bounds)
            after = ", ".join(f"`{each}`" for each in step.after)
            optional = "" if step.is_required else "yes"
            rows.append(f"| {state} | `{step.name}` | {optional} | {after} | {step.what} | {bounds} |")
    return "\n".join(rows)


def verbs_help() -> str:
    """The help of `batos`, of every verb and of every verb of a group, as `--help` prints it."""
    root = click.Context(entry.batos, info_name="batos", terminal_width=100, **entry.batos.context_settings)
    parts = [f"```\n{entry.batos.get_help(root)}\n```"]
    for name in entry.VERBS:
        command = entry.batos.get_command(click.Context(entry.batos), name)
        assert command is not None
        named = {name: command}
        if isinstance(command, click.Group):
            named |= {f"{name} {inner}": each for inner, each in command.commands.items()}
        for full, each in named.items():
            each._help_option = None  # click keeps the first that was asked for, whoever asked in this process
            names = entry.batos.context_settings["help_option_names"]
            context = click.Context(each, info_name=f"batos {full}", terminal_width=100, help_option_names=names)
            parts.append(f"{'###' if ' ' in full else '##'} {full}\n\n```\n{each.get_help(context)}\n```")
    return "\n\n".join(parts)


def fields_table(shape: type[BaseModel]) -> str:
    """One row a field of a message."""
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field_name, field in shape.model_fields.items():
        name = field.alias or field_name
        value = None if field.is_required() else field.get_default(call_default_factory=True)
        default = "" if value is None else f"`{json.dumps(value, default=lambda each: each.model_dump())}`"
        rows.append(f"| `{name}` | {type_text(shape, name)} | {default} | {field.description or ''} |")
    return "\n".join(rows)


def type_text(shape: type[BaseModel], name: str) -> str:
    """What a field takes, by its JSON schema: types, choices and bounds."""
    whole = shape.model_json_schema()
    field = whole["properties"][name]
    return " or ".join(_type_texts(field, whole.get("$defs", {})))


def _type_texts(field: Mapping[str, Any], named: Mapping[str, Any]) -> Iterator[str]:
    if "anyOf" in field:
        for each in field["anyOf"]:
            yield from _type_texts(each, named)
    elif "$ref" in field:
        inner = named[field["$ref"].rpartition("/")[2]].get("properties", {})
        yield f"object: {', '.join(f'`{key}`' for key in inner)}" if inner else "any"
    elif "enum" in field or "const" in field:
        yield ", ".join(f"`{choice}`" for choice in field.get("enum", [field.get("const")]))
    else:
        yield _bounded(field)


def _bounded(field: Mapping[str, Any]) -> str:
    """A simple type with its bounds."""
    signs = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "minLength": "at least",
             "maxLength": "at most", "minItems": "at least", "maxItems": "at most", "pattern": "like"}  # fmt: skip
    bounds = [f"{word} `{field[key]}`" for key, word in signs.items() if key in field]
    return " ".join([str(field.get("type", "any")), *bounds])


def arguments_tables() -> str:
    """What every verb takes, in the order of `VERBS`."""
    parts = []
    for verb in VERBS.values():
        takes = fields_table(verb.args) if verb.args.model_fields else "No arguments."
        parts.append(f"#### {verb.name}\n\n{verb.help.partition(chr(10))[0]}\n\n{takes}")
    return "\n\n".join(parts)


def protocol_schema() -> str:
    """The JSON schema of all messages."""
    shapes: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        (each, "validation")
        for each in (wire_messages.WireRequest, wire_messages.WireReply, wire_messages.WireNotice, MissionBrief)
    ]
    _, schema = models_json_schema(shapes, title="The wire of BAT OS")
    return f"```json\n{json.dumps(schema, indent=1, ensure_ascii=False)}\n```"


GENERATORS: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "decisions": decisions_table,
    "dialect": lambda: policy.dialect_document().rstrip(),
    "errors": errors_table,
    "events": events_table,
    "options": options_table,
    "steps": steps_table,
    "verbs": verbs_help,
    "requests": lambda: fields_table(wire_messages.WireRequest),
    "replies": lambda: fields_table(wire_messages.WireReply),
    "notices": lambda: fields_table(wire_messages.WireNotice),
    "arguments": arguments_tables,
    "brief": lambda: fields_table(MissionBrief),
    "schema": protocol_schema,
}


def documents() -> list[Path]:
    written = (ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING"))
    return [*sorted((ROOT / "docs").rglob("*.md")), *written]


def regenerated(text: str) -> str:
    """The document with every generated block as the code has it now."""
    return BLOCK.sub(lambda block: f"{block[1]}{GENERATORS[block[2]]()}\n{block[4]}", text)


def blocks() -> Iterator[str]:
    for document in documents():
        yield from (block[2] for block in BLOCK.finditer(document.read_text(encoding="utf-8")))


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_parts_are_current(document: Path) -> None:
    """A table that is made from the code equals what the code says (`make docs` writes it)."""
    text = document.read_text(encoding="utf-8")
    assert text == regenerated(text)


def test_the_index_names_every_page() -> None:
    """docs/README.md has one row for each page, and no page is without one; other lines may lead there too."""
    rows = re.findall(
        r"^\| \[([\w.-]+)\]\(\1\) \|", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md")


def test_every_table_is_in_a_document() -> None:
    """Settings, errors, events, decisions, options and verbs are documented, each once."""
    assert sorted(blocks()) == sorted(GENERATORS)


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link of a document names a file that is there."""
    prose = re.sub(r"^ {7,}.*$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE)  # without code in a list
    for link in LINK.findall(prose):
        if "://" not in link:
            assert (document.parent / link).exists(), link


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: its headings as GitHub names them, and those that are set by hand."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, flags=re.MULTILINE)
    named = {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return named | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_anchors_of_links_exist(document: Path) -> None:
    """A link to a part of a page names a heading or an anchor of that page."""
    text = document.read_text(encoding="utf-8")
    for page, anchor in ANCHORED.findall(text):
        if "://" not in page:
            there = (document.parent / page).read_text(encoding="utf-8") if page else text
            assert anchor in anchors(there), f"{page}#{anchor}"


def pages() -> list[Path]:
    """Every page that says how things are now: a changelog may tell of names that are no more."""
    return [
        *(page for page in documents() if page.name != "CHANGELOG.md"),
        ROOT / "src" / "ollama_emulator" / "README.md",
    ]


def absent(text: str) -> list[str]:
    """Return the paths and the dotted names of a text that the repository does not have."""
    places = [place for place in PLACE.findall(text) if not any(ROOT.glob(place))]
    return [*places, *(name for name in NAME.findall(text) if name not in FILES and not resolves(name))]


def test_decisions_stay_few_and_none_is_lost() -> None:
    """At most 45 pages hold every decision once, by the number that it had: those that were never made are named."""
    folder = ROOT / "docs" / "decisions"
    pages_there = sorted(folder.glob("0*.md"))
    numbers = []
    for page in pages_there:
        folded = re.findall(r"^## .* \((0\d{3})\)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        numbers += folded or [page.name[:4]]
    assert len(pages_there) <= 45
    assert len(numbers) == len(set(numbers))
    made = {f"{number:04}" for number in range(1, 92)} - {"0035", "0053"}
    assert made <= set(numbers)


def resolves(name: str) -> bool:
    """Tell whether a dotted name is a module or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_and_names_of_a_page_exist(page: Path) -> None:
    """Each file, folder, module and class that a page names is there."""
    assert absent(page.read_text(encoding="utf-8")) == []


def thresholds_of(page: str) -> dict[str, float]:
    """Return the value that a page gives each threshold in the first two columns of a row."""
    return {
        name: float(value) for name, value in re.findall(r"^\| `([a-z]+\.[A-Z_]+)` \| ([\d.]+) \|", page, re.MULTILINE)
    }


def test_every_threshold_is_a_row_of_its_page() -> None:
    """docs/thresholds.md has each threshold of each room with the value in the code, and no other."""
    rooms = {"gate": gate_thresholds, "memory": memory_thresholds}
    there = {
        f"{room}.{name}": value
        for room, module in rooms.items()
        for name, value in vars(module).items()
        if name.isupper()
    }
    assert thresholds_of((ROOT / "docs" / "thresholds.md").read_text(encoding="utf-8")) == there


def absent_rooms(text: str) -> list[str]:
    """Return the paths within `batos` that a text names, from one of its packages on, and that are not there."""
    packages = "|".join(sorted(path.parent.name for path in SYSTEM.glob("*/__init__.py")))
    named = re.findall(rf"`((?:{packages})/\w+(?:/\w+)*(?:\.py)?)/?`", text)
    return [room for room in named if not any((SYSTEM / f"{room}{end}").exists() for end in ("", ".py"))]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_rooms_of_a_page_exist(page: Path) -> None:
    """A path such as `missions/queue` is a module or a folder of `batos`; decisions may name what they rejected."""
    assert absent_rooms(page.read_text(encoding="utf-8")) == []


def drawn_layers(text: str) -> list[list[str]]:
    """Return the layers of the drawing of a page, the highest first: the names in the left column of each line."""
    drawing = text.partition("do not import each other:\n\n")[2].partition("\n\n")[0]
    columns = [re.split(r"\s{2,}", line.strip())[0] for line in drawing.splitlines()]
    return [sorted(re.findall(r"\w+", column)) for column in columns]


def test_the_drawing_of_the_layers_is_the_contract() -> None:
    """docs/design.md draws the layers that import-linter holds, without those that are not built yet."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = [re.findall(r"\w+", layer) for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]]
    built = [
        sorted(n for n in names if any((SYSTEM / f"{n}{end}").exists() for end in ("", ".py"))) for names in layers
    ]
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    assert drawn_layers(page) == [names for names in built if names]


def test_an_absent_room_is_found() -> None:
    """Modules, folders and files are looked up, and each kind can fail."""
    assert absent_rooms("`missions/runner`, `minds/combine/`, `image/transactions.py`, `somewhere/else`") == []
    assert absent_rooms("`missions/gone`, `minds/gone/`, `image/gone.py`") == [
        "missions/gone",
        "minds/gone",
        "image/gone.py",
    ]


def test_an_absent_path_or_name_is_found() -> None:
    """Files, patterns and names are looked up, and each kind can fail."""
    there = "`src/batos/missions`, `docs/*.md`, `batos.protocol.errors.NotFound`, `batos.toml`"
    gone = ["src/batos/cognition", "docs/*.rst", "batos.cognition", "batos.protocol.errors.Gone"]
    assert absent(there) == []
    assert absent(", ".join(f"`{name}`" for name in gone)) == gone


if __name__ == "__main__":
    for one in documents():
        one.write_text(regenerated(one.read_text(encoding="utf-8")), encoding="utf-8")

"""Rules over several keys of a codex: phrases of two personas, runners that would reload, windows without room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batos.codex import meta_prompts, model_options, protocol_conditions
from batos.codex.key_lines import KeyPath
from batos.codex.reader import TomlSource, TomlTable
from batos.guardian.parsing import parse
from batos.inference import model_names

_SLOT = re.compile(r"[a-z][a-z0-9_]{0,79}")
_PROFILE = re.compile(r"[A-Za-z0-9_-]{1,40}")
_GROUPS = {"_facet_": ("pillars", "a facet's"), "_protocol_": ("protocols", "a protocol's")}

#: The forms of a persona's prompts, as a codex names them; `auto` is decided by the model's size.
FORMS = ("auto", "full", "lean")

#: The forms of an answer of two personas, the usual one first.
ANSWER_FORMS = ("joined", "two_voices")

#: The parts of the Composite Entropy Metric, of which a protocol may name the one that it raises.
METRIC_PARTS = ("Hrel", "Hcog", "Hsol", "Hstruc")

#: The most characters of a signature; Python's own parser reads it.
_SIGNATURE = 200


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of one key (`triggers`) of a persona or of one of its protocols, and the file that they stand in."""

    persona: str
    source: TomlSource
    path: KeyPath
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PersonaRunner:
    """A persona's base and complete options in a profile, with the file in which they are written."""

    persona: str
    source: TomlSource
    base: str
    options: Mapping[str, Any]


def refuse_shared(lists: Iterable[Phrases], what: str) -> None:
    """Refuse a phrase that stands for two personas, or twice for one; each fault names both places."""
    owners: dict[str, tuple[str, TomlSource, KeyPath]] = {}
    for mine in lists:
        for place, phrase in enumerate(mine.texts):
            path = (*mine.path, place)
            known = owners.setdefault(protocol_conditions.fold(phrase), (mine.persona, mine.source, path))
            owner, source, other = known
            if (source, other) == (mine.source, path):
                continue
            line = source.line(other)
            if owner == mine.persona:
                message, remedy = f"{phrase!r} is {what} twice (line {line} too)", "Remove one of them."
            else:
                message = f"{phrase!r} is {what} of {owner} too ({Path(source.file).name}:{line})"
                remedy = "Keep it where it belongs, and only there."
            mine.source.fault(path, message, remedy)


def refuse_reloads(runners: Iterable[PersonaRunner], profile: str) -> bool:
    """Refuse different runner options of personas on one base: every switch would reload it. Return True if any was
    refused.
    """
    first: dict[str, PersonaRunner] = {}
    refused = False
    for mine in runners:
        other = first.setdefault(model_names.with_tag(mine.base).casefold(), mine)
        for name in model_options.RUNNER:
            value, theirs = mine.options.get(name), other.options.get(name)
            if value != theirs:
                where = Path(other.source.file).name
                line = other.source.line(("options", name))
                message = (
                    f"`{name}` is {_value_text(value)}, but {_value_text(theirs)} "
                    f"for {other.persona} ({where}:{line or 1}), "
                    f"who shares its model{_in(profile)}"
                )
                remedy = "Use one value for both: the daemon reloads the model at every switch otherwise."
                mine.source.fault(("options", name), message, remedy)
                refused = True
    return refused


def refuse_no_room(runners: Iterable[PersonaRunner], profile: str) -> bool:
    """Refuse an answer as long as the window, which leaves nothing for the question. Return True if any was refused."""
    refused = False
    for mine in runners:
        window, answer = mine.options["num_ctx"], mine.options["num_predict"]
        if answer >= window:
            message = f"`num_predict` is {answer} of a window of {window}{_in(profile)}: no room for a question"
            remedy = f"Write at most {window // 2}, or raise num_ctx for all personas."
            mine.source.fault(("options", "num_predict"), message, remedy)
            refused = True
    return refused


def homes(*, in_mind: bool) -> dict[str, str]:
    """Return the right place of each key: after a line with brackets all keys belong to that table."""
    top = "at the top of the file, above the first line with brackets"
    mind, persona = (top, "in a persona's file") if in_mind else ("in mind.toml", top)
    places = (
        (("core_identity", "core_method", "triggers", "exemplars", "form"), persona),
        (("charter", "house_rules", "default_model", "coder", "embedder"), mind),
        (("model",), top if not in_mind else "as `default_model` at the top of the file, or under a profile"),
        (
            (*model_options.OLLAMA, *model_options.OURS),
            "under [options]" if not in_mind else "in the `options` of a profile",
        ),
        (tuple(meta_prompts.SHAPES), "under [prompts] of a persona's file"),
        (tuple(protocol_conditions.CONDITIONS), "in a protocol's `when`"),
        (("slot", "inspiration", "intent", "signature", "may_learn", "when"), "under its [[pillars]] or [[protocols]]"),
        (("makes", "given", "metric"), "under its [[protocols]]"),
    )
    return {key: place for keys, place in places for key in keys}


def refuse_profile(profile: TomlTable, name: str) -> None:
    """Refuse a profile's name that a command line cannot hold, and keys in `default`, which is the top of the file."""
    if name == "default" and profile.names():
        what = f"`{profile.names()[0]}` in the profile `default`, which is the keys at the top of the file"
        profile.fault(profile.names()[0], what, "Write it at the top, or give the profile another name.")
    elif not _PROFILE.fullmatch(name):
        profile.source.fault(
            profile.path, f"{name!r} cannot be a profile's name", "Write letters, digits, `_` and `-`."
        )


def refuse_embedder(table: TomlTable, model: str, embedder: str) -> None:
    """Refuse an embedder that also answers: the daemon would load it whole and then refuse to embed."""
    if model and embedder and model_names.same(model, embedder):
        what = f"the embedder is the model that answers, {model!r}: the daemon embeds only with models made for it"
        table.fault("embedder", what, "Name an embedding model, such as all-minilm:latest.")


def refuse_twice(table: TomlTable, key: str, part: str, names: Sequence[str]) -> None:
    """Refuse two tables of an array with one name; `part` is the key that names them."""
    for place, name in enumerate(names):
        if name and name in names[:place]:
            table.source.fault((key, place, part), f"`{name}` is declared twice", f"Give one of them another {part}.")


def refuse_slot(table: TomlTable, slot: str, suffix: str, other: str) -> None:
    """Refuse a slot that is not lower case or lacks its group's ending; `other` is the ending of the other group."""
    if _SLOT.fullmatch(slot) and slot.endswith(suffix) and slot != suffix:
        return
    remedy = f"Write lower case letters, digits and `_`, ending in `{suffix}`."
    if slot.endswith(other):
        remedy += f" A slot that ends in `{other}` belongs under [[{_GROUPS[other][0]}]]."
    table.fault("slot", f"`{slot}` is not {_GROUPS[suffix][1]} slot", remedy)


def refuse_makes(table: TomlTable, makes: str, *, protocol: bool) -> None:
    """Refuse anything but a tool as a protocol's product beside its answer."""
    if makes and not protocol:
        table.fault("makes", "a facet makes only its answer", "Write it under a [[protocols]].")
    elif makes and makes != "tool":
        table.fault("makes", f"`makes` is {makes[:40]!r}", 'Write makes = "tool", or leave it out.')


def refuse_form(table: TomlTable, form: str) -> None:
    """Refuse a form of prompts that does not exist."""
    if form not in FORMS:
        table.fault("form", f"`form` is {form[:40]!r}", f"Write one of: {', '.join(FORMS)}.")


def refuse_answer_form(table: TomlTable, form: str) -> None:
    """Refuse a form of the answers of two personas that does not exist."""
    if form not in ANSWER_FORMS:
        table.fault("answer_form", f"`answer_form` is {form[:40]!r}", f"Write one of: {', '.join(ANSWER_FORMS)}.")


def refuse_given(table: TomlTable, given: str, *, protocol: bool) -> None:
    """Refuse a protocol that is to be told more than the last audit, what the thought cost, or nothing."""
    if given and not protocol:
        table.fault("given", "a facet is given only its sub-query", "Write it under a [[protocols]].")
    elif given and given not in ("audit", "cost"):
        table.fault("given", f"`given` is {given[:40]!r}", 'Write given = "audit" or "cost", or leave it out.')


def refuse_metric(table: TomlTable, metric: str, *, protocol: bool) -> None:
    """Refuse anything but a part of the Composite Entropy Metric as what a protocol raises."""
    if metric and not protocol:
        table.fault("metric", "a facet has no part of the metric", "Write it under a [[protocols]].")
    elif metric and metric not in METRIC_PARTS:
        known = ", ".join(METRIC_PARTS)
        table.fault("metric", f"`metric` is {metric[:40]!r}", f"Write one of {known}, or leave it out.")


def refuse_facet_choice(table: TomlTable, *, protocol: bool) -> None:
    """Refuse exemplars and triggers of a facet: every facet of a cycle is asked."""
    for key in ("exemplars", "triggers"):
        if key in table and not protocol:
            remedy = "Remove it, or write it at the top of the persona's file."
            table.fault(key, f"a facet has no `{key}`", remedy)


def refuse_quotes(table: TomlTable, key: str, text: str) -> None:
    """Refuse a SYSTEM text that a Modelfile cannot hold."""
    if '"""' in text:
        message = f"`{key}` holds three double quotes in a row, which no Modelfile can hold"
        table.fault(key, message, "Write single quotes there.")


def refuse_signature(table: TomlTable, slot: str, signature: str) -> None:
    """Refuse a signature that is not that of a method of its slot: `SLOT(self, query)`."""
    try:
        parsed = parse(f"def {signature}: ...").body if len(signature) <= _SIGNATURE else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parsed = []
    made = parsed[0] if len(parsed) == 1 else None
    if not isinstance(made, ast.FunctionDef) or len(made.body) != 1 or made.returns is not None:
        message = f"`{signature[:_SIGNATURE]}` is not a method's signature"
        table.fault("signature", message, f"Write it as `{slot}(self, query)`, or leave it out.")
    elif made.name != slot:
        message = f"the signature is that of `{made.name}`, and the slot is `{slot}`"
        table.fault("signature", message, f"Write it as `{slot}(self, query)`, or leave it out.")
    elif not made.args.args or made.args.args[0].arg != "self":
        table.fault("signature", "a method's first parameter is `self`", f"Write it as `{slot}(self, query)`.")


def _value_text(value: Any) -> str:
    return "left to the daemon" if value is None else str(value)


def _in(profile: str) -> str:
    return "" if profile == "default" else f" in the profile `{profile}`"

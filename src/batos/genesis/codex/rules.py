"""Rules over several keys of a codex: phrases of two personas, runners that would reload, windows without room."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batos.genesis.codex import declarations, value_checks
from batos.genesis.codex.declarations import FACET_SUFFIX, PROTOCOL_SUFFIX, SIGNATURE, function_of
from batos.genesis.codex.key_lines import KeyPath
from batos.genesis.codex.reader import TomlSource
from batos.inference import model_names

_SLOT = re.compile(r"[a-z][a-z0-9_]{0,79}")
_PROFILE = re.compile(r"[A-Za-z0-9_-]{1,40}")
#: Each group of intents with the ending of its slots, and what a slot of it is called.
_GROUPS = {"pillars": (FACET_SUFFIX, "a facet's"), "protocols": (PROTOCOL_SUFFIX, "a protocol's")}
_UNDER_PROTOCOLS = "Write it under a [[protocols]]."
_AT_THE_TOP = "Remove it, or write it at the top of the persona's file."
#: The keys that only a protocol has, since every facet of a cycle is asked and answers its sub-query.
_NOT_OF_FACETS: Mapping[str, tuple[str, str]] = {
    "makes": ("a facet makes only its answer", _UNDER_PROTOCOLS),
    "given": ("a facet is given only its sub-query", _UNDER_PROTOCOLS),
    "metric": ("a facet has no part of the metric", _UNDER_PROTOCOLS),
    "exemplars": ("a facet has no `exemplars`", _AT_THE_TOP),
    "triggers": ("a facet has no `triggers`", _AT_THE_TOP),
    "when": ("a facet has no `when`", "Remove it: every facet of a cycle is asked."),
}


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of one key (`triggers`) of a persona or of one of its protocols, and the file that they stand in."""

    persona: str
    source: TomlSource
    path: KeyPath
    texts: tuple[str, ...]

    @classmethod
    def read(cls, persona: str, source: TomlSource, path: KeyPath) -> Phrases:
        """Return the phrases as a file has them; what is no text is "" at its place."""
        value: Any = source.values
        for part in path:
            value = value.get(part, ()) if isinstance(value, dict) else value[part]
        listed = value if isinstance(value, list) else ()
        return cls(persona, source, path, tuple(each if isinstance(each, str) else "" for each in listed))


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
        for place, phrase in enumerate(map(str.strip, mine.texts)):
            if not phrase:
                continue
            path = (*mine.path, place)
            known = owners.setdefault(declarations.fold(phrase), (mine.persona, mine.source, path))
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
    """Refuse different runner options on one base, as every switch would reload it; return True if any was."""
    first: dict[str, PersonaRunner] = {}
    refused = False
    for mine in runners:
        other = first.setdefault(model_names.with_tag(mine.base).casefold(), mine)
        for name in value_checks.RUNNER:
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
            (*value_checks.OLLAMA, *value_checks.OURS),
            "under [options]" if not in_mind else "in the `options` of a profile",
        ),
        (tuple(value_checks.SHAPES), "under [prompts] of a persona's file"),
        (tuple(declarations.CONDITIONS), "in a protocol's `when`"),
        (("slot", "inspiration", "intent", "signature", "may_learn", "when"), "under its [[pillars]] or [[protocols]]"),
        (("makes", "given", "metric"), "under its [[protocols]]"),
    )
    return {key: place for keys, place in places for key in keys}


def refuse_profile(source: TomlSource, name: str, keys: Sequence[str]) -> None:
    """Refuse a profile's name that a command line cannot hold, and keys in `default`, which is the top of the file."""
    if name == "default" and keys:
        what = f"`{keys[0]}` in the profile `default`, which is the keys at the top of the file"
        source.fault(("profiles", name, keys[0]), what, "Write it at the top, or give the profile another name.")
    elif not _PROFILE.fullmatch(name):
        source.fault(("profiles", name), f"{name!r} cannot be a profile's name", "Write letters, digits, `_` and `-`.")


def refuse_embedder(source: TomlSource, path: KeyPath, model: str, embedder: str) -> None:
    """Refuse an embedder that also answers: the daemon would load it whole and then refuse to embed."""
    if model and embedder and model_names.same(model, embedder):
        what = f"the embedder is the model that answers, {model!r}: the daemon embeds only with models made for it"
        source.fault((*path, "embedder"), what, "Name an embedding model, such as all-minilm:latest.")


def refuse_twice(source: TomlSource, key: str, part: str) -> None:
    """Refuse two tables of an array with one name; `part` is the key that names them."""
    names = [text_of(table, part) for table in tables_of(source.values, key)]
    for place, name in enumerate(names):
        if name and name in names[:place]:
            source.fault((key, place, part), f"`{name}` is declared twice", f"Give one of them another {part}.")


def refuse_intents(source: TomlSource, group: str) -> None:
    """Refuse slots and signatures that do not fit the group of an intent, and what only protocols have, of facets."""
    for place, table in enumerate(tables_of(source.values, group)):
        slot, signature = text_of(table, "slot"), text_of(table, "signature")
        if slot:
            _refuse_slot(source, (group, place, "slot"), slot)
        if slot and signature:
            _refuse_signature(source, (group, place, "signature"), slot, signature)
        for key, fault in _NOT_OF_FACETS.items():
            if group == "pillars" and key in table:
                source.fault((group, place, key), *fault)


def text_of(table: Mapping[str, object], key: str) -> str:
    """Return a text as it is written, stripped; "" where there is none."""
    value = table.get(key)
    return value.strip() if isinstance(value, str) else ""


def tables_of(table: Mapping[str, object], key: str) -> list[dict[str, object]]:
    """Return an array of tables as it is written; an empty one where there is none."""
    value = table.get(key)
    return value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else []


def _refuse_slot(source: TomlSource, path: KeyPath, slot: str) -> None:
    """Refuse a slot that is not lower case or lacks its group's ending."""
    suffix, whose = _GROUPS[str(path[0])]
    if _SLOT.fullmatch(slot) and slot.endswith(suffix) and slot != suffix:
        return
    remedy = f"Write lower case letters, digits and `_`, ending in `{suffix}`."
    for other, (ending, _) in _GROUPS.items():
        if slot.endswith(ending) and ending != suffix:
            remedy += f" A slot that ends in `{ending}` belongs under [[{other}]]."
    source.fault(path, f"`{slot}` is not {whose} slot", remedy)


def refuse_quotes(source: TomlSource, key: str) -> None:
    """Refuse a SYSTEM text that a Modelfile cannot hold."""
    if '"""' in text_of(source.values, key):
        message = f"`{key}` holds three double quotes in a row, which no Modelfile can hold"
        source.fault((key,), message, "Write single quotes there.")


def _refuse_signature(source: TomlSource, path: KeyPath, slot: str, signature: str) -> None:
    """Refuse a signature that is not that of a method of its slot: `SLOT(self, query)`."""
    made = function_of(signature)
    if made is None:
        message = f"`{signature[:SIGNATURE]}` is not a method's signature"
        source.fault(path, message, f"Write it as `{slot}(self, query)`, or leave it out.")
    elif made.name != slot:
        message = f"the signature is that of `{made.name}`, and the slot is `{slot}`"
        source.fault(path, message, f"Write it as `{slot}(self, query)`, or leave it out.")
    elif not made.args.args or made.args.args[0].arg != "self":
        source.fault(path, "a method's first parameter is `self`", f"Write it as `{slot}(self, query)`.")


def _value_text(value: object) -> str:
    return "left to the daemon" if value is None else str(value)


def _in(profile: str) -> str:
    return "" if profile == "default" else f" in the profile `{profile}`"

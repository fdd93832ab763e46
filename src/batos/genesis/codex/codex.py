"""The codex: describes the personas; read from a folder of TOML into frozen values."""

from __future__ import annotations

import importlib.resources
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from batos import home_folder
from batos.genesis.codex import rules, value_checks
from batos.genesis.codex.declarations import AbsentObject, IntentText
from batos.genesis.codex.key_lines import KeyPath
from batos.genesis.codex.reader import TomlSource, is_there, nearest_word, read_texts
from batos.genesis.codex.value_checks import CLOSED, ModelName, OptionalText, Text, Texts, digest_of, read_as
from batos.inference import model_names
from batos.protocol.errors import CodexError, UsageError

MIND = "mind.toml"
#: The line of mind.toml that names the model of all personas that name none.
_DEFAULT_MODEL = re.compile(r"^default_model[ \t]*=.*$", re.MULTILINE)


#: The four personas, in the order in which they speak, each with the pillars it cannot be without.
PILLARS: Mapping[str, tuple[str, ...]] = {
    "ROBIN": ("sage_facet_", "still_point_facet_", "joyful_spark_facet_"),
    "BRICK": ("tamland_facet_", "guide_facet_", "rogues_gallery_facet_"),
    "BABS": ("digital_cartography_facet_", "flawless_execution_facet_", "joyful_competence_facet_"),
    "ALFRED": ("doubt_protocol_facet_", "pragmatist_facet_", "steward_facet_"),
}

#: The most words of `cycle_from`: no question that means something has more.
MOST_WORDS = 500
_PERSONA_FILES = {name: f"{name.lower()}.toml" for name in PILLARS}


Prompts: TypeAlias = Annotated[
    dict[str, Text], BeforeValidator(value_checks.check_names), AfterValidator(value_checks.check_places)
]
Options: TypeAlias = Annotated[dict[str, object], AfterValidator(value_checks.check_options)]


@dataclass(frozen=True, slots=True)
class PersonaTable:
    """The contents of a persona's file. `model` is "" where it thinks with the profile's model.

    `form` is the form of its prompts, `auto` where the model's size decides. `line` says who speaks in the lean form.
    `answer_form` is "" where mind.toml's holds.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    core_identity: Text
    core_method: Text
    triggers: Texts
    exemplars: Texts
    prompts: Prompts
    model: ModelName = ""
    options: Options = field(default_factory=dict)
    pillars: tuple[IntentText, ...] = ()
    protocols: tuple[IntentText, ...] = ()
    form: Literal["auto", "full", "lean"] = "auto"
    line: OptionalText = ""
    answer_form: Literal["", "joined", "two_voices"] = ""


@dataclass(frozen=True, slots=True)
class Persona(PersonaTable):
    """A persona's codex, with its name."""

    name: str = ""

    @property
    def key(self) -> str:
        """Return the name in lower case, as in `robin.toml`, `robin_prototype_obj` and `batos-robin`."""
        return self.name.lower()

    @property
    def system(self) -> str:
        """Return the SYSTEM text of the persona's own model, for people who use that model by hand."""
        return f"{self.core_identity}\n\n{self.core_method}"


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """The models for a kind of machine, and options that replace the personas'."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    model: ModelName = ""
    coder: ModelName = ""
    embedder: ModelName = ""
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile(ProfileTable):
    """A profile, complete, with its name."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class MindTable:
    """The contents of mind.toml."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    charter: Text
    house_rules: Text
    default_model: ModelName
    embedder: ModelName
    coder: ModelName = ""
    profiles: Mapping[str, ProfileTable] = field(default_factory=dict)
    objects: tuple[AbsentObject, ...] = ()
    #: The form of an answer of two personas: joined to one text, or each under its name.
    answer_form: Literal["joined", "two_voices"] = "joined"
    #: The words from which a question that nobody gave an effort takes a cycle; 0: no question does.
    cycle_from: Annotated[int, Field(strict=True, ge=0, le=MOST_WORDS)] = 0


@dataclass(frozen=True, slots=True)
class Codex(MindTable):
    """The whole codex; `digest` (sha256, hex) is over what the files say, `texts` are the files as written."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    personas: Mapping[str, Persona] = field(default_factory=dict)
    digest: str = ""
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def profile(self, name: str) -> Profile:
        """Return the profile of that name. Raises: UsageError: there is none; the error lists the known names."""
        if name not in self.profiles:
            known = ", ".join(self.profiles)
            raise UsageError(f"the codex has no profile {name!r}", remedy=f"Set `profile` to one of: {known}.")
        return self.profiles[name]

    def model_for(self, persona: str, profile: str = "default") -> str:
        """Return the base model of a persona: its own, else the profile's."""
        return self.personas[persona].model or self.profile(profile).model

    def options_for(self, persona: str, profile: str = "default") -> dict[str, Any]:
        """Return a persona's options, complete: our defaults, then the persona's, then the profile's."""
        return {**value_checks.DEFAULTS, **self.personas[persona].options, **self.profile(profile).options}


@dataclass(frozen=True, slots=True)
class CodexReading:
    """The result of reading a codex: the codex, or every fault by file and line; `sources` are the files by name."""

    codex: Codex | None
    faults: tuple[CodexError, ...]
    sources: Mapping[str, TomlSource] = field(repr=False)

    def sound(self) -> Codex:
        """Return the codex. Raises: CodexError: the first fault by file and line, with all of them in `faults`."""
        if self.codex is None:
            first, *others = self.faults
            raise first.among(self.faults).add_faults(f"{fault.message}. {fault.remedy}".strip() for fault in others)
        return self.codex


def load(folder: Path) -> Codex:
    """Read the codex of a folder; raises the first CodexError, by file and line, with all of them as its `faults`."""
    texts, faults = read_texts(folder, _file_names())
    if not faults:
        with suppress(CodexError):  # raised below, with the places of the files
            return _parse_once(tuple(texts.items()))
    return parse(texts, faults, folder).sound()


@lru_cache(maxsize=8)
def _parse_once(texts: tuple[tuple[str, str], ...]) -> Codex:
    """Return the codex of these texts by file name; homes whose files are alike share it, for it is never changed."""
    return parse(dict(texts)).sound()


def read(folder: Path) -> CodexReading:
    """Read the codex of a folder, every file of it, and tell every fault of all."""
    return parse(*read_texts(folder, _file_names()), folder)


def standing(folder: Path) -> tuple[CodexReading, frozenset[str]]:
    """Read the codex as the next genesis will find it, and change nothing: a missing file has the shipped text.

    The second value holds the names of the missing files.
    """
    ours = read_shipped()
    written = tuple(name for name in ours if is_there(folder / name))
    texts, faults = read_texts(folder, written) if written else ({}, [])
    absent = frozenset(name for name in ours if name not in written)
    return parse({**{name: ours[name] for name in absent}, **texts}, faults, folder), absent


def parse(texts: Mapping[str, str], faults: Sequence[CodexError] = (), folder: Path = Path()) -> CodexReading:
    """Read the codex that texts by file name are; `faults` were found before, `folder` is where the files are."""
    sources = {
        name: TomlSource(str(folder / name), text, rules.homes(in_mind=name == MIND)) for name, text in texts.items()
    }
    mind = _read_mind(sources[MIND]) if MIND in sources and sources[MIND].sound else None
    of = {name: sources[file] for name, file in _PERSONA_FILES.items() if file in sources and sources[file].sound}
    personas = {name: _read_persona(name, source) for name, source in of.items()}
    _refuse_shared(of)
    if mind is not None:
        _refuse_runners(mind, of)
    found = _sort_faults(faults, sources)
    if found or mind is None or len(personas) < len(PILLARS):
        return CodexReading(None, found, MappingProxyType(sources))
    return CodexReading(_codex_of(mind, personas, sources), (), MappingProxyType(sources))


def read_shipped() -> dict[str, str]:
    """Return the codex that ships with the program: file name to text."""
    folder = importlib.resources.files("batos.genesis.codex") / "shipped"
    return {name: (folder / name).read_text(encoding="utf-8") for name in _file_names()}


def install(folder: Path) -> list[str]:
    """Copy what is absent of the shipped codex to a folder; returns the names of the files copied.

    CodexError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copied = [name for name in _file_names() if not is_there(folder / name)]
        texts = read_shipped() if copied else {}
        for name in copied:
            home_folder.write_shared(folder / name, texts[name])
    except OSError as error:
        remedy = "Make it a folder that you may write, with room on its disk."
        raise CodexError(f"the codex cannot be put there: {error.strerror}", file=str(folder), remedy=remedy) from error
    return copied


def choose_model(folder: Path, profile: str, name: str) -> None:
    """Write a model into the codex as that of every persona that names none.

    Raises: UsageError: no model has this name, or the profile names another. CodexError: it cannot be written.
    """
    path, fault = folder / MIND, model_names.fault(name)
    if fault is not None:
        raise UsageError(fault[0], field="model", remedy=fault[1])
    install(folder)
    text = path.read_text(encoding="utf-8")
    if tomllib.loads(text).get("profiles", {}).get(profile, {}).get("model"):
        remedy = f"Edit [profiles.{profile}] in {path}."
        raise UsageError(f"the profile {profile} names its own model", field="model", remedy=remedy)
    changed, count = _DEFAULT_MODEL.subn(lambda _: f"default_model = {json.dumps(name)}", text)
    if count != 1:
        raise CodexError("there is no line of `default_model` to write into", file=str(path), remedy="Add one.")
    home_folder.write_shared(path, changed)


def _file_names() -> tuple[str, ...]:
    return (MIND, *_PERSONA_FILES.values())


def _sort_faults(faults: Iterable[CodexError], sources: Mapping[str, TomlSource]) -> tuple[CodexError, ...]:
    """Return every fault once, by file and line."""
    found = {fault.message: fault for fault in (*faults, *(each for one in sources.values() for each in one.faults))}
    order = {name: place for place, name in enumerate(_file_names())}
    return tuple(sorted(found.values(), key=lambda each: (order.get(Path(each.file).name, len(order)), each.line or 0)))


def _read_mind(source: TomlSource) -> MindTable | None:
    """Read mind.toml. Faults are added to its file."""
    mind = read_as(MindTable, source, source.values)
    rules.refuse_twice(source, "objects", "name")
    if mind is None:
        return None
    rules.refuse_embedder(source, (), mind.default_model, mind.embedder)
    for name, table in source.values.get("profiles", {}).items():
        rules.refuse_profile(source, name, tuple(table))
        if "model" in table or "embedder" in table:
            profile = mind.profiles[name]
            model, embedder = profile.model or mind.default_model, profile.embedder or mind.embedder
            rules.refuse_embedder(source, ("profiles", name), model, embedder)
    return mind


def _profiles(mind: MindTable) -> dict[str, Profile]:
    """Return the profiles, complete: the keys at the top of the file are `default`, and stand where one has none."""
    model, embedder = mind.default_model, mind.embedder
    found = {"default": Profile(model, mind.coder or model, embedder, {}, "default")}
    for name, each in mind.profiles.items():
        coder = each.coder or each.model or found["default"].coder
        found[name] = Profile(each.model or model, coder, each.embedder or embedder, each.options, name)
    return found


def _codex_of(mind: MindTable, personas: Mapping[str, Persona | None], sources: Mapping[str, TomlSource]) -> Codex:
    """Return the codex of a mind and its personas."""
    return Codex(
        **{
            **_values(mind),
            "coder": mind.coder or mind.default_model,
            "profiles": _profiles(mind),
            "personas": MappingProxyType({name: each for name, each in personas.items() if each is not None}),
            "digest": digest_of({name: source.values for name, source in sources.items()}),
            "texts": MappingProxyType({name: source.text for name, source in sources.items()}),
        }
    )


def _values(table: MindTable | PersonaTable) -> dict[str, Any]:
    return {each.name: getattr(table, each.name) for each in fields(table)}


def _read_persona(name: str, source: TomlSource) -> Persona | None:
    """Read a persona's file. Faults are added to it."""
    found = read_as(PersonaTable, source, {"prompts": {}, **source.values})
    for key in ("core_identity", "core_method"):
        rules.refuse_quotes(source, key)
    for group in ("pillars", "protocols"):
        rules.refuse_intents(source, group)
    _refuse_slots(name, source)
    return None if found is None else Persona(**_values(found), name=name)


def _refuse_slots(persona: str, source: TomlSource) -> None:
    """Refuse a slot that is declared twice, and a persona without one of its pillars."""
    declared: dict[str, KeyPath] = {}
    for group in ("pillars", "protocols"):
        for number, table in enumerate(rules.tables_of(source.values, group)):
            path, slot = (group, number, "slot"), rules.text_of(table, "slot")
            if slot in declared:
                what = f"the slot `{slot}` is declared twice (line {source.line(declared[slot])} too)"
                source.fault(path, what, "Give one of them another slot.")
            elif slot:
                declared[slot] = path
            if slot in PILLARS[persona] and table.get("shelved"):
                what = f"{persona} does not think without its pillar `{slot}`"
                source.fault((group, number, "shelved"), what, "Remove the line.")
    further = [slot for slot in declared if slot not in PILLARS[persona]]
    for slot in PILLARS[persona]:
        if slot not in declared:
            near = nearest_word(slot, further)
            hint = f"; `{near}` (line {source.line(declared[near])}) is another" if near else ""
            remedy = f'Write it: [[pillars]] with slot = "{slot}"; `batos help codex` shows how.'
            source.fault(("pillars",), f"{persona} lacks its pillar `{slot}`{hint}", remedy)


def _refuse_shared(of: Mapping[str, TomlSource]) -> None:
    """Refuse phrases that stand for two personas, or for protocols of two."""
    for key, what in (("triggers", "a trigger"), ("exemplars", "an exemplar")):
        rules.refuse_shared((rules.Phrases.read(name, of[name], (key,)) for name in of), what)
        protocols = (
            rules.Phrases.read(name, source, ("protocols", place, key))
            for name, source in of.items()
            for place, _ in enumerate(rules.tables_of(source.values, "protocols"))
        )
        rules.refuse_shared(protocols, f"{what} of a protocol")


def _refuse_runners(mind: MindTable, of: Mapping[str, TomlSource]) -> None:
    """Refuse options of personas that do not go together, in the first profile where that is so."""
    judged = {name: each for name, each in of.items() if not each.faulty("options")}
    for profile in _profiles(mind).values():
        runners = [
            rules.PersonaRunner(
                name,
                source,
                rules.text_of(source.values, "model") or profile.model,
                {**value_checks.DEFAULTS, **source.values.get("options", {}), **profile.options},
            )
            for name, source in judged.items()
        ]
        if rules.refuse_reloads(runners, profile.name) or rules.refuse_no_room(runners, profile.name):
            break  # the other profiles would say the same again

"""The codex: describes the personas; read from a folder of TOML into frozen values."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from batos import private_files
from batos.codex import declared_intents, declared_objects, files, meta_prompts, model_options, rules
from batos.codex.declared_intents import FACET_SUFFIX, PROTOCOL_SUFFIX, IntentText
from batos.codex.declared_objects import AbsentObject
from batos.codex.key_lines import KeyPath
from batos.codex.reader import TomlSource, TomlTable, nearest_word
from batos.codex.value_digests import digest_of
from batos.inference import model_names
from batos.protocol.errors import CodexError, UsageError

MIND = "mind.toml"


#: The four personas, in the order in which they speak, each with the pillars it cannot be without.
PILLARS: Mapping[str, tuple[str, ...]] = {
    "ROBIN": ("sage_facet_", "still_point_facet_", "joyful_spark_facet_"),
    "BRICK": ("tamland_facet_", "guide_facet_", "rogues_gallery_facet_"),
    "BABS": ("digital_cartography_facet_", "flawless_execution_facet_", "joyful_competence_facet_"),
    "ALFRED": ("doubt_protocol_facet_", "pragmatist_facet_", "steward_facet_"),
}

_PERSONA_FILES = {name: f"{name.lower()}.toml" for name in PILLARS}


@dataclass(frozen=True, slots=True)
class Persona:
    """A persona's codex; `model` is None where it thinks with the profile's model.

    `form` is the form of its prompts, `auto` where the model's size decides. `line` says who speaks in the lean form.
    `answer_form` is "" where mind.toml's holds.
    """

    name: str
    core_identity: str
    core_method: str
    model: str | None
    options: Mapping[str, Any]
    triggers: tuple[str, ...]
    exemplars: tuple[str, ...]
    prompts: Mapping[str, str]
    pillars: tuple[IntentText, ...]
    protocols: tuple[IntentText, ...]
    form: str = "auto"
    line: str = ""
    answer_form: str = ""

    @property
    def key(self) -> str:
        """Return the name in lower case, as in `robin.toml`, `robin_prototype_obj` and `batos-robin`."""
        return self.name.lower()

    @property
    def system(self) -> str:
        """Return the SYSTEM text of the persona's own model, for people who use that model by hand."""
        return f"{self.core_identity}\n\n{self.core_method}"


@dataclass(frozen=True, slots=True)
class Profile:
    """The models for a kind of machine, and options that replace the personas'."""

    name: str
    model: str
    coder: str
    embedder: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MindFile:
    """The contents of mind.toml."""

    charter: str
    house_rules: str
    default_model: str
    coder: str
    embedder: str
    profiles: Mapping[str, Profile]
    objects: tuple[AbsentObject, ...]
    #: The form of an answer of two personas: joined to one text, or each under its name.
    answer_form: str


@dataclass(frozen=True, slots=True)
class Codex(MindFile):
    """The whole codex; `digest` (sha256, hex) is over what the files say, `texts` are the files as written."""

    personas: Mapping[str, Persona]
    digest: str
    texts: Mapping[str, str] = field(repr=False)

    def profile(self, name: str) -> Profile:
        """Return the profile of that name.

        Raises: UsageError: there is none; the error lists the known names.
        """
        if name not in self.profiles:
            known = ", ".join(self.profiles)
            raise UsageError(f"the codex has no profile {name!r}", remedy=f"Set `profile` to one of: {known}.")
        return self.profiles[name]

    def model_for(self, persona: str, profile: str = "default") -> str:
        """Return the base model of a persona: its own, else the profile's."""
        return self.personas[persona].model or self.profile(profile).model

    def answer_form_for(self, persona: str) -> str:
        """Return the form of the answers of two personas that this one leads."""
        return self.personas[persona].answer_form or self.answer_form

    def options_for(self, persona: str, profile: str = "default") -> dict[str, Any]:
        """Return a persona's options, complete: our defaults, then the persona's, then the profile's."""
        return {**model_options.DEFAULTS, **self.personas[persona].options, **self.profile(profile).options}


@dataclass(frozen=True, slots=True)
class CodexReading:
    """The result of reading a codex: the codex, or every fault by file and line; `sources` are the files by name."""

    codex: Codex | None
    faults: tuple[CodexError, ...]
    sources: Mapping[str, TomlSource] = field(repr=False)

    def sound(self) -> Codex:
        """Return the codex.

        Raises: CodexError: the first fault by file and line, with all of them in `faults`.
        """
        if self.codex is None:
            first, *others = self.faults
            raise first.among(self.faults).add_faults(f"{fault.message}. {fault.remedy}".strip() for fault in others)
        return self.codex


def load(folder: Path) -> Codex:
    """Read the codex of a folder; raises the first CodexError, by file and line, with all of them as its `faults`."""
    return read(folder).sound()


def read(folder: Path) -> CodexReading:
    """Read the codex of a folder, every file of it, and tell every fault of all."""
    return parse(*files.texts(folder, _file_names()), folder)


def standing(folder: Path) -> tuple[CodexReading, frozenset[str]]:
    """Read the codex as the next genesis will find it, and change nothing: a missing file has the shipped text.

    The second value holds the names of the missing files.
    """
    ours = read_shipped()
    written = tuple(name for name in ours if files.there(folder / name))
    texts, faults = files.texts(folder, written) if written else ({}, [])
    absent = frozenset(name for name in ours if name not in written)
    return parse({**{name: ours[name] for name in absent}, **texts}, faults, folder), absent


def parse(texts: Mapping[str, str], faults: Sequence[CodexError] = (), folder: Path = Path()) -> CodexReading:
    """Read the codex that texts by file name are; `faults` were found before, `folder` is where the files are."""
    sources = {
        name: TomlSource(str(folder / name), text, rules.homes(in_mind=name == MIND)) for name, text in texts.items()
    }
    sound = {name: source for name, source in sources.items() if source.sound}
    mind = _read_mind(sound[MIND].top) if MIND in sound else None
    personas = {name: _persona(name, sound[file].top) for name, file in _PERSONA_FILES.items() if file in sound}
    _refuse_between(mind, personas, sound)
    found = _sort_faults(faults, sources)
    if found or mind is None or len(personas) < len(PILLARS):
        return CodexReading(None, found, MappingProxyType(sources))
    return CodexReading(_codex_of(mind, personas, texts, sources), (), MappingProxyType(sources))


def read_shipped() -> dict[str, str]:
    """Return the codex that ships with the program: file name to text."""
    folder = importlib.resources.files("batos.codex") / "shipped"
    return {name: (folder / name).read_text(encoding="utf-8") for name in _file_names()}


def install(folder: Path) -> list[str]:
    """Copy what is absent of the shipped codex to a folder; returns the names of the files copied.

    CodexError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copied = [name for name in _file_names() if not files.there(folder / name)]
        texts = read_shipped() if copied else {}
        for name in copied:
            private_files.write_shared(folder / name, texts[name])
    except OSError as error:
        remedy = "Make it a folder that you may write, with room on its disk."
        raise CodexError(f"the codex cannot be put there: {error.strerror}", file=str(folder), remedy=remedy) from error
    return copied


def _file_names() -> tuple[str, ...]:
    return (MIND, *_PERSONA_FILES.values())


def _sort_faults(faults: Iterable[CodexError], sources: Mapping[str, TomlSource]) -> tuple[CodexError, ...]:
    """Return every fault once, by file and line."""
    found = {fault.message: fault for fault in (*faults, *(each for one in sources.values() for each in one.faults))}
    order = {name: place for place, name in enumerate(_file_names())}
    return tuple(sorted(found.values(), key=lambda each: (order.get(Path(each.file).name, len(order)), each.line or 0)))


def _read_mind(table: TomlTable) -> MindFile:
    """Read the values of mind.toml. Faults are added to its file."""
    model = _model(table, "default_model") or ""
    coder = _model(table, "coder", default=model) or model
    embedder = _model(table, "embedder") or ""
    declared = table.table("profiles")
    profiles = {"default": Profile("default", model, coder, embedder, {})}
    for name in declared.names():
        written = declared.table(name)
        rules.refuse_profile(written, name)
        profiles[name] = _profile(written, name, profiles["default"])
    declared_absent = tuple(declared_objects.read(item) for item in table.tables("objects"))
    rules.refuse_twice(table, "objects", "name", [each.name for each in declared_absent])
    rules.refuse_embedder(table, model, embedder)
    form = table.text("answer_form", default=rules.ANSWER_FORMS[0])
    rules.refuse_answer_form(table, form)
    texts = table.text("charter"), table.text("house_rules")
    mind = MindFile(*texts, model, coder, embedder, profiles, declared_absent, form)
    table.close()
    return mind


def _codex_of(
    mind: MindFile, personas: Mapping[str, Persona], texts: Mapping[str, str], sources: Mapping[str, TomlSource]
) -> Codex:
    """Return the codex of a mind and its personas."""
    return Codex(
        **{each.name: getattr(mind, each.name) for each in fields(mind)},
        personas=MappingProxyType(dict(personas)),
        digest=digest_of({name: source.values for name, source in sources.items()}),
        texts=MappingProxyType(dict(texts)),
    )


def _profile(table: TomlTable, name: str, default: Profile) -> Profile:
    model = _model(table, "model", default=default.model) or ""
    profile = Profile(
        name=name,
        model=model,
        coder=_model(table, "coder", default=model if "model" in table else default.coder) or "",
        embedder=_model(table, "embedder", default=default.embedder) or "",
        options=MappingProxyType(model_options.read(table.table("options"))),
    )
    if "model" in table or "embedder" in table:
        rules.refuse_embedder(table, profile.model, profile.embedder)
    table.close()
    return profile


def _model(table: TomlTable, key: str, default: str | None = None) -> str | None:
    if key not in table and default is not None:
        return table.text(key, default=default)
    name = table.text(key)
    problem = model_names.fault(name) if name else None
    if problem is not None:
        table.fault(key, *problem)
    return name or None


def _persona(name: str, table: TomlTable) -> Persona:
    persona = Persona(
        name=name,
        core_identity=table.text("core_identity"),
        core_method=table.text("core_method"),
        model=_model(table, "model", default="") or None,
        options=MappingProxyType(model_options.read(table.table("options"))),
        triggers=table.texts("triggers"),
        exemplars=table.texts("exemplars"),
        prompts=MappingProxyType(meta_prompts.read(table.table("prompts"))),
        pillars=tuple(declared_intents.read(item, FACET_SUFFIX) for item in table.tables("pillars")),
        protocols=tuple(declared_intents.read(item, PROTOCOL_SUFFIX) for item in table.tables("protocols")),
        form=table.text("form", default="auto"),
        line=table.text("line", default=""),
        answer_form=table.text("answer_form", default=""),
    )
    rules.refuse_form(table, persona.form)
    if "answer_form" in table:
        rules.refuse_answer_form(table, persona.answer_form)
    for key in ("core_identity", "core_method"):
        rules.refuse_quotes(table, key, getattr(persona, key))
    _refuse_slots(persona, table)
    table.close()
    return persona


def _refuse_slots(persona: Persona, table: TomlTable) -> None:
    declared: dict[str, KeyPath] = {}
    line = table.source.line
    for group, intents in (("pillars", persona.pillars), ("protocols", persona.protocols)):
        for number, intent in enumerate(intents):
            path: KeyPath = (group, number, "slot")
            if intent.slot in declared:
                what = f"the slot `{intent.slot}` is declared twice (line {line(declared[intent.slot])} too)"
                table.source.fault(path, what, "Give one of them another slot.")
            elif intent.slot:
                declared[intent.slot] = path
    further = [slot for slot in declared if slot not in PILLARS[persona.name]]
    for slot in PILLARS[persona.name]:
        if slot not in declared:
            near = nearest_word(slot, further)
            hint = f"; `{near}` (line {line(declared[near])}) is another" if near else ""
            remedy = f'Write it: [[pillars]] with slot = "{slot}"; `batos help codex` shows how.'
            table.fault("pillars", f"{persona.name} lacks its pillar `{slot}`{hint}", remedy)


def _refuse_between(mind: MindFile | None, personas: Mapping[str, Persona], sources: Mapping[str, TomlSource]) -> None:
    """Add faults that only two keys together, or two files, show."""
    of = {name: sources[_PERSONA_FILES[name]] for name in personas}
    for key, what in (("triggers", "a trigger"), ("exemplars", "an exemplar")):
        phrases = (rules.Phrases(name, of[name], (key,), getattr(each, key)) for name, each in personas.items())
        rules.refuse_shared(phrases, what)
        protocols = (
            rules.Phrases(name, of[name], ("protocols", place, key), getattr(protocol, key))
            for name, each in personas.items()
            for place, protocol in enumerate(each.protocols)
        )
        rules.refuse_shared(protocols, f"{what} of a protocol")
    judged = {name: each for name, each in personas.items() if not of[name].faulty("options")}
    for profile in mind.profiles.values() if mind is not None and not sources[MIND].faulty("profiles") else ():
        runners = [
            rules.PersonaRunner(
                name,
                of[name],
                persona.model or profile.model,
                {**model_options.DEFAULTS, **persona.options, **profile.options},
            )
            for name, persona in judged.items()
        ]
        if rules.refuse_reloads(runners, profile.name) or rules.refuse_no_room(runners, profile.name):
            break  # the other profiles would say the same again

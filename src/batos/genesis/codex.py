"""The codex: who the personas are, read from a folder of TOML into frozen values."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from batos.errors import CodexError, UsageError
from batos.genesis import modelname, options, prompts, when
from batos.genesis.reader import Source, Table, suggestion

MIND = "mind.toml"

#: The most that a file of the codex may have, in bytes: the shipped ones have some thousands.
LARGEST = 2**20

#: The four personas, in the order in which they speak, each with the pillars it cannot be without.
PILLARS: Mapping[str, tuple[str, ...]] = {
    "ROBIN": ("sage_facet_", "still_point_facet_", "joyful_spark_facet_"),
    "BRICK": ("tamland_facet_", "guide_facet_", "rogues_gallery_facet_"),
    "BABS": ("digital_cartography_facet_", "flawless_execution_facet_", "joyful_competence_facet_"),
    "ALFRED": ("doubt_protocol_facet_", "pragmatist_facet_", "steward_facet_"),
}

FACET_SUFFIX = "_facet_"
PROTOCOL_SUFFIX = "_protocol_"


@dataclass(frozen=True, slots=True)
class IntentText:
    """A pillar's facet or a key protocol, as the codex declares it: what becomes an Intent in a slot."""

    slot: str
    name: str
    inspiration: str
    intent: str
    signature: str
    examples: tuple[str, ...]
    may_learn: bool
    when: Mapping[str, Any] | None

    @property
    def digest(self) -> str:
        """sha256 (hex) of everything declared: it tells a changed intent from an unchanged one."""
        return digest_of([self.slot, self.name, self.inspiration, self.intent, self.signature,
                        list(self.examples), self.may_learn, dict(self.when) if self.when else None])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Persona:
    """A persona's codex; `model` is None where it thinks with the profile's model."""

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

    @property
    def key(self) -> str:
        """The name in lower case, as in `robin.toml`, `robin_prototype_obj` and `batos-robin`."""
        return self.name.lower()

    @property
    def system(self) -> str:
        """What the persona's own model says of itself to people who use it by hand."""
        return f"{self.core_identity}\n\n{self.core_method}"


@dataclass(frozen=True, slots=True)
class Profile:
    """Which models a kind of machine thinks with, and options that replace the personas'."""

    name: str
    model: str
    coder: str
    embedder: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AbsentObject:
    """An object that is declared and does not exist: a message to it is a wish for a tool."""

    name: str
    api: str


@dataclass(frozen=True, slots=True)
class Codex:
    """The whole codex; `digest` (sha256, hex) is over what the files say, `texts` are the files as written."""

    charter: str
    house_rules: str
    default_model: str
    coder: str
    embedder: str
    profiles: Mapping[str, Profile]
    objects: tuple[AbsentObject, ...]
    personas: Mapping[str, Persona]
    digest: str
    texts: Mapping[str, str] = field(repr=False)

    def profile(self, name: str) -> Profile:
        """The profile of that name; raises UsageError naming those there are."""
        if name not in self.profiles:
            known = ", ".join(self.profiles)
            raise UsageError(f"the codex has no profile {name!r}", remedy=f"Set `profile` to one of: {known}.")
        return self.profiles[name]

    def model_for(self, persona: str, profile: str = "default") -> str:
        """The base model that a persona thinks with: its own, else the profile's."""
        return self.personas[persona].model or self.profile(profile).model

    def options_for(self, persona: str, profile: str = "default") -> dict[str, Any]:
        """A persona's options, complete: our defaults, then the persona's, then the profile's."""
        return {**options.DEFAULTS, **self.personas[persona].options, **self.profile(profile).options}


def load(folder: Path) -> Codex:
    """Read the codex of a folder; raises the first CodexError, by file and line, which tells the others `also`."""
    codex, faults = check(folder)
    if codex is None:
        faults[0].also = tuple(f"{fault.message} {fault.remedy}".strip() for fault in faults[1:])
        raise faults[0]
    return codex


def check(folder: Path) -> tuple[Codex | None, tuple[CodexError, ...]]:
    """Read the codex of a folder and tell every fault; the codex is None if there is one."""
    texts, faults = _texts(folder)
    sources = {name: Source(str(folder / name), text) for name, text in texts.items()}
    if faults or any(source.faults for source in sources.values()):
        return None, _ordered(faults, sources)
    mind = _Mind.read(sources[MIND].top)
    personas = {name: _persona(name, sources[f"{name.lower()}.toml"].top) for name in PILLARS}
    _refuse_shared(personas, sources, "triggers", "a trigger")
    _refuse_shared(personas, sources, "exemplars", "an exemplar")
    if not any(source.faults for source in sources.values()):
        for profile in mind.profiles.values():
            _refuse_reloads(mind, personas, profile, sources)
    if any(source.faults for source in sources.values()):
        return None, _ordered(faults, sources)
    return mind.codex(personas, texts, sources), ()


def shipped() -> dict[str, str]:
    """The codex that ships with the program: file name to text."""
    folder = importlib.resources.files("batos.genesis") / "codex"
    return {name: (folder / name).read_text(encoding="utf-8") for name in _file_names()}


def install(folder: Path) -> list[str]:
    """Copy what is absent of the shipped codex to a folder; returns the names of the files copied.

    CodexError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copied = [name for name in _file_names() if not (folder / name).exists()]
        texts = shipped()
        for name in copied:
            (folder / name).write_text(texts[name], encoding="utf-8")
    except OSError as error:
        remedy = "Make it a folder that you may write, with room on its disk."
        raise CodexError(f"the codex cannot be put there: {error.strerror}", file=str(folder), remedy=remedy) from error
    return copied


def _file_names() -> tuple[str, ...]:
    return (MIND, *(f"{name.lower()}.toml" for name in PILLARS))


def _texts(folder: Path) -> tuple[dict[str, str], list[CodexError]]:
    texts: dict[str, str] = {}
    faults: list[CodexError] = []
    for name in _file_names():
        try:
            texts[name] = _text(folder / name)
        except CodexError as fault:
            faults.append(fault)
    for path in sorted(folder.glob("[!.]*.toml")):
        if path.name not in _file_names():
            remedy = f"Move it away{suggestion(path.name, _file_names())}. There are four personas."
            faults.append(CodexError("no such part of the codex", file=str(path), remedy=remedy))
    return texts, faults


def _text(path: Path) -> str:
    file = str(path)
    try:
        if path.exists() and not path.is_file():
            raise CodexError("not a file", file=file, remedy="Move it away; `batos genesis` copies the shipped file.")
        with path.open("rb") as opened:
            data = opened.read(LARGEST + 1)
    except FileNotFoundError:
        remedy = "Run `batos genesis`: it copies the shipped file to where one is missing."
        raise CodexError("the file is missing", file=file, remedy=remedy) from None
    except OSError as error:
        raise CodexError(f"cannot be read: {error.strerror}", file=file, remedy="Make it readable for you.") from error
    if len(data) > LARGEST:
        raise CodexError(f"more than {LARGEST} bytes", file=file, remedy="Shorten it: a codex is some pages of text.")
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CodexError("not UTF-8", file=file, line=line, remedy="Save it as UTF-8.") from error


def _ordered(faults: list[CodexError], sources: Mapping[str, Source]) -> tuple[CodexError, ...]:
    found = [*faults, *(fault for source in sources.values() for fault in source.faults)]
    order = {str(name): place for place, name in enumerate(_file_names())}
    return tuple(sorted(found, key=lambda fault: (order.get(Path(fault.file).name, len(order)), fault.line or 0)))


@dataclass(frozen=True, slots=True)
class _Mind:
    """What mind.toml says."""

    charter: str
    house_rules: str
    default_model: str
    coder: str
    embedder: str
    profiles: Mapping[str, Profile]
    objects: tuple[AbsentObject, ...]

    @classmethod
    def read(cls, table: Table) -> _Mind:
        """The values of mind.toml; faults are kept in its file."""
        model = _model(table, "default_model") or ""
        coder = _model(table, "coder", default=model) or model
        embedder = _model(table, "embedder") or ""
        declared = table.table("profiles")
        profiles = {"default": Profile("default", model, coder, embedder, {})}
        for name in declared.names():
            profiles[name] = _profile(declared.table(name), name, profiles["default"])
        absent = tuple(_absent(item) for item in table.tables("objects"))
        mind = cls(table.text("charter"), table.text("house_rules"), model, coder, embedder, profiles, absent)
        table.close()
        return mind

    def codex(self, personas: Mapping[str, Persona], texts: Mapping[str, str], sources: Mapping[str, Source]) -> Codex:
        """The codex of this mind and its personas."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return Codex(
            **values,
            personas=MappingProxyType(dict(personas)),
            digest=digest_of({name: source.values for name, source in sources.items()}),
            texts=MappingProxyType(dict(texts)),
        )


def _profile(table: Table, name: str, default: Profile) -> Profile:
    model = _model(table, "model", default=default.model) or ""
    profile = Profile(
        name=name,
        model=model,
        coder=_model(table, "coder", default=model if "model" in table else default.coder) or "",
        embedder=_model(table, "embedder", default=default.embedder) or "",
        options=MappingProxyType(options.read(table.table("options"))),
    )
    table.close()
    return profile


def _absent(table: Table) -> AbsentObject:
    absent = AbsentObject(table.text("name"), table.text("api"))
    if absent.name and not absent.name.isidentifier():
        table.fault("name", f"`{absent.name}` cannot be an object's name", "Write letters, digits and `_` only.")
    table.close()
    return absent


def _model(table: Table, key: str, default: str | None = None) -> str | None:
    if key not in table and default is not None:
        return table.text(key, default=default)
    name = table.text(key)
    problem = modelname.fault(name) if name else None
    if problem is not None:
        table.fault(key, *problem)
    return name or None


def _persona(name: str, table: Table) -> Persona:
    persona = Persona(
        name=name,
        core_identity=table.text("core_identity"),
        core_method=table.text("core_method"),
        model=_model(table, "model", default="") or None,
        options=MappingProxyType(options.read(table.table("options"))),
        triggers=table.texts("triggers"),
        exemplars=table.texts("exemplars"),
        prompts=MappingProxyType(prompts.read(table.table("prompts"))),
        pillars=tuple(_intent(item, FACET_SUFFIX) for item in table.tables("pillars")),
        protocols=tuple(_intent(item, PROTOCOL_SUFFIX) for item in table.tables("protocols")),
    )
    _refuse_slots(persona, table)
    table.close()
    return persona


def _intent(table: Table, suffix: str) -> IntentText:
    slot = table.text("slot")
    intent = IntentText(
        slot=slot,
        name=table.text("name"),
        inspiration=table.text("inspiration", default=""),
        intent=table.text("intent"),
        signature=table.text("signature", default=f"{slot}(self, query)"),
        examples=table.texts("examples", required=False),
        may_learn=table.flag("may_learn", default=True),
        when=_when(table.table("when")),
    )
    kind = "a facet's" if suffix == FACET_SUFFIX else "a protocol's"
    if slot and not (slot.isidentifier() and slot.islower() and slot.endswith(suffix) and slot != suffix):
        remedy = f"Write lower case letters, digits and `_`, ending in `{suffix}`."
        table.fault("slot", f"`{slot}` is not {kind} slot", remedy)
    if suffix == FACET_SUFFIX and intent.when is not None:
        table.fault("when", "a facet has no `when`", "Remove it: every facet of a cycle is asked.")
    table.close()
    return intent


def _when(table: Table) -> Mapping[str, Any] | None:
    found = when.read(table)
    return None if found is None else MappingProxyType(found)


def _refuse_slots(persona: Persona, table: Table) -> None:
    seen: set[str] = set()
    for group, intents in (("pillars", persona.pillars), ("protocols", persona.protocols)):
        for number, intent in enumerate(intents):
            if intent.slot and intent.slot in seen:
                path = (group, number, "slot")
                table.source.fault(
                    path, f"the slot `{intent.slot}` is declared twice", "Give one of them another slot."
                )
            seen.add(intent.slot)
    for slot in PILLARS[persona.name]:
        if slot not in seen:
            message = f"{persona.name} lacks its pillar `{slot}`"
            table.fault("pillars", message, f'Write it: [[pillars]] with slot = "{slot}"; docs/codex.md shows how.')


def _refuse_shared(personas: Mapping[str, Persona], sources: Mapping[str, Source], key: str, what: str) -> None:
    owners: dict[str, str] = {}
    for persona in personas.values():
        source = sources[f"{persona.key}.toml"]
        for phrase in getattr(persona, key):
            owner = owners.get(when.folded(phrase))
            if owner == persona.name:
                source.fault((key,), f"{phrase!r} is {what} twice", "Remove one of them.", phrase)
            elif owner is not None:
                message = f"{phrase!r} is {what} of {owner} too"
                source.fault((key,), message, "Keep it where it belongs, and only there.", phrase)
            owners.setdefault(when.folded(phrase), persona.name)


def _refuse_reloads(
    mind: _Mind, personas: Mapping[str, Persona], profile: Profile, sources: Mapping[str, Source]
) -> None:
    """Personas that share a base share its runner's options too, or every switch reloads it."""
    first: dict[str, tuple[str, dict[str, Any]]] = {}
    for persona in personas.values():
        merged = {**options.DEFAULTS, **persona.options, **profile.options}
        runner = {name: merged[name] for name in options.RUNNER if name in merged}
        base = modelname.with_tag(persona.model or profile.model).casefold()
        other, theirs = first.setdefault(base, (persona.name, runner))
        for name in _differing(runner, theirs):
            source = sources[f"{persona.key}.toml"]
            message = f"`{name}` is {runner.get(name)}, but {theirs.get(name)} for {other}, who shares its model"
            remedy = "Use one value for both: the daemon reloads the model at every switch otherwise."
            source.fault(("options", name), message, remedy)


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in options.RUNNER if one.get(name) != other.get(name))


def digest_of(value: object) -> str:
    """sha256 (hex) of a plain value's canonical JSON."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()

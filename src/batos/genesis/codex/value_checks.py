"""Checks the values of a codex file by pydantic, among them the options and the meta-prompts of a persona."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from string import Template
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast, get_args, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from batos.genesis.codex.key_lines import KeyPath
from batos.genesis.codex.reader import TomlSource, nearest_word
from batos.inference import model_names

T = TypeVar("T")

#: A table of a codex has no other keys than the fields of its class.
CLOSED: Final = ConfigDict(extra="forbid")

#: Characters that steer a terminal or end a text for programs: none belongs in a prompt.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NO_CONTROL: Final = r"\A[^\x00-\x08\x0b-\x1f\x7f-\x9f]*\z"
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    (int, "a whole number"),
    (float, "a number with a point"),
    (list, "a list"),
    (dict, "a table"),
)
#: The words for the type that pydantic wanted, by the code of its error; all else is a table.
_WANTED: Mapping[str, str] = {
    "string_type": "a text",
    "string_too_short": "a text",
    "bool_type": "true or false",
    "tuple_type": "a list of texts",
    "too_short": "a list of texts",
}
_HELP: Final = "see `batos help codex`."
_MISSING: Final = "`{key}` is missing"


@dataclass(frozen=True, slots=True)
class ValueFault:
    """A fault of a value. `{key}` in its texts is the key, `path` leads to a value in it, `within` is a part of a text.

    Where `known` names what may stand there, the key itself is unknown, and `what` is the kind of word that is wanted.
    """

    what: str
    remedy: str = ""
    path: KeyPath = ()
    within: str | None = None
    known: tuple[str, ...] = ()


def refusal(*faults: ValueFault) -> PydanticCustomError:
    """Return the error with which a check tells pydantic of faults."""
    return PydanticCustomError("codex", "a value of a codex is refused", {"faults": faults})


def missing(*path: str | int) -> ValueFault:
    """Return the fault of a key that is not there."""
    return ValueFault(_MISSING, f"Write `{{key}}`; {_HELP}", path)


def _check_model(name: str) -> str:
    problem = model_names.fault(name)
    if problem is not None:
        raise refusal(ValueFault(*problem))
    return name


OptionalText: TypeAlias = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, pattern=_NO_CONTROL)]
Text: TypeAlias = Annotated[OptionalText, Field(min_length=1)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Field(min_length=1)]
OptionalTexts: TypeAlias = tuple[Text, ...]
ModelName: TypeAlias = Annotated[Text, AfterValidator(_check_model)]
Flag: TypeAlias = StrictBool


@cache
def _adapter(shape: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


def read_as(shape: type[T], source: TomlSource, values: Mapping[str, object]) -> T | None:
    """Return a file's values as an object of a class; None if they have faults, which are added to the file.

    A key that is there, but misspelt, is not said to be missing too.
    """
    try:
        found: T = _adapter(cast("Any", shape)).validate_python(dict(values))
    except ValidationError as error:
        faults = [each for told in error.errors() for each in _faults(shape, told)]
    else:
        return found
    meant = {(*each.path[:-1], nearest_word(str(each.path[-1]), each.known)) for each in faults if each.known}
    for each in faults:
        key = next((part for part in reversed(each.path) if isinstance(part, str)), "")
        if each.known:
            source.refuse_unknown(each.path, each.what, each.known)
        elif each.what != _MISSING or each.path not in meant:
            what, remedy = each.what.replace("{key}", key), each.remedy.replace("{key}", key)
            source.fault(each.path, what, remedy, each.within)
    return None


def _faults(shape: type, told: Mapping[str, Any]) -> Iterator[ValueFault]:
    """Yield the faults that an error of pydantic tells of."""
    kind, loc, value = told["type"], told["loc"], told["input"]
    if kind == "codex":
        for each in told["ctx"]["faults"]:
            yield ValueFault(each.what, each.remedy, (*loc, *each.path), each.within, each.known)
    elif kind == "missing":
        yield missing(*loc)
    elif kind == "unexpected_keyword_argument":
        known = tuple(each.name for each in fields(_class_at(shape, loc[:-1])))
        yield ValueFault("key", path=loc, known=known)
    elif kind == "literal_error":
        yield ValueFault(f"`{{key}}` is {str(value)[:40]!r}", f"Write one of: {told['ctx']['expected']}.", loc)
    elif kind == "string_pattern_mismatch":
        what = f"`{{key}}` holds the control character U+{ord(_CONTROL.findall(value)[0]):04X}"
        yield ValueFault(what, "Remove it: a text may hold line breaks and tabs, no other control character.", loc)
    elif kind != "too_short" or not value:  # those of its elements that are wrong are faults already
        yield _wrong_type(shape, kind, loc, value)


def _wrong_type(shape: type, kind: str, loc: KeyPath, value: object) -> ValueFault:
    """Return the fault of a value of another type than is wanted, or of an empty one."""
    wanted, is_empty = _WANTED.get(kind, "a table"), kind.endswith("too_short") or value in ("", [])
    if isinstance(loc[-1], int) and wanted == "a text":
        what = f"`{{key}}` must be a list of texts, none of them blank: one is {'blank' if is_empty else _kind(value)}"
        return ValueFault(what, "Write a text there, or remove it.", loc)
    if kind == "tuple_type" and _class_at(shape, loc) is not shape:
        wanted = "an array of tables (each begins with [[{key}]])"
    if is_empty:
        return ValueFault(f"`{{key}}` is empty: it must be {wanted}", f"Write what `{{key}}` is; {_HELP}", loc)
    what = f"`{{key}}` must be {wanted}, and is {_kind(value)}"
    return ValueFault(what, f"Write `{{key}}` as {wanted}; {_HELP}", loc)


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "a date or time")


def _class_at(shape: type, loc: KeyPath) -> type:
    """Return the class that a table within is read as."""
    for part in loc:
        hint = get_type_hints(shape).get(str(part))
        shape = next((each for each in get_args(hint) if isinstance(each, type) and is_dataclass(each)), shape)
    return shape


def digest_of(value: object) -> str:
    """Return the sha256 (hex) of a plain value's canonical JSON."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()


MODES = ("direct", "reason_field", "two_phase")

#: No window is larger, whatever a model was trained for.
LARGEST_WINDOW = 2**20


@dataclass(frozen=True, slots=True)
class Option:
    """An option of Ollama: its type, its bounds (inclusive; for texts the number of them), and its meaning."""

    kind: type
    least: float
    most: float
    what: str


#: The daemon takes any value and fails at the first call (500), runs without end, or loads a runner again.
OLLAMA: Mapping[str, Option] = {
    "num_ctx": Option(int, 256, LARGEST_WINDOW, "the window, in tokens: a multiple of 256"),
    "num_predict": Option(
        int, 1, LARGEST_WINDOW, "most tokens of an answer; more if the answer can need more, or was cut"
    ),
    "num_batch": Option(int, 1, 65_536, "prompt tokens read at once"),
    "num_gpu": Option(int, -1, 9_999, "layers on the GPU: -1 lets the daemon choose, 0 is the CPU"),
    "main_gpu": Option(int, 0, 63, "number of the GPU, if there are several"),
    "num_thread": Option(int, 0, 4_096, "threads of a runner on the CPU: 0 lets the daemon choose"),
    "num_keep": Option(int, -1, LARGEST_WINDOW, "tokens kept when a window slides, which BAT OS does not allow"),
    "use_mmap": Option(bool, 0, 1, "true: the weights are mapped from the disk"),
    "seed": Option(int, -1, 2**32 - 1, "the same seed and prompt give the same answer; -1 is a new seed each time"),
    "temperature": Option(float, 0, 5, "randomness: 0 takes the likeliest token, as answers beside documents do"),
    "top_k": Option(int, 0, 100_000, "choose among this many likeliest tokens: 0 is all"),
    "top_p": Option(float, 0, 1, "choose among the likeliest tokens whose probabilities add up to this share"),
    "min_p": Option(float, 0, 1, "leave out tokens less likely than this share of the likeliest token's probability"),
    "typical_p": Option(float, 0, 1, "choose tokens of about the expected probability; 1 is off"),
    "repeat_last_n": Option(int, -1, LARGEST_WINDOW, "last tokens searched for repetition: -1 is the window, 0 is off"),
    "repeat_penalty": Option(float, 0.1, 10, "factor against tokens that occurred already; 1 is off"),
    "presence_penalty": Option(float, -2, 2, "amount against each token that occurred, however often; 0 is off"),
    "frequency_penalty": Option(float, -2, 2, "amount against a token for each time that it occurred; 0 is off"),
    "stop": Option(list, 1, 16, "texts at which the answer ends"),
}

#: Options that belong to the runner: personas that share a base and differ in one reload it at every switch.
RUNNER = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap")

#: Options of BAT OS: `mode` is the form of a request for decisions; `think` permits a model to think. Without `think`
#: the daemon permits it, and the thinking uses the tokens that were reserved for the answer.
OURS = ("mode", "think")

DEFAULTS: Mapping[str, Any] = {"num_ctx": 4096, "num_predict": 1024, "mode": "direct", "think": False}

KIND_NAMES: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of texts",
}


def check_options(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the options of a table. Raises: PydanticCustomError: one is unknown or wrong."""
    faults: list[ValueFault] = []
    for name, value in values.items():
        if name not in (*OLLAMA, *OURS):
            faults.append(ValueFault("option", path=(name,), known=(*OLLAMA, *OURS)))
            continue
        problem = _fault_of_ours(name, value) if name in OURS else _fault_of_ollama(name, value, OLLAMA[name])
        if problem is not None:
            faults.append(ValueFault(*problem, (name,)))
    if faults:
        raise refusal(*faults)
    return MappingProxyType(dict(values))


def parameters(options: Mapping[str, object]) -> dict[str, object]:
    """Return Ollama's part of the options: the parameters of a made model and of a call."""
    return {name: value for name, value in options.items() if name not in OURS}


def bounds(option: Option) -> str:
    """Describe the bounds of an option in words.

    >>> bounds(OLLAMA["top_p"]), bounds(OLLAMA["num_ctx"])
    ('0 to 1', '256 to 1,048,576')
    """
    if option.kind is bool:
        return "true, false"
    return f"{option.least:g} to {option.most:g}" if option.most < 1_000 else f"{option.least:g} to {option.most:,.0f}"


def _fault_of_ours(name: str, value: object) -> tuple[str, str] | None:
    if name == "think":
        return None if isinstance(value, bool) else ("`think` must be true or false", "Write `think` as true or false.")
    if value in MODES:
        return None
    near = nearest_word(value, MODES) if isinstance(value, str) else None
    hint = f": did you mean {near!r}?" if near else ""
    return f"`mode` is {value!r}{hint}", f"Write one of: {', '.join(MODES)}."


def _fault_of_ollama(name: str, value: Any, option: Option) -> tuple[str, str] | None:
    if not _is_of(value, option.kind):
        return f"`{name}` must be {KIND_NAMES[option.kind]}", f"Write `{name}` as {KIND_NAMES[option.kind]}."
    if option.kind is list:
        return _fault_of_stop(value, option)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"`{name}` does not fit 64 bits", "Write a smaller number."
    if not math.isfinite(value):
        return f"`{name}` is {value}", "Write a finite number."
    if name == "num_predict" and value < 1:
        return f"`num_predict` is {value}: the daemon would answer without end", "Write 1 or more, such as 1024."
    if name == "num_ctx" and (value < 256 or value % 256):
        nearest = min(LARGEST_WINDOW, max(256, round(value / 256) * 256))
        return f"`num_ctx` is {value}, not a multiple of 256", f"Write {nearest}: the daemon counts in steps of 256."
    if not option.least <= value <= option.most:
        return f"`{name}` is {value}, and may be {bounds(option)}", f"Write a number from {bounds(option)}."
    return None


def _fault_of_stop(value: list[str], option: Option) -> tuple[str, str] | None:
    if not option.least <= len(value) <= option.most:
        return f"`stop` has {len(value)} texts", f"Write {bounds(option)} of them, or leave `stop` out."
    if not all(value):
        return "`stop` holds an empty text, at which every answer would end at once", "Remove it."
    if any('"""' in text for text in value):
        return "`stop` holds three double quotes in a row, which no Modelfile can hold", "Stop at something else."
    return None


def _is_of(value: object, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)


#: Tokens that a byte of prompt costs, before a model has been measured (docs/decisions/0007-tokens.md).
FIRST_RATIO = 0.35


@dataclass(frozen=True, slots=True)
class PromptShape:
    """The places a template may have, and those without which it makes no sense."""

    may: tuple[str, ...]
    must: tuple[str, ...]


SHAPES: Mapping[str, PromptShape] = {
    "decompose": PromptShape(("count", "pillars", "query"), ("query",)),
    "facet": PromptShape(("name", "inspiration", "intent", "query"), ("intent", "query")),
    "weave": PromptShape(("query", "parts"), ("query", "parts")),
    "select": PromptShape(("query", "answers"), ("query", "answers")),
    "reflex": PromptShape(("query",), ("query",)),
    "revise": PromptShape(("faults",), ("faults",)),
    "protocol": PromptShape(("name", "intent", "answer"), ("intent", "answer")),
}


def check_names(values: object) -> Any:
    """Return a `prompts` table. Raises: PydanticCustomError: a template is absent or unknown."""
    if isinstance(values, dict):
        faults = [ValueFault("key", path=(name,), known=tuple(SHAPES)) for name in values if name not in SHAPES]
        faults += [missing(name) for name in SHAPES if name not in values]
        if faults:
            raise refusal(*faults)
    return values


def check_places(values: dict[str, str]) -> Mapping[str, str]:
    """Return the templates. Raises: PydanticCustomError: one lacks a place, or has one that it may not have."""
    faults = [each for name, shape in SHAPES.items() for each in _find_faults(name, values[name], shape)]
    if faults:
        raise refusal(*faults)
    return MappingProxyType({name: values[name] for name in SHAPES})


def fill(template: str, **values: object) -> str:
    """Fill the places of a template. The values are never searched for places themselves."""
    return Template(template).substitute({name: str(value) for name, value in values.items()})


def _stray(text: str) -> str:
    """Return the stray dollar sign with the rest of its line, by which the line is found."""
    for found in Template.pattern.finditer(text):
        if found["invalid"] is not None:
            return text[found.start() :].partition("\n")[0]
    return "$"


def _find_faults(name: str, text: str, shape: PromptShape) -> Iterator[ValueFault]:
    template = Template(text)
    if not template.is_valid():
        yield ValueFault(
            f"`{name}` has a `$` without a name", "Write `$$` for a dollar sign.", (name,), within=_stray(text)
        )
        return
    places = template.get_identifiers()
    for place in places:
        if place not in shape.may:
            near = nearest_word(place, shape.may)
            hint = f": did you mean `${near}`?" if near else ""
            permitted = ", ".join(f"${each}" for each in shape.may)
            what = f"`{name}` has the unknown place `${place}`{hint}"
            remedy = f"Permitted here: {permitted}; a dollar sign is written `$$`."
            yield ValueFault(what, remedy, (name,), within=f"${place}")
    for place in shape.must:
        if place not in places:
            yield ValueFault(f"`{name}` lacks the place `${place}`", f"Write `${place}` where it belongs.", (name,))

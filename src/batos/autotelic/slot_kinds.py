"""The kinds of slots that may be redefined: how a value of each is read, written and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from pydantic_core import PydanticCustomError

from batos.autotelic import weights
from batos.genesis import state_steps
from batos.genesis.adapters import repository
from batos.genesis.adapters.inventory import NONE
from batos.genesis.codex import declarations, value_checks
from batos.genesis.codex.codex import MOST_WORDS
from batos.genesis.codex.value_checks import ValueFault
from batos.genesis.persona_models import OTHER_MODEL
from batos.image.roots import Root
from batos.inference import model_names
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, lookup, own_slots
from batos.protocol.errors import BriefError, ObjectError
from batos.records.redefinitions import Value

#: The slot of a persona that has its options.
_OPTIONS: Final = "options"
#: The most characters of a persona's line.
LINE: Final = 400
#: Letters of a refused value that an error shows.
_SHOWN: Final = 40
#: Options of a model that may be redefined: another window, say, would load a runner anew.
OPTIONS: Final = ("temperature", "num_predict", "repeat_penalty", "top_p")
_Read: TypeAlias = Callable[[UvmObject, str], Value]
_Write: TypeAlias = Callable[[UvmObject, str, Value], None]


@dataclass(frozen=True, slots=True)
class SlotKind:
    """A kind of slot: its meaning, how it is read and written at its holder, and the check of a value."""

    what: str
    read: _Read
    write: _Write
    check: Callable[[UvmObject, str, object], Value]
    #: The origin of the value that such a slot had first.
    declared: str = "codex"


def _read_option(holder: UvmObject, slot: str) -> Value:
    options: Mapping[str, Value] = own_slots(holder).get(_OPTIONS, {})
    return options.get(slot)


def _write_option(holder: UvmObject, slot: str, value: Value) -> None:
    kept: Mapping[str, Value] = own_slots(holder).get(_OPTIONS, {})
    others = {name: each for name, each in kept.items() if name != slot}
    setattr(holder, _OPTIONS, others if value is None else {**others, slot: value})


def _check_option(_holder: UvmObject, slot: str, value: object) -> Value:
    if value is None:
        return None
    _heed(slot, lambda: value_checks.check_options({slot: value}))
    return cast("Value", value)


def _read_slot(holder: UvmObject, slot: str) -> Value:
    found = own_slots(holder).get(slot)
    return tuple(found) if isinstance(found, list) else cast("Value", found)


def _read_form(holder: UvmObject, slot: str) -> Value:
    """Return the form; an image from before has none, which is the same as that of a persona that leaves it open."""
    return _read_slot(holder, slot) or "auto"


def _write_slot(holder: UvmObject, slot: str, value: Value) -> None:
    setattr(holder, slot, value)


def _check_word(*words: str) -> Callable[[UvmObject, str, object], Value]:
    def check(_holder: UvmObject, slot: str, value: object) -> Value:
        if value not in words:
            raise wrong_value(slot, f"{value!r} is none of its values", f"Give one of: {', '.join(words)}.")
        return str(value)

    return check


def _check_line(_holder: UvmObject, slot: str, value: object) -> Value:
    if not isinstance(value, str) or len(value) > LINE or "\n" in value:
        raise wrong_value(slot, "a line is one line of text", f"Give up to {LINE} characters.")
    return value.strip()


def _check_intents(suffix: str, least: int) -> Callable[[UvmObject, str, object], Value]:
    def check(holder: UvmObject, slot: str, value: object) -> Value:
        named = tuple(value) if isinstance(value, list | tuple) else None
        known = [name for name in own_slots(holder) if name.endswith(suffix)]
        if named is None or len(named) < least or len(set(named)) < len(named) or not set(named) <= set(known):
            what = f"{slot} are a list of the persona's own"
            raise wrong_value(slot, what, f"Give {'one or more' if least else 'some'} of: {', '.join(known)}.")
        return named

    return check


def _check_words(_holder: UvmObject, slot: str, value: object) -> Value:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_WORDS:
        raise wrong_value(slot, "it is a number of words", f"Give 0 to {MOST_WORDS}.")
    return value


def list_adapters(holder: UvmObject) -> tuple[str, ...]:
    """List the adapters of a persona that genesis made a model with, and NONE, which is its base without one."""
    kept, persona = lookup(holder, repository.REPOSITORY), own_slots(holder)["name"]
    proxies = [] if kept is None else [own_slots(each) for each in kept.value.values()]
    made = (each for each in proxies if each["persona"] == persona and each["present"] and "model" in each)
    return (NONE, *sorted(each["name"] for each in made))


def _read_adapter(holder: UvmObject, slot: str) -> Value:
    return _read_slot(holder, slot) or NONE


def _check_adapter(holder: UvmObject, slot: str, value: object) -> Value:
    known = list_adapters(holder)
    found = next((each for each in known if each.casefold() == str(value).casefold()), None)
    if found is None:
        what = f"genesis made no model with the adapter {value!s:.{_SHOWN}}"
        raise wrong_value(slot, what, f"Give one of: {', '.join(known)}. `batos genesis` makes what is missing.")
    return found


def _read_model(holder: UvmObject, _slot: str) -> Value:
    return _read_slot(holder, OTHER_MODEL)


def _write_model(holder: UvmObject, _slot: str, value: Value) -> None:
    _write_slot(holder, OTHER_MODEL, value)


def _check_model(_holder: UvmObject, slot: str, value: object) -> Value:
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_value(slot, "a model has a name", "Give it as `ollama list` prints it, or null.")
    if (fault := model_names.fault(value)) is not None:
        raise wrong_value(slot, *fault)
    return model_names.with_tag(value)


def _read_condition(holder: UvmObject, slot: str) -> Value:
    intent: Intent = own_slots(holder)[slot]
    return _as_pairs(intent.when)


def _write_condition(holder: UvmObject, slot: str, value: Value) -> None:
    former: Intent = own_slots(holder)[slot]
    setattr(holder, slot, Intent(**{**former.as_dict(), "when": None if value is None else as_conditions(value)}))


def as_conditions(value: object) -> dict[str, object]:
    """Return the conditions of a protocol by their names; none where the value has none.

    >>> as_conditions((("min_words", 8),)), as_conditions(None)
    ({'min_words': 8}, {})
    """
    pairs = value if isinstance(value, tuple) else ()
    return {str(each[0]): each[1] for each in pairs if isinstance(each, tuple) and len(each) == 2}


def _check_condition(_holder: UvmObject, slot: str, value: object) -> Value:
    if value is None:
        return None
    given = value if isinstance(value, Mapping) else as_conditions(value)
    plain = {name: list(each) if isinstance(each, tuple) else each for name, each in given.items()}
    return _as_pairs(_heed(f"{slot}.when", lambda: declarations.check_conditions(plain)))


def _read_steps(holder: UvmObject, state: str) -> Value:
    return state_steps.steps_of(holder).steps[state]


def _write_steps(holder: UvmObject, state: str, value: Value) -> None:
    state_steps.redefine(holder, state, value)


def _check_steps(_holder: UvmObject, state: str, value: object) -> Value:
    try:
        return state_steps.check_steps(state, value)
    except ObjectError as fault:
        raise BriefError(fault.message, field="value", remedy=fault.remedy) from None


def metric_kind(root: Root) -> SlotKind:
    """Return the kind of the metric's weights: their lineage has the value that acts, which no mission can write."""
    return SlotKind(
        "the weights of the metric's parts",
        lambda *_slot: weights.as_value(weights.read(root)),
        lambda *_written: None,
        lambda _holder, _slot, value: weights.check(value),
    )


def _as_pairs(when: Mapping[str, object] | None) -> Value:
    """Return conditions as plain data in the order of their names, so that equal ones are equal."""
    if when is None:
        return None
    return tuple((name, tuple(each) if isinstance(each, list) else each) for name, each in sorted(when.items()))


def _heed(slot: str, check: Callable[[], Mapping[str, object]]) -> Mapping[str, object]:
    """Return what a check of the codex returns. Raises: BriefError: it finds a fault."""
    try:
        return check()
    except PydanticCustomError as refused:
        faults: tuple[ValueFault, ...] = (refused.context or {})["faults"]
        if faults[0].known:
            what = f"there is no {faults[0].what} `{faults[0].path[-1]}`"
            raise wrong_value(slot, what, f"Give some of: {', '.join(faults[0].known)}.") from None
        raise wrong_value(slot, faults[0].what, faults[0].remedy or "docs/codex.md explains every key.") from None


def wrong_value(slot: str, what: str, remedy: str) -> BriefError:
    """Return the error for a value that is none of a slot."""
    return BriefError(f"{slot}: {what}", field="value", remedy=remedy)


_OPTION_TEXTS: Final[Mapping[str, str]] = {name: value_checks.OLLAMA[name].what for name in OPTIONS}

#: The slots of each persona that may be redefined.
PERSONA_SLOTS: Final[Mapping[str, SlotKind]] = {
    **{name: SlotKind(what, _read_option, _write_option, _check_option) for name, what in _OPTION_TEXTS.items()},
    "form": SlotKind("the form of its prompts", _read_form, _write_slot, _check_word("auto", "full", "lean")),
    "line": SlotKind("who speaks, in the lean form", _read_slot, _write_slot, _check_line),
    "answer_form": SlotKind(
        "the form of an answer of two voices", _read_slot, _write_slot, _check_word("joined", "two_voices")
    ),
    "model": SlotKind("a model of Ollama in the place of the codex's", _read_model, _write_model, _check_model),
    "adapter": SlotKind("the adapter that it thinks with", _read_adapter, _write_slot, _check_adapter),
    "facets": SlotKind(
        "the facets that think for it", _read_slot, _write_slot, _check_intents(declarations.FACET_SUFFIX, 1)
    ),
    "protocols": SlotKind(
        "its key protocols", _read_slot, _write_slot, _check_intents(declarations.PROTOCOL_SUFFIX, 0)
    ),
}
#: The conditions under which a key protocol applies.
CONDITION: Final = SlotKind("when the protocol applies", _read_condition, _write_condition, _check_condition)
#: The words of a question that nobody gave an effort.
EFFORT: Final = SlotKind(
    "words from which a question takes a cycle; 0: none does",
    lambda holder, slot: own_slots(holder).get(slot, 0), _write_slot, _check_words,
)  # fmt: skip
#: The named steps of a working state, with their bounds.
STATE: Final = SlotKind("the steps that the state takes, with their bounds", _read_steps, _write_steps, _check_steps)

"""Declarations of a codex beside its personas: intents, conditions of key protocols, objects that do not exist yet."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict

from batos.agency.apis.api_operations import Operation, signature_of
from batos.agency.apis.description import read_description
from batos.agency.apis.method_sources import describe
from batos.genesis.codex.value_checks import (
    CLOSED,
    Flag,
    OptionalText,
    OptionalTexts,
    Text,
    ValueFault,
    digest_of,
    refusal,
)
from batos.guardian.parsing import parse
from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.records.tools import READING, REQUEST

EFFORTS = ("reflex", "cycle", "council")

#: Each condition and what it must be.
CONDITIONS: Mapping[str, str] = {
    "efforts": f"a list of {', '.join(EFFORTS)}",
    "words": "a list of words or phrases",
    "without": "a list of words or phrases",
    "min_words": "a whole number",
    "max_words": "a whole number",
    "min_parts": "a whole number",
    "evidence": "true or false",
}


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts with which a protocol's conditions are compared, known once there is an answer.

    `parts` counts the parts that answered.
    """

    query: str
    effort: str
    parts: int
    has_evidence: bool


def check_conditions(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the conditions of a `when` table. Raises: PydanticCustomError: one is wrong, or two contradict."""
    faults: list[ValueFault] = []
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in CONDITIONS:
            faults.append(ValueFault("condition", path=(name,), known=tuple(CONDITIONS)))
        elif not _is_right(name, value):
            what = f"`{name}` must be {CONDITIONS[name]}"
            faults.append(ValueFault(what, f"Write `{name}` as {CONDITIONS[name]}.", (name,)))
        else:
            found[name] = tuple(value) if isinstance(value, list) else value
    faults += _find_contradictions(found)
    if not values:
        faults.append(ValueFault("`when` has no condition", "Write one, or remove `when`."))
    if faults:
        raise refusal(*faults)
    return MappingProxyType(found)


def _find_contradictions(found: Mapping[str, Any]) -> Iterator[ValueFault]:
    """Yield conditions that can never hold together."""
    least, most = found.get("min_words", 0), found.get("max_words")
    if most is not None and least > most:
        message = f"`min_words` is {least} and `max_words` {most}: no question fits both"
        yield ValueFault(message, "Raise `max_words`, or lower `min_words`.", ("max_words",))
    without = {fold(phrase) for phrase in found.get("without", ())}
    for place, phrase in enumerate(found.get("words", ())):
        if fold(phrase) in without:
            what = f"{phrase!r} is in `words` and in `without`"
            yield ValueFault(what, "Remove it from one of them.", ("words", place))


def condition_holds(when: Mapping[str, Any] | None, situation: Situation) -> bool:
    """Test if every condition holds. A protocol without conditions never applies."""
    if not when:
        return False
    text = fold(situation.query)
    words = len(text.split())
    return (
        ("efforts" not in when or situation.effort in when["efforts"])
        and ("words" not in when or mentions(text, when["words"]))
        and not mentions(text, when.get("without", ()))
        and words >= when.get("min_words", 0)
        and ("max_words" not in when or words <= when["max_words"])
        and situation.parts >= when.get("min_parts", 0)
        and ("evidence" not in when or situation.has_evidence is when["evidence"])
    )


def fold(text: str) -> str:
    """Return the form in which words are compared: NFKC, no case, one kind of apostrophe, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold().split())


def mentions(text: str, phrases: Iterable[str]) -> bool:
    """Test if a folded text has one of the phrases as whole words (CJK phrases: anywhere)."""
    return any(_pattern(phrase).search(text) for phrase in phrases)


@lru_cache(maxsize=1024)
def _pattern(phrase: str) -> re.Pattern[str]:
    phrase = fold(phrase)
    before = r"(?<!\w)" if phrase[:1].isascii() else ""
    after = r"(?!\w)" if phrase[-1:].isascii() else ""
    return re.compile(before + re.escape(phrase) + after)


def _is_right(name: str, value: Any) -> bool:
    if name == "evidence":
        return isinstance(value, bool)
    if CONDITIONS[name] == "a whole number":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    texts = isinstance(value, list) and bool(value) and all(isinstance(item, str) and item.strip() for item in value)
    return texts and (name != "efforts" or set(value) <= set(EFFORTS))


FACET_SUFFIX = "_facet_"
PROTOCOL_SUFFIX = "_protocol_"


@dataclass(frozen=True, slots=True)
class IntentText:
    """A pillar's facet or a key protocol, as the codex declares it: what becomes an Intent in a slot."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    slot: Text
    name: Text
    intent: Text
    inspiration: OptionalText = ""
    signature: OptionalText = ""
    examples: OptionalTexts = ()
    may_learn: Flag = True
    when: Annotated[dict[str, object], AfterValidator(check_conditions)] | None = None
    #: "tool" where the protocol's product is one; a protocol without it changes the answer.
    makes: Literal["", "tool"] = ""
    #: The facts that a protocol is told beside the answer: findings, costs, or figures of the mind's own work.
    given: Literal["", "audit", "cost", "counters", "ledger", "cem"] = ""
    #: Questions that a protocol is meant for: it is chosen by their meaning, and by `when` alone without any.
    exemplars: OptionalTexts = ()
    #: Words that by themselves call for a protocol.
    triggers: OptionalTexts = ()
    #: The part of the Composite Entropy Metric that a protocol raises.
    metric: Literal["", "Hrel", "Hcog", "Hsol", "Hstruc"] = ""
    #: The intent in one sentence, for small models; "" where its first sentence says enough.
    line: OptionalText = ""
    #: True of one that lies on the shelf: it does not act until a trial or a person switches it on.
    shelved: Flag = False

    @property
    def by_meaning(self) -> bool:
        """Test if this protocol is chosen by the meaning of the question."""
        return bool(self.exemplars or self.triggers)

    @property
    def digest(self) -> str:
        """Return the sha256 (hex) of the declaration, by which a changed intent is recognised.

        Exemplars and triggers are the router's: they change the choice of a protocol, and not the protocol.
        """
        return digest_of([self.slot, self.name, self.inspiration, self.intent, self.signature,
                        list(self.examples), self.may_learn, dict(self.when) if self.when else None,
                        *([self.makes] if self.makes else []),
                        *([f"given {self.given}"] if self.given else []),
                        *([f"line {self.line}"] if self.line else []),
                        *([f"metric {self.metric}"] if self.metric else []),
                        *(["by meaning"] if self.by_meaning else [])])  # fmt: skip

    def __post_init__(self) -> None:
        """Give a method that declares no signature the usual one."""
        if not self.signature:
            object.__setattr__(self, "signature", f"{self.slot}(self, query)")


#: Most methods of one object: all are written in one reply, which half of a window must hold.
MOST: Final = 6
#: The most characters of a signature; Python's own parser reads it.
SIGNATURE: Final = 200

_NAME = re.compile(r"[a-z][a-z0-9_]{0,38}[a-z0-9]")
_SELECTOR = re.compile(r"[a-z][a-z0-9_]{0,78}_")
#: A line that begins as a call does.
_CALL = re.compile(r"(\w+)\(")
_TAKEN: Final = frozenset((*roots.OBJECTS, *roots.RECORDS, "name", "tools"))
#: Selectors that every generated object understands already.
_INHERITED: Final = frozenset({"log_", "recall_", "infer_", "embed_", "index_document_", "forget_"})


@dataclass(frozen=True, slots=True)
class ApiMethod:
    """A method of an API: its selector, its signature with `self`, and the description of its task."""

    selector: str
    signature: str
    text: str


def _check_name(name: str) -> str:
    if not (_NAME.fullmatch(name) and "__" not in name):
        remedy = "Write up to 40 lower case letters, digits and `_`, a letter first and no `_` at the end."
        raise refusal(ValueFault(f"`{name}` cannot be an object's name", remedy))
    if name in _TAKEN:
        raise refusal(ValueFault(f"`{name}` is an object of the image", "Give the absent one another name."))
    if _protected(name):
        raise refusal(ValueFault(f"`{name}` is a protected name", "Give it another name."))
    return name


def _check_api(text: str) -> str:
    if faults := api_of(text)[1]:
        raise refusal(*(ValueFault(*each) for each in faults))
    return text


@dataclass(frozen=True, slots=True)
class AbsentObject:
    """An object that is declared and does not exist: a message to it is a wish for a tool."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    name: Annotated[Text, AfterValidator(_check_name)]
    api: Annotated[Text, AfterValidator(_check_api)]

    @property
    def methods(self) -> tuple[ApiMethod, ...]:
        """Return the methods that the object will have."""
        return api_of(self.api)[0]


def api_of(text: str) -> tuple[tuple[ApiMethod, ...], tuple[tuple[str, str], ...]]:
    """Parse the text of an API: return its methods, and each fault as (what, remedy).

    A line that begins with a call, `often_(text, part)`, declares a method. The rest of that line and the indented
    lines below it describe the method. All other lines apply to every method and are added to each description. A text
    without such a line that names the requests of an HTTP API declares two methods for each of them.
    """
    if not re.search(r"(?m)^\w+\(", text) and (described := read_description(text).operations):
        return tuple(_methods_of(described)), ()
    found: list[tuple[str, str, list[str]]] = []
    general: list[str] = []
    faults: list[tuple[str, str]] = []
    for line in text.strip("\n").split("\n"):
        call = _CALL.match(line)
        if call is not None:
            signature, rest = _split(line)
            found.append((call[1], signature, [rest] if rest else []))
        elif line[:1].isspace() and line.strip() and found and not general:
            found[-1][2].append(line.strip())
        elif line.strip():
            general.append(line.strip())
    methods = []
    for selector, signature, said in found:
        made, why = _read_signature(selector, signature)
        silent = (f"the api does not say what `{selector}` answers", "Write that after the call.")
        faults += why if said or why else [silent]
        methods.append(ApiMethod(selector, made, "\n".join((*said, *general))))
    return tuple(methods), (*faults, *_between([selector for selector, _, _ in found]))


def _methods_of(operations: Iterable[Operation]) -> Iterator[ApiMethod]:
    """Yield the two methods of each operation of an HTTP API."""
    for each in operations:
        for selector in (REQUEST + each.name, READING + each.name):
            yield ApiMethod(selector, signature_of(selector), describe(each, selector))


def _split(line: str) -> tuple[str, str]:
    """Split a line after the closing bracket of its call; return the whole line and "" if there is none."""
    depth = 0
    for at, character in enumerate(line):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and character == ")":
            return line[: at + 1], line[at + 1 :].lstrip(" :->").strip()
    return line, ""


def _read_signature(selector: str, call: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the signature of a method that is called like this, and its faults."""
    example = "Write it as `often_(text, part)`, at the beginning of a line."
    if not _SELECTOR.fullmatch(selector):
        return call, [
            (
                f"the api declares `{selector}`, which is no selector",
                "A selector is lower case letters, digits and `_`, and ends in `_`.",
            )
        ]
    if selector in _INHERITED or _protected(selector):
        return call, [(f"the api declares `{selector}`, which is the kernel's", "Give it another name.")]
    made = function_of(call)
    if made is None:
        return call, [(f"the api declares `{call[:SIGNATURE]}`, which is not how a method is called", example)]
    arguments = made.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    own = names if names[:1] == ["self"] else ["self", *names]
    if len(set(own)) < len(own) or arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        return call, [(f"the api declares `{call[:SIGNATURE]}`: a method takes named arguments, each once", example)]
    inside = call[len(selector) + 1 : -1].strip()
    return call if names[:1] == ["self"] else f"{selector}(self{', ' if inside else ''}{inside})", []


def function_of(signature: str) -> ast.FunctionDef | None:
    """Return the function that has a signature, of at most SIGNATURE characters; None if it is no signature."""
    try:
        parsed = parse(f"def {signature}: ...").body if len(signature) <= SIGNATURE else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    made = parsed[0] if len(parsed) == 1 else None
    whole = isinstance(made, ast.FunctionDef) and len(made.body) == 1 and made.returns is None
    return made if whole and isinstance(made, ast.FunctionDef) else None


def _between(selectors: list[str]) -> list[tuple[str, str]]:
    """List the faults that several declarations have together: none at all, one twice, too many."""
    if not selectors:
        return [
            (
                "the api declares no method",
                "Begin a line with each: `words_(text) answers how many words it has`.",
            )
        ]
    twice = sorted({each for each in selectors if selectors.count(each) > 1})
    faults = [(f"the api declares `{each}` twice", "Remove one of them.") for each in twice]
    if len(selectors) > MOST:
        faults.append(
            (
                f"the api declares {len(selectors)} methods, and an object is made of at most {MOST}",
                "Declare two objects.",
            )
        )
    return faults


def _protected(name: str) -> bool:
    return bool(SHIPPED.protected_pattern.search(name) or SHIPPED.kernel_pattern.search(name))


#: Each state of the Prototypal State Machine with the message on which it does its work.
STATES: Mapping[str, str] = {
    "IDLE": "synthesize_response_for_",
    "DECOMPOSING": "_process_synthesis_",
    "DELEGATING": "_process_synthesis_",
    "SYNTHESIZING": "_process_synthesis_",
    "COMPLETE": "_process_synthesis_",
    "FAILED": "_process_synthesis_",
}

CYCLE = "cognitive_cycle_obj"


def state_slot(state: str) -> str:
    """Return the orchestrator's slot that holds a state's prototype: `idle_state_obj` for IDLE."""
    return f"{state.lower()}_state_obj"


def prototype_name(persona: str) -> str:
    """Return the root name of a persona's prototype: `robin_prototype_obj` for ROBIN."""
    return f"{persona.lower()}_prototype_obj"

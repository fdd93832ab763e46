"""The specification of a method for the coder: built from the object and the intent, with no value of the message."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from BTrees.OOBTree import OOBTree
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping

from batos.agency.apis.description import read_description
from batos.agency.records import effect_records
from batos.config import Settings
from batos.genesis import measuring
from batos.genesis.codex import declarations, value_checks
from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.value_checks import FIRST_RATIO
from batos.image import roots
from batos.image.guards import protected_slots
from batos.image.ids import base32
from batos.image.ownership import SLOT_USERS
from batos.image.records import DIGESTS, SLOT_TRUST, least_trust
from batos.image.roots import Root, named_objects
from batos.inference import model_names
from batos.methods.execution import write_buffer
from batos.methods.generation.method_checks import Check
from batos.minds.context_building import persona_of
from batos.minds.trace import ratio
from batos.objects.method import Behaviour, Intent, IntentKind, Method
from batos.objects.prototype import UvmObject, delegation, is_reserved, lookup, own_slots, reference
from batos.protocol.errors import NotFound, ObjectError, Refused
from batos.protocol.method_documents import FormerRevision
from batos.protocol.mission_documents import WishDocument
from batos.records import methods, tools

#: The most slots, messages and examples in a prompt, and the most characters of a line.
MOST: Final = 40
LINE: Final = 200
#: A coder of fewer billions of parameters is asked in the lean form (decision 0017).
LEAN_CODER: Final = 4.0
#: Slots in which genesis and the image keep records about the object.
_UNSEEN: Final = frozenset({DIGESTS, SLOT_TRUST, SLOT_USERS, "lineage_trust", "trust"})
#: The slots of an object's identity, which only the codex writes.
IDENTITY: Final = ("name", "core_identity", "core_method")
#: The sampling options for code; the runner options are the persona's, so that no model is reloaded.
SAMPLING: Final[Mapping[str, object]] = {"temperature": 0.2}
_LISTS: Final = (list, tuple, set, frozenset, PersistentList)
_DICTS: Final = (dict, PersistentMapping, OOBTree)


#: The forms of a request.
Form: TypeAlias = Literal["full", "lean"]


@dataclass(frozen=True, slots=True)
class Coder:
    """The model that writes methods; `digest` is "" if the daemon does not have the model."""

    model: str
    digest: str
    options: Mapping[str, Any]
    #: The estimated tokens for each byte of prompt.
    ratio: float = FIRST_RATIO
    #: Texts that its template reads as marks, beside the usual ones.
    marks: tuple[str, ...] = ()
    #: The form of its requests: `lean` for a small model or window, else `full`.
    form: Form = "full"

    @property
    def window(self) -> int:
        """Return the context window in tokens."""
        return int(self.options["num_ctx"])


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """The specification of a method: its receiver, its intent, and the slots and messages that it may use.

    `arguments` are type names, and `slots` are pairs of name and type name: no value is part of the specification, and
    text from outside only if the object's own codex has it. `trust` is the lowest trust class of its parts.
    """

    holder: str
    name: str
    selector: str
    kind: IntentKind
    intent: str
    text: str
    signature: str
    title: str
    inspiration: str
    examples: tuple[str, ...]
    owner: str
    arguments: tuple[str, ...]
    slots: tuple[tuple[str, str], ...]
    messages: tuple[str, ...]
    trust: str
    coder: Coder
    #: The messages to the grants that the intent names: only a method of such an intent acts on the world.
    granted: tuple[str, ...] = ()
    #: Slots that no method of this object may write.
    protected: frozenset[str] = frozenset()
    #: Slots that each check begins with, unless it overrides them: the object's identity.
    given: Mapping[str, str] = field(default_factory=dict)
    #: The method that the new one replaces: {revision, source}.
    former: FormerRevision | None = None

    @property
    def speaks(self) -> bool:
        """Test if the method asks the model in the voice of a persona."""
        return self.kind in ("facet", "protocol")

    @property
    def key(self) -> tuple[str, str, str]:
        """Return holder, selector and intent: requests with the same key share one generation."""
        return self.holder, self.selector, self.intent

    def log(self, dialect: str) -> str:
        """Return the id of its log in the journal: equal for equal slots, intents, coders, forms and dialects."""
        parts = [*self.key, self.coder.model, self.coder.digest, dialect]
        if self.coder.form != "full":
            parts.append(self.coder.form)
        digest = hashlib.sha256(json.dumps(parts).encode()).digest()
        return f"g-{base32(int.from_bytes(digest[:17], 'big') >> 6)}"


def spec_for(
    root: Root,
    holder: UvmObject,
    selector: str,
    arguments: tuple[str, ...],
    digests: Mapping[str, str],
    intent: str | None = None,
) -> MethodSpec | Method | str:
    """Return what to make of a slot: its specification, its method if there is one, or the reason to make none.

    The root may be a mission's snapshot or the newest image. `arguments` are type names, and `intent` is the digest of
    the intent that is meant; None: whichever is there.
    """
    value = own_slots(holder).get(selector)
    if tools.find_tool(root, selector) is not None:
        return Method(selector, "")  # the object exists now: the caller looks it up again
    if isinstance(value, Method) and intent in (None, value.provenance.get("intent")):
        return Method(**value.as_dict())
    if not isinstance(value, Intent) or intent not in (None, methods.digest_of(value)):
        return "its intent is another by now"
    if not value.may_learn:
        return "it may not learn"
    found = spec_of_intent(root, holder, selector, value, args=arguments, digests=digests)
    return methods.bar_reason(holder, selector, found.coder.digest) or found


def spec_of_wish(root: Root, wish: WishDocument, digests: Mapping[str, str]) -> MethodSpec | Method | None:
    """Return the specification for a recorded wish, or the method if there is one by now.

    None means that the method is barred, or that its intent has changed.
    """
    try:
        holder = methods.find_holder(root, wish["holder"])
    except NotFound:
        return None
    found = spec_for(root, holder, wish["selector"], tuple(wish["arguments"]), digests, wish["intent"])
    return None if isinstance(found, str) else found


def spec_of_intent(
    root: Root,
    holder: UvmObject,
    selector: str,
    intent: Intent,
    *,
    args: tuple[str, ...] = (),
    digests: Mapping[str, str],
) -> MethodSpec:
    """Return the specification of a method for this intent, regardless of the slot's current value."""
    return MethodSpec(
        holder=reference(holder),
        name=next((name for name in roots.OBJECTS if root.get(name) is holder), reference(holder)),
        selector=selector,
        kind=intent.kind,
        intent=methods.digest_of(intent),
        text=intent.text.strip(),
        signature=intent.signature or f"{selector}(self)",
        title=intent.name,
        inspiration=intent.inspiration,
        examples=tuple(map(_line, intent.examples[:MOST])),
        owner=_owner(root, holder, intent),
        arguments=args[: _parameter_count(intent.signature)],
        slots=tuple(sorted(_slots(holder))[:MOST]),
        messages=(*sorted(_messages(holder))[:MOST], *sorted(_tools(root, holder))[:MOST]),
        trust=least_trust("user", write_buffer.trust_of(own_slots(holder), selector), *_lineage(holder)),
        coder=coder(root, digests),
        granted=tuple(_list_granted(root, intent))[:MOST],
        protected=protected_slots(holder),
        given=_identity(holder),
        former=_former(root, holder, selector),
    )


def current_intent(root: Root, holder: UvmObject, selector: str) -> tuple[Intent, tuple[Check, ...]]:
    """Return the intent that a slot's method serves, and the checks of its newest revision.

    Raises: Refused: the slot has no intent.
    """
    value = own_slots(holder).get(selector)
    lineage = methods.lineage_of(root, holder, selector)
    newest = lineage.revisions[lineage.revisions.maxKey()].checks if lineage and lineage.revisions else ()
    checks = tuple(map(Check.from_dict, newest))
    if isinstance(value, Intent):
        return value, checks
    if isinstance(value, Method) and lineage is not None and lineage.intent is not None:
        return lineage.intent, checks
    raise Refused(
        f"{selector!r} of {reference(holder)} is no declared intent",
        field="selector",
        remedy="Declare it in the codex first, then `batos genesis`.",
    )


def coder(root: Root, digests: Mapping[str, str]) -> Coder:
    """Return the codex's coder, with the runner options of a persona that shares its base model.

    Raises: ObjectError: the codex names no coder.
    """
    model = root["pLLM_obj"]
    found = lookup(model, "coder")
    if found is None or not isinstance(found.value, str):
        raise ObjectError("pLLM_obj names no coder", remedy="Run `batos genesis`.")
    name = model_names.with_tag(found.value)
    objects = named_objects(root)
    personas = [objects[each] for each in map(declarations.prototype_name, PILLARS) if each in objects]
    beside = next((dict(each.options) for each in personas if model_names.same(each.model, name)), None)
    declared = lookup(model, "coder_options")
    chosen = beside or (dict(declared.value) if declared else dict(value_checks.DEFAULTS))
    made = {**value_checks.parameters(chosen), **SAMPLING}
    density = ratio(*measuring.prompt_sizes(root, name), FIRST_RATIO)
    shared = next((each for each in personas if model_names.same(each.model, name)), None)
    is_lean = shared is not None and own_slots(shared).get("persona_form", "full") == "lean"
    form: Form = "lean" if is_lean else _own_form(root, name, made)
    return Coder(name, digests.get(name, ""), made, density, measuring.recorded_marks(root).get(name, ()), form)


def _own_form(root: Root, name: str, options: Mapping[str, Any]) -> Form:
    """Return the form for a coder by the parameters of its base and by its window."""
    measure = measuring.recorded_measures(root).get(measuring.base_of(root, name))
    parameters = 0 if measure is None else measure.parameters
    small = 0 < parameters < LEAN_CODER * 10**9
    return "lean" if small or int(options["num_ctx"]) < Settings.model_fields["lean_window"].default else "full"


def type_name(value: object) -> str:
    """Return the name of a plain value's type, or "object".

    >>> type_name("why?"), type_name([1]), type_name(None)
    ('str', 'list', 'None')
    """
    if value is None:
        return "None"
    if isinstance(value, bool | int | float | str):
        return type(value).__name__
    if isinstance(value, _LISTS):
        return "list"
    return "dict" if isinstance(value, _DICTS) else "object"


def _owner(root: Root, holder: UvmObject, intent: Intent) -> str:
    """Return the identity and method of the object's persona, or the charter if there is no persona.

    For a tool this is the persona that inspired it.
    """
    named = declarations.prototype_name(intent.inspiration) if intent.kind == "tool" else ""
    persona = named_objects(root).get(named)
    given = _identity(holder if persona is None else persona)
    texts = [given[slot].strip() for slot in IDENTITY[1:] if slot in given]
    if not texts:
        charter = lookup(root["orchestrator_obj"], "charter")
        texts = [str(charter.value).strip()] if charter else []
    return "\n\n".join(texts)


def _identity(holder: UvmObject) -> dict[str, str]:
    """Return the texts of the object's identity, which only the codex writes, by slot."""
    found = {slot: lookup(holder, slot) for slot in IDENTITY}
    return {slot: each.value for slot, each in found.items() if each is not None and isinstance(each.value, str)}


def parameter_names(signature: str) -> list[str]:
    """Return the names of a signature's parameters behind the receiver.

    >>> parameter_names("guide_facet_(self, query: str = '')"), parameter_names("tick_(self)")
    (['query'], [])
    """
    inside = signature.partition("(")[2].rpartition(")")[0]
    names = [each.split(":")[0].split("=")[0].strip() for each in inside.split(",")]
    return [name for name in names if name not in ("", "self", "/")]


def _parameter_count(signature: str) -> int | None:
    """Return the number of parameters of a signature beside `self`; None for any number."""
    names = parameter_names(signature)
    return None if "(" not in signature or any(each.startswith("*") for each in names) else len(names)


def _slots(holder: UvmObject) -> Iterator[tuple[str, str]]:
    """Yield name and type of each data slot of the object, inherited ones too; the nearest holder's counts."""
    seen: set[str] = set()
    for each in delegation(holder):
        for name, value in own_slots(each).items():
            if name in seen or name in _UNSEEN or is_reserved(name) or name.startswith("_"):
                continue
            seen.add(name)
            if not isinstance(value, Behaviour):
                yield name, type_name(value)


def _messages(holder: UvmObject) -> Iterator[str]:
    """Yield each selector that the object understands, with its parameters if known."""
    seen: set[str] = set()
    for each in delegation(holder):
        for name, value in own_slots(each).items():
            if isinstance(value, Behaviour) and name not in seen:
                seen.add(name)
                yield _call_form(name, value)


def _tools(root: Root, holder: UvmObject) -> Iterator[str]:
    """Yield the tools that the object's methods can send messages to, as a method writes them.

    A tool of a description has the voice of the persona that wished for it.
    """
    found = lookup(holder, "tools")
    shelf = None if found is None else found.value
    for name, value in own_slots(shelf).items() if isinstance(shelf, UvmObject) and shelf is not holder else ():
        if isinstance(value, Method):
            yield f"tools.{_call_form(name, value)}"
        text, wisher = _api_of(name, value), tools.find_wisher(root, name)
        voice = f" ({wisher}: {persona_of(root, wisher).core_method})" if wisher else ""
        for each in read_description(text).operations if text else ():
            yield _line(f"tools.{name}.{each.name}({', '.join(each.required_names)}): {each.purpose}{voice}")


def _api_of(name: str, value: object) -> str:
    """Return the description of an API, also of one whose object does not exist yet; "" of anything else."""
    if isinstance(value, Intent) and value.kind == "prototype":
        return value.text
    made = own_slots(value) if isinstance(value, UvmObject) else {}
    return str(made.get(tools.API, "")) if made.get(tools.NAME) == name else ""


def _list_granted(root: Root, intent: Intent) -> Iterator[str]:
    """Yield the messages to each grant that an intent names, as a method writes them."""
    named = set(re.findall(r"\w+", intent.text))
    for capability in effect_records.list_all_capabilities(root):
        name = own_slots(capability)["name"]
        for selector in effect_records.selectors_of(capability) if name in named else ():
            yield f"await (await self.capability_('{name}')).{effect_records.FORMS[selector]}"


def _call_form(name: str, value: object) -> str:
    """Return a selector with its parameters if known."""
    if isinstance(value, Intent) and value.signature:
        return _line(value.signature)
    if isinstance(value, Method):
        parameters = value.verdict.get("parameters")
        return _line(f"{name}({parameters})") if isinstance(parameters, str) else name
    return name


def _lineage(holder: UvmObject) -> Iterator[str]:
    """Yield the trust classes that the object's own slots record."""
    for slot in ("lineage_trust", "trust"):
        found = own_slots(holder).get(slot)
        if isinstance(found, str):
            yield found


def _former(root: Root, holder: UvmObject, selector: str) -> FormerRevision | None:
    """Return number and source of the active or newest revision; None if there is none."""
    lineage = methods.lineage_of(root, holder, selector)
    if lineage is None or not lineage.revisions:
        return None
    number = lineage.active or int(lineage.revisions.maxKey())
    return {"revision": number, "source": lineage.revisions[number].source}


def _line(value: object) -> str:
    """Return a value as one line of at most LINE characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= LINE else f"{text[: LINE - 3]}..."

"""The prototype graph: writes the codex into the image's root, each slot only when its declaration changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.genesis import state_steps
from batos.genesis.codex import value_checks
from batos.genesis.codex.codex import PILLARS, Codex, Persona
from batos.genesis.codex.declarations import CYCLE, STATES, IntentText, prototype_name, state_slot
from batos.genesis.codex.value_checks import digest_of
from batos.genesis.persona_models import OTHER_MODEL
from batos.image import guards, roots
from batos.image.records import DIGESTS
from batos.image.roots import Root
from batos.objects.method import Intent, IntentKind, Method, Primitive
from batos.objects.prototype import Reparenting, UvmObject, lookup, own_slots, parents_of, reparent
from batos.records import methods, redefinitions, tools
from batos.records.redefinitions import Value

#: Slots by which kernel objects answer messages, each a primitive that the interpreter knows by name.
PRIMITIVES: Mapping[str, Mapping[str, str]] = {
    "traits_obj": {
        "log_": "traits.log",
        "recall_": "traits.recall",
        "index_document_": "catalog.index",
        "forget_": "catalog.forget",
        "capability_": "traits.capability",
    },
    "pLLM_obj": {"infer_": "llm.infer", "embed_": "llm.embed"},
    "orchestrator_obj": {"start_cognitive_cycle_for_": "orchestrator.start_cognitive_cycle_for"},
    "knowledge_catalog_obj": {
        "search_": "catalog.search",
        "index_document_": "catalog.index",
        "forget_": "catalog.forget",
    },
}

#: The slot of the orchestrator with the words from which a question takes a cycle.
CYCLE_FROM = "cycle_from"
#: Selectors that conversations understand beside those of all objects.
CONVERSATION: Mapping[str, str] = {
    "turns_": "conversation.turns",
    "compact_": "conversation.compact",
    "recompact_": "conversation.recompact",
}

#: Told of an intent before its slot changes (None: it goes): who had a method there takes it out of use.
ApiMethod: TypeAlias = Callable[[UvmObject, str, Intent | None], int]


def build(root: Root, codex: Codex, profile: str = "default", declared: ApiMethod | None = None) -> list[str]:
    """Bring the prototype graph in line with the codex; return a line for each slot that changed.

    A slot is written if its declaration is new or changed, or if the slot is gone. A slot that was redefined at run
    time (a learnt method, a tuned prompt) stays until its declaration changes. Name, core identity and core method of a
    persona and the charter are always as declared. A second run writes nothing. An intent that is declared anew, or
    removed, replaces the method that was made from it; `declared` is called for each.
    """
    roots.prepare(root)
    changes = _Changes(root, declared or partial(methods.redeclare, root, at=""))
    genesis = _ensure(root, "genesis_obj", changes)
    traits = _ensure(root, "traits_obj", changes)
    for name in ("pLLM_obj", "orchestrator_obj", "knowledge_catalog_obj", roots.TOOLS):
        _delegate(root, name, _ensure(root, name, changes), (traits,), changes)
    objects = roots.named_objects(root)
    for name, selectors in PRIMITIVES.items():
        _Slots(objects[name], name, changes).declare(
            {slot: Primitive(primitive) for slot, primitive in selectors.items()}
        )
    _language_model(root["pLLM_obj"], codex, profile, changes)
    _orchestrator(root["orchestrator_obj"], traits, codex, changes)
    _tools(root, traits, codex, changes)
    for persona in codex.personas.values():
        name = prototype_name(persona.name)
        prototype = _ensure(root, name, changes, genesis)
        _delegate(root, name, prototype, (root["pLLM_obj"], traits), changes)
        _persona(prototype, name, codex, persona, profile, changes)
    _record(root[roots.GENESIS], guards.identities(root), codex, profile, changes)
    return changes


def record_models(root: Root, models: Mapping[str, str]) -> list[str]:
    """Write down which made model each persona thinks with; answers what changed."""
    return _record_slot(root, "persona_model", models)


def record_forms(root: Root, forms: Mapping[str, str]) -> list[str]:
    """Write down the form of each persona's prompts; answers what changed."""
    return _record_slot(root, "persona_form", forms)


def _record_slot(root: Root, slot: str, values: Mapping[str, str]) -> list[str]:
    changes = _Changes(root, lambda holder, slot, intent: 0)
    for persona, value in values.items():
        name = prototype_name(persona)
        _Slots(roots.named_objects(root)[name], name, changes).put(slot, value)
    return changes


def recorded_forms(root: Root) -> dict[str, str]:
    """Return the form of each persona's prompts that was written down."""
    objects = roots.named_objects(root)
    found = {persona: objects.get(prototype_name(persona)) for persona in PILLARS}
    return {
        persona: own_slots(prototype)["persona_form"]
        for persona, prototype in found.items()
        if prototype is not None and "persona_form" in own_slots(prototype)
    }


def acting_form(persona: UvmObject) -> Literal["full", "lean"]:
    """Return the form of a persona's prompts: that of its slot `form`, else the one that was written down."""
    found = [lookup(persona, slot) for slot in ("form", "persona_form")]
    words = [each.value for each in found if each is not None and each.value in ("full", "lean")]
    return "lean" if words[:1] == ["lean"] else "full"


def acting_forms(root: Root) -> dict[str, str]:
    """Return the form of each persona's prompts that has one."""
    objects = roots.named_objects(root)
    return {persona: acting_form(objects[prototype_name(persona)]) for persona in recorded_forms(root)}


class _Changes(list[str]):
    """The changes of an image, a line for each slot, with the callback for changed intents."""

    def __init__(self, root: Root, declared: ApiMethod) -> None:
        super().__init__()
        self._root = root
        self.declared = declared

    def list_values(self, name: str) -> list[Value]:
        """Return the values that a slot had since it was redefined while running, the codex's first."""
        return [each.value for each in redefinitions.list_values(self._root, name)]


class _Slots:
    """Slots of one object, written only if that changes something."""

    def __init__(self, obj: UvmObject, name: str, changes: _Changes) -> None:
        self._obj = obj
        self._name = name
        self._changes = changes
        self._digests = dict(own_slots(obj).get(DIGESTS, {}))

    def put(self, slot: str, value: object) -> None:
        """Give a slot a value, whatever it held."""
        slots = own_slots(self._obj)
        if slot not in slots or slots[slot] != value:
            self._write(slot, value, "changed" if slot in slots else "made")

    def declare(self, values: Mapping[str, object], redefined: Collection[str] = ()) -> None:
        """Write each slot whose declaration is not the known one.

        Of a slot that an image from before had not declared, and that was redefined since, the value stays.
        """
        for slot, value in values.items():
            plain = ["primitive", value.name] if isinstance(value, Primitive) else value
            digest = value.digest if isinstance(value, IntentText) else digest_of(plain)
            present = slot in own_slots(self._obj)
            if present and slot in redefined:
                self._digests.setdefault(slot, digest)
            if not present or self._digests.get(slot) != digest:
                stored = _stored_value(value, slot)
                gone = self._retire_superseded(slot, stored) if isinstance(stored, Intent) else ""
                self._write(slot, stored, ("changed" if present else "made") + gone)
                self._digests[slot] = digest
        self._keep_digests()

    def retire(self, declared: Iterable[str]) -> None:
        """Remove intents that are no longer declared, and the methods that were made from them."""
        for slot in sorted(set(self._digests) - set(declared)):
            if isinstance(own_slots(self._obj).get(slot), Intent | Method):
                gone = self._retire_superseded(slot, None)
                if slot in own_slots(self._obj):
                    delattr(self._obj, slot)
                self._changes.append(f"{self._name}.{slot} removed{gone}")
            del self._digests[slot]
        self._keep_digests()

    def _retire_superseded(self, slot: str, intent: Intent | None) -> str:
        revision = self._changes.declared(self._obj, slot, intent)
        return f"; revision {revision} of its method is retired" if revision else ""

    def _write(self, slot: str, value: object, how: str) -> None:
        setattr(self._obj, slot, value)
        self._changes.append(f"{self._name}.{slot} {how}")

    def _keep_digests(self) -> None:
        if own_slots(self._obj).get(DIGESTS, {}) != self._digests:
            setattr(self._obj, DIGESTS, dict(self._digests))


def _stored_value(value: object, slot: str) -> Any:
    if not isinstance(value, IntentText):
        return value
    kind: IntentKind = "facet" if slot.endswith("_facet_") else "protocol"
    return Intent(
        text=value.intent,
        signature=value.signature,
        examples=value.examples,
        # A protocol that makes tools, or that is given facts beside the answer, never becomes a method itself.
        may_learn=value.may_learn and not value.makes and not value.given,
        name=value.name,
        inspiration=value.inspiration,
        kind=kind,
        when=None if value.when is None else dict(value.when),
        makes="tool" if value.makes else "",
        given=value.given,
        line=value.line,
        metric=value.metric,
        by_meaning=value.by_meaning,
    )


def _ensure(root: Root, name: str, changes: _Changes, prototype: UvmObject | None = None) -> UvmObject:
    objects = roots.named_objects(root)
    if name not in objects:
        objects[name] = UvmObject() if prototype is None else prototype.clone()
        changes.append(f"{name} made")
    return objects[name]


def _delegate(root: Root, name: str, obj: UvmObject, parents: tuple[UvmObject, ...], changes: _Changes) -> None:
    before = parents_of(obj)
    if len(before) == len(parents) and all(one is other for one, other in zip(before, parents, strict=True)):
        return

    def audit(change: Reparenting) -> None:
        if change.before:
            changes.append(f"{name} delegates anew")
            roots.log_reparenting(change)

    reparent(obj, parents, by="genesis", reason="the prototype graph", audit=audit)


def _language_model(model: UvmObject, codex: Codex, profile: str, changes: _Changes) -> None:
    chosen = codex.profile(profile)
    slots = _Slots(model, "pLLM_obj", changes)
    # For a coder whose base no persona has: beside one it takes that persona's options, so that nothing reloads.
    coding = {**value_checks.DEFAULTS, **chosen.options}
    slots.declare({"model": chosen.model, "coder": chosen.coder, "embedder": chosen.embedder, "coder_options": coding})
    if "lora_repository" not in own_slots(model):
        slots.put("lora_repository", OOBTree())


def _orchestrator(orchestrator: UvmObject, traits: UvmObject, codex: Codex, changes: _Changes) -> None:
    slots = _Slots(orchestrator, "orchestrator_obj", changes)
    slots.put("charter", codex.charter)
    slots.put("house_rules", codex.house_rules)
    slots.declare({CYCLE_FROM: codex.cycle_from}, [CYCLE_FROM] if changes.list_values(f"mind.{CYCLE_FROM}") else [])
    for state, selector in STATES.items():
        slot = state_slot(state)
        if slot not in own_slots(orchestrator):
            slots.put(slot, UvmObject({"name": state}, parents=(traits,)))
        _state(own_slots(orchestrator)[slot], state, selector, changes)
    if roots.CONVERSATION not in own_slots(orchestrator):
        slots.put(roots.CONVERSATION, UvmObject({"name": "conversation"}, parents=(traits,)))
    behaviour = {selector: Primitive(primitive) for selector, primitive in CONVERSATION.items()}
    _Slots(own_slots(orchestrator)[roots.CONVERSATION], roots.CONVERSATION, changes).declare(behaviour)
    if CYCLE not in own_slots(orchestrator):
        idle = own_slots(orchestrator)[state_slot("IDLE")]
        slots.put(CYCLE, UvmObject(parents=(idle, traits)))


def _state(prototype: UvmObject, state: str, selector: str, changes: _Changes) -> None:
    slots, behaviour = _Slots(prototype, state_slot(state), changes), {selector: Primitive(f"psm.{state.lower()}")}
    if state not in state_steps.TABLE:
        slots.declare(behaviour)
        return
    declared = state_steps.default_steps(state)
    redefined = [state_steps.STEPS] if changes.list_values(f"{state}.{state_steps.STEPS}") else []
    slots.declare({**behaviour, state_steps.STEPS: declared}, redefined)
    if not state_steps.is_sound(state, own_slots(prototype)[state_steps.STEPS]):
        slots.put(state_steps.STEPS, declared)  # no mission begins with steps that this version does not know


def _tools(root: Root, traits: UvmObject, codex: Codex, changes: _Changes) -> None:
    apis = {absent.name: absent.api for absent in codex.objects}
    changes += tools.declare(root, apis, changes.declared)
    holder, declared = root[roots.TOOLS], {name: digest_of(api) for name, api in apis.items()}
    if own_slots(holder).get(DIGESTS, {}) != declared:
        setattr(holder, DIGESTS, declared)
    # Its slots are reached from everywhere: `self.tools.SELECTOR_(...)`.
    _Slots(traits, "traits_obj", changes).put("tools", holder)


def _persona(prototype: UvmObject, name: str, codex: Codex, persona: Persona, profile: str, changes: _Changes) -> None:
    slots = _Slots(prototype, name, changes)
    slots.put("name", persona.name)
    slots.put("core_identity", persona.core_identity)
    slots.put("core_method", persona.core_method)
    intents = {intent.slot: intent for intent in (*persona.pillars, *persona.protocols)}
    declared: dict[str, object] = {
        "model": codex.model_for(persona.name, profile),
        "options": codex.options_for(persona.name, profile),
        "line": persona.line,
        "form": persona.form,
        "answer_form": persona.answer_form or codex.answer_form,
        "triggers": persona.triggers,
        "exemplars": persona.exemplars,
        "prompts": dict(persona.prompts),
        "facets": tuple(intent.slot for intent in persona.pillars if not intent.shelved),
        "protocols": tuple(intent.slot for intent in persona.protocols if not intent.shelved),
        **intents,
    }
    slots.retire(declared)
    if own_slots(prototype).get(OTHER_MODEL) and own_slots(prototype)["model"] != declared["model"]:
        slots.put(OTHER_MODEL, None)  # it took the place of a model that the codex names no more
    acting = own_slots(prototype).get("options", {})
    late = [slot for slot in ("form", "protocols") if changes.list_values(f"{persona.name}.{slot}")]
    slots.declare(declared, late)
    slots.put("options", {**own_slots(prototype)["options"], **_keep_options(persona.name, acting, declared, changes)})


def _keep_options(
    persona: str, acting: Mapping[str, object], declared: Mapping[str, Any], changes: _Changes
) -> dict[str, object]:
    """Return the options that were redefined while running, and of which the codex says what it said before."""
    had = {option: changes.list_values(f"{persona}.{option}") for option in acting}
    return {
        option: acting[option]
        for option, values in had.items()
        if values and (values[0], values[-1]) == (declared["options"].get(option), acting[option])
    }


def _record(kept: Any, identities: Mapping[str, str], codex: Codex, profile: str, changes: _Changes) -> None:
    # In the same commit as the identities themselves: no other commit may leave one that is not recorded here.
    if kept.get(guards.IDENTITIES) != identities:
        kept[guards.IDENTITIES] = identities
        if kept.get("codex_digest") == codex.digest:  # an image from before identities were recorded
            changes.append(f"genesis.{guards.IDENTITIES} recorded")
    if kept.get("codex_digest") != codex.digest or dict(kept.get("codex_texts", {})) != dict(codex.texts):
        kept["codex_digest"] = codex.digest
        kept["codex_texts"] = PersistentMapping(codex.texts)
        changes.append("genesis.codex_digest recorded")
    if kept.get("profile") != profile:
        kept["profile"] = profile
        changes.append("genesis.profile recorded")

"""ALFRED's System Integrity Audit: compares codex, image and models, by computation alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from batos.genesis import graph, measuring, persona_models
from batos.genesis.codex.codex import PILLARS, Codex, Persona
from batos.genesis.codex.declarations import CYCLE, STATES, prototype_name, state_slot
from batos.genesis.codex.value_checks import FIRST_RATIO
from batos.genesis.plan import Plan, with_deletions
from batos.image import guards, roots
from batos.image.roots import Root, named_objects
from batos.inference import model_names
from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import UvmObject, own_slots, parents_of
from batos.protocol.server_documents import FindingDocument

_RUN_GENESIS = "Run `batos genesis`."


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of the audit; `remedy` is empty if all is well."""

    id: str
    ok: bool
    what: str
    remedy: str = ""

    def as_dict(self) -> FindingDocument:
        """Return the finding as plain data."""
        return {"id": self.id, "ok": self.ok, "what": self.what, "remedy": self.remedy}


def audit(
    root: Root, codex: Codex, plan: Plan | None, profile: str = "default", extra: Sequence[Finding] = ()
) -> tuple[Finding, ...]:
    """Look at everything once and change nothing; `plan` is None where Ollama could not be asked.

    `extra` are the findings of those who looked at what is not looked at here: adapters, the card's memory.
    """
    complete = _root(root)
    findings = [_digest(root, codex), complete]
    if complete.ok:
        findings.append(_identities(root))
        findings.append(_states(root["orchestrator_obj"]))
        findings.extend(_persona(root, persona) for persona in codex.personas.values())
        findings.append(_methods(root))
    findings.extend(_window(root, codex, persona, profile) for persona in codex.personas.values())
    findings.extend(_models(root, plan, complete))
    findings.extend(_capable(root, codex, profile, plan))
    return (*findings, *extra)


def _digest(root: Root, codex: Codex) -> Finding:
    known = root[roots.GENESIS].get("codex_digest") if roots.GENESIS in root else None
    if known == codex.digest:
        return Finding("codex.digest", True, f"the image holds the codex {codex.digest[:12]}")
    held = "no codex" if known is None else f"the codex {known[:12]}"
    return Finding("codex.digest", False, f"the image holds {held}, the files say {codex.digest[:12]}", _RUN_GENESIS)


def _root(root: Root) -> Finding:
    missing = [name for name in (*roots.OBJECTS, *roots.RECORDS) if name not in root]
    if missing:
        empty = not any(name in root for name in roots.OBJECTS)
        what = "the image is still empty" if empty else f"the root lacks {', '.join(missing)}"
        return Finding("image.root", False, what, _RUN_GENESIS)
    return Finding("image.root", True, f"the root has its {len(roots.OBJECTS)} objects and its records")


def _identities(root: Root) -> Finding:
    """Check that genesis recorded the identities, with which each commit is compared; earlier versions did not."""
    if guards.IDENTITIES in root[roots.GENESIS]:
        return Finding("image.identities", True, "each commit is compared with the identities that genesis recorded")
    what = "the image is of an earlier version, which recorded no identities: no commit is compared with them"
    return Finding("image.identities", False, what, "Run `batos genesis`: it records them.")


def _states(orchestrator: UvmObject) -> Finding:
    slots = own_slots(orchestrator)
    lacking = [
        state for state, selector in STATES.items() if not _has_primitive(slots.get(state_slot(state)), selector)
    ]
    if not isinstance(slots.get(CYCLE), UvmObject):
        lacking.append(CYCLE)
    if lacking:
        return Finding("image.states", False, f"the state machine lacks {', '.join(lacking)}", _RUN_GENESIS)
    return Finding("image.states", True, f"the state machine has its {len(STATES)} states and the cycle")


def _has_primitive(state: object, selector: str) -> bool:
    return isinstance(state, UvmObject) and isinstance(own_slots(state).get(selector), Primitive)


def _persona(root: Root, persona: Persona) -> Finding:
    id_ = f"persona.{persona.key}"
    faults = tuple(_persona_faults(root, persona))
    if faults:
        return Finding(id_, False, f"{persona.name}: {'; '.join(faults)}", _RUN_GENESIS)
    slots = own_slots(named_objects(root)[prototype_name(persona.name)])
    facets, protocols = len(slots["facets"]), len(slots["protocols"])
    key = f"{protocols} key protocol{'s' * (protocols != 1)}"
    redefined = sum(isinstance(value, Method) for value in slots.values())
    learnt = f", {redefined} of them learnt" if redefined else ""
    return Finding(id_, True, f"{persona.name} has {facets} facets and {key}{learnt}")


def _persona_faults(root: Root, persona: Persona) -> Iterator[str]:
    prototype = named_objects(root)[prototype_name(persona.name)]
    slots = own_slots(prototype)
    for slot in ("name", "core_identity", "core_method"):
        if slots.get(slot) != getattr(persona, slot):
            yield f"its {slot} is not the codex's"
    for slot in (*PILLARS[persona.name], *(protocol.slot for protocol in persona.protocols)):
        if not isinstance(slots.get(slot), Intent | Method):
            yield f"{slot} is missing"
    parents = parents_of(prototype)
    wanted = (root["pLLM_obj"], root["traits_obj"])
    if len(parents) != 2 or any(one is not other for one, other in zip(parents, wanted, strict=False)):
        yield "it does not delegate to pLLM_obj, then traits_obj"


def _methods(root: Root) -> Finding:
    """Check that each slot that ever had a method holds its active revision, or its intent."""
    lineages = list(root[roots.METHODS].values())
    wrong = [f"{roots.name_of_object(root, each.holder)}.{each.selector}" for each in lineages if not each.is_sound()]
    if wrong:
        what = f"{', '.join(wrong)}: the slot does not hold the active revision"
        remedy = "`batos method rollback OBJECT.SELECTOR --revision N` puts a revision there; 0 is the intent."
        return Finding("image.methods", False, what, remedy)
    active = sum(each.active > 0 for each in lineages)
    return Finding("image.methods", True, f"{active} methods are active, of {len(lineages)} slots that ever had one")


def _window(root: Root, codex: Codex, persona: Persona, profile: str) -> Finding:
    """Check that the text in every prompt (rules, persona, longest template and intent) leaves half of it free."""
    options = codex.options_for(persona.name, profile)
    intents = (*persona.pillars, *persona.protocols)
    if graph.acting_forms(root).get(persona.name) == "lean":
        texts = (
            persona.line or persona.core_identity,
            *sorted((each.line or each.intent for each in intents), key=len)[-1:],
        )
    else:
        texts = (codex.charter, codex.house_rules, persona.system, max(persona.prompts.values(), key=len),
                 max((each.intent for each in intents), key=len))  # fmt: skip
    known = list(measuring.recorded_measures(root).values())
    base = next((each for each in known if model_names.same(each.name, codex.model_for(persona.name, profile))), None)
    density = FIRST_RATIO if base is None or not base.tokens else base.tokens / base.size
    fixed = int(sum(len(text.encode()) for text in texts) * density)
    window, answer = options["num_ctx"], options["num_predict"]
    counted = "as its base counts them" if density != FIRST_RATIO else "by estimate"
    what = (
        f"{persona.name}'s fixed text takes about {fixed} tokens, {counted}; "
        f"the window has {window}, of which an answer may take {answer}"
    )
    if fixed * 2 > window - answer:
        return Finding(f"window.{persona.key}", False, what, "Shorten the codex, or raise num_ctx for all personas.")
    return Finding(f"window.{persona.key}", True, what)


def _models(root: Root, plan: Plan | None, complete: Finding) -> Iterator[Finding]:
    if plan is None:
        remedy = "Fix the connection to Ollama, then run `batos doctor` again."
        yield Finding("models.listed", False, "Ollama did not list its models", remedy)
        return
    for step in plan.steps:
        if step.kind in ("pull", "create", "upload"):
            optional = " (optional)" if step.optional else ""
            what = f"to do{optional}: {step.label}, {step.reason}"
            yield Finding(f"models.{step.kind}", step.optional, what, _RUN_GENESIS)
    if not any(step.kind in ("pull", "create") and not step.optional for step in plan.steps):
        yield Finding("models.made", True, f"the {len(plan.recipes)} models of the personas are there")
    stale = [step.name or "" for step in with_deletions(plan, ()).steps_of("delete")]
    if stale:  # of what this image made: another home may think with what else there is
        what = f"no persona uses {', '.join(stale)} any more: `batos genesis --prune` deletes them"
        yield Finding("models.stale", True, what)
    if complete.ok:
        yield _check_recorded_models(root, plan)
        yield _digests(root, plan)


def _capable(root: Root, codex: Codex, profile: str, plan: Plan | None) -> Iterator[Finding]:
    """Check that each base can do what it is used for, as far as the daemon tells."""
    known = measuring.recorded_measures(root)
    uses = [(codex.model_for(name, profile), "completion", name) for name in codex.personas]
    chosen = codex.profile(profile)
    uses += [(name, can, who) for name, can, who in ((chosen.coder, "completion", "the coder"),
             (chosen.embedder, "embedding", "the router")) if name]  # fmt: skip
    lacking: dict[tuple[str, str], list[str]] = {}
    for base, can, who in uses:
        row = plan.listed.row(base) if plan is not None else None
        measure = known.get(row.digest) if row is not None else None
        if measure is not None and can not in measure.capabilities:
            lacking.setdefault((base, can), []).append(who)
    for (base, can), names in lacking.items():
        does = "writes no text" if can == "completion" else "embeds nothing"
        what = f"{base} {does}, and the codex names it for {', '.join(names)}"
        remedy = "Name one that does in the codex, then `batos genesis`; `ollama show MODEL` says what a model can."
        yield Finding("models.capable", False, what, remedy)
    if not lacking and known:
        yield Finding("models.capable", True, "each base can do what the codex names it for")


def _check_recorded_models(root: Root, plan: Plan) -> Finding:
    objects = named_objects(root)
    recorded = {name: own_slots(objects[prototype_name(name)]).get("persona_model") for name in plan.models}
    differing = [name for name, model in plan.models.items() if recorded[name] != model]
    if differing:
        what = f"the image knows another model for {', '.join(differing)}"
        return Finding("models.recorded", False, what, _RUN_GENESIS)
    return Finding("models.recorded", True, "the image knows the personas' models by name")


def _digests(root: Root, plan: Plan) -> Finding:
    """Check that each wanted model is listed with the digest that was recorded when it was made."""
    made = persona_models.read_record(root).models
    listed = {name: row.digest for name in plan.recipes if (row := plan.listed.row(name)) is not None}
    other = [name for name, digest in listed.items() if name not in made or made[name].digest != digest]
    if other:
        what = f"{', '.join(other)} is not what this image made under that name"
        return Finding("models.digests", False, what, _RUN_GENESIS)
    return Finding("models.digests", True, f"{len(listed)} models have the digests that the image wrote down")

"""Genesis for an image as it was: its personas think with the models of today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from batos.genesis import graph, persona_models
from batos.genesis.adapters import repository
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.codex.declarations import prototype_name
from batos.genesis.plan import Plan
from batos.genesis.provision import OnProgress
from batos.genesis.reconcile import Baseline, Begin, GenesisReport, Reconciler
from batos.image import roots
from batos.image.roots import Root, named_objects
from batos.objects.prototype import own_slots
from batos.protocol.errors import ModelMissing, Refused

#: The slots of the language model that name models.
_MODELS: Final = ("model", "coder", "coder_options", "embedder")


@dataclass(frozen=True, slots=True)
class PastMind:
    """The mind that a copy of the image is to be: that of then, with the models that the reconciler of `today` knows.

    `model` takes the place of every persona's, `codex` that of the codex of then.
    """

    today: Reconciler
    model: str = ""
    codex: Codex | None = None


@dataclass(slots=True)
class PastReconciler(Reconciler):
    """The reconciler of a copy of the image as it was."""

    mind: PastMind = field(kw_only=True)
    _chosen: Mapping[str, str | None] = field(init=False)

    def __post_init__(self) -> None:
        Reconciler.__post_init__(self)  # a class with slots is made anew, so that super() would not find it
        with self.image.snapshot() as root:
            self._chosen = repository.choices(root)

    async def check(self) -> Baseline:
        """Let the personas of the copy think with the models of today, or with that of an adapter chosen in the copy.

        Raises: as the check of today. ModelMissing: Ollama does not have the model that is named.
        """
        today, other = self.mind.today, self.mind.model
        async with today.turn:
            now = await today.check()
        if other and other not in now.digests:
            remedy = f"`ollama list` shows those that it has; `ollama pull {other}` fetches one."
            raise ModelMissing(other, remedy=remedy)
        with today.image.snapshot() as root:
            used = {who: other or made for who, made in persona_models.read_record(root).used.items()}
            model = own_slots(root["pLLM_obj"])
            named = {slot: model[slot] for slot in _MODELS if slot in model}
        if not other:
            used |= await self._list_tried()

        def change(then: Root) -> None:
            if self.mind.codex is not None:
                graph.build(then, self.mind.codex, self.settings.profile)
            there = named_objects(then)
            graph.record_models(then, {who: made for who, made in used.items() if prototype_name(who) in there})
            for slot, value in named.items():
                if own_slots(then["pLLM_obj"]).get(slot) != value:
                    setattr(then["pLLM_obj"], slot, value)

        await self.image.writer.apply(change)
        return Baseline(self.codex(), now.digests, now.models | ({other} if other else set()))

    async def _list_tried(self) -> dict[str, str]:
        """Return the model of each persona whose adapter was chosen in the copy."""
        with self.image.snapshot() as root:
            chosen = repository.choices(root)
        made = {} if chosen == self._chosen else (await self.mind.today.plan()).models_for(chosen)
        return {who: name for who, name in made.items() if chosen[who] != self._chosen[who]}

    def codex(self) -> Codex:
        """Return the codex as the image knew it then. Raises: CodexError: it is none that is understood today."""
        with self.image.snapshot() as root:
            texts = dict(root[roots.GENESIS].get("codex_texts", {}))
        return codices.parse(texts).sound()

    async def run(
        self, on_progress: OnProgress | None = None, *, prune: bool = False, begin: Begin | None = None
    ) -> GenesisReport:
        """Refuse: the past is not brought about."""
        raise Refused("genesis changes the present alone", field="as_of", remedy="Run it without --as-of.")

    async def plan(self, *, prune: bool = False) -> Plan:
        """Refuse, as `run`."""
        raise Refused("genesis changes the present alone", field="as_of", remedy="Run it without --as-of.")

"""A healthy home with a daemon, and everything that can be wrong with one, each put in its wrong state by hand."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from tests.genesis.loras import gguf_adapter, halves, peft_adapter
from tests.image.installing import install
from ZODB.DB import DB
from ZODB.FileStorage.FileStorage import FileStorage

from batos.agency.records import effect_records
from batos.agency.records.effect_records import EffectData
from batos.client import addresses
from batos.config import Settings
from batos.genesis import measuring
from batos.genesis.adapters import repository
from batos.image.roots import Root, root_of
from batos.inference.journal import canonical_bodies
from batos.inference.ollama.bridge import Bridge
from batos.protocol.brief import as_file
from batos.records import redaction
from batos.records.methods import lineage_of
from batos.uvm import open_uvm

BASE = "llama3.1:8b-instruct-q4_K_M"
MODELS = (BASE, "all-minilm:latest")
#: No deadline of a daemon that answers is met, however slow the machine is.
PATIENCE = dict.fromkeys((f"{what}_seconds" for what in ("connect", "load", "first_token", "between_tokens")), 3600.0)


@dataclass(slots=True)
class Patient:
    """A home and the daemon that it asks; `given` are further settings, `environ` what can be seen of the daemon's."""

    home: Path
    bridge: Bridge
    given: dict[str, Any] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        own = {"home": self.home, "ollama_host": self.bridge.url, "user": "ada"}
        return Settings(**{**PATIENCE, **own, **self.given})

    async def change(self, change: Callable[[Any], Any]) -> None:
        """Change the image."""
        async with open_uvm(self.settings) as uvm:
            await uvm.image.writer.apply(change)

    async def model(self, persona: str = "robin") -> str:
        """The name of a persona's model."""
        return next(row.name for row in await self.bridge.list() if row.name.startswith(f"batos-{persona}:"))

    def codex(self, pattern: str, new: str, *files: str) -> None:
        """Change the codex."""
        for file in files or ("robin.toml", "brick.toml", "babs.toml", "alfred.toml"):
            path = self.home / "codex" / file
            text, count = re.subn(pattern, new, path.read_text(encoding="utf-8"), count=1)
            assert count, f"{pattern} is not in {file}"
            path.write_text(text, encoding="utf-8")


Ail: TypeAlias = Callable[[Patient], Awaitable[None]]


async def away(patient: Patient) -> None:
    patient.given["ollama_host"] = "http://127.0.0.1:9"


async def no_address(patient: Patient) -> None:
    patient.given["ollama_host"] = f"http://{'xn--' + 'a' * 20}.example"


async def other_settings(patient: Patient) -> None:
    patient.environ = {"OLLAMA_NUM_PARALLEL": "4", "OLLAMA_KV_CACHE_TYPE": "q8_0", "OLLAMA_KEEP_ALIVE": "0"}


async def base_deleted(patient: Patient) -> None:
    for row in await patient.bridge.list():
        if row.name == BASE or row.name.startswith("batos-"):
            await patient.bridge.delete(row.name)


async def model_deleted(patient: Patient) -> None:
    await patient.bridge.delete(await patient.model())


async def model_replaced(patient: Patient) -> None:
    async for _ in patient.bridge.create(await patient.model(), from_=BASE, system="Another."):
        pass


async def new_adapter(patient: Patient) -> None:
    peft_adapter(patient.home / "adapters" / "robin" / "warm", shapes=halves(ins=4096, outs=4096))


async def unfit_adapter(patient: Patient) -> None:
    peft_adapter(patient.home / "adapters" / "robin" / "warm", shapes=halves(ins=64, outs=64))


async def broken_adapter(patient: Patient) -> None:
    gguf_adapter(patient.home / "adapters" / "robin" / "warm", b"no weights")


async def lost_adapter(patient: Patient) -> None:
    await patient.change(lambda root: repository.choose(root, "ROBIN", "warm"))


async def loaded_for_each_call(patient: Patient) -> None:
    """A mission as it is told of a daemon that keeps no model between two calls."""
    mission = await asked(patient)

    def change(root: Any) -> None:
        thought = root["missions"][mission][2]
        cost = dict(thought.cost)
        thought.cost = {**cost, "calls": max(6, cost["calls"]), "loads": max(6, cost["calls"])}

    await patient.change(change)


async def other_model_recorded(patient: Patient) -> None:
    await patient.change(lambda root: setattr(root["robin_prototype_obj"], "persona_model", "batos-robin:000000000000"))


async def modelfile_edited(patient: Patient) -> None:
    next(patient.home.glob("modelfiles/batos-robin*")).write_text("FROM other\n", encoding="utf-8")


async def thinking_embedder(patient: Patient) -> None:
    def dull(root: Any) -> None:
        known = measuring.recorded_measures(root)
        measuring.record_measures(root, {digest: replace(each, capabilities=()) for digest, each in known.items()})

    await patient.change(dull)


async def untrained_window(patient: Patient) -> None:
    patient.codex(r"num_ctx = \d+", "num_ctx = 262144")


async def small_window(patient: Patient) -> None:
    await patient.bridge.load(await patient.model(), {"num_ctx": 512})


async def small_card(patient: Patient) -> None:
    patient.given["vram"] = "5GiB"


async def spilled(patient: Patient) -> None:
    # The emulated card has two GiB: the daemon loads the model in silence.
    await patient.bridge.load(await patient.model(), {"num_ctx": 4096})


async def codex_broken(patient: Patient) -> None:
    patient.codex(r"core_method", "core_methods", "brick.toml")


async def no_such_profile(patient: Patient) -> None:
    patient.given["profile"] = "huge"


async def codex_changed(patient: Patient) -> None:
    patient.codex(r"You are ROBIN", "You are ROBIN and kind", "robin.toml")


async def pillar_lost(patient: Patient) -> None:
    await patient.change(lambda root: delattr(root["robin_prototype_obj"], "sage_facet_"))


async def long_charter(patient: Patient) -> None:
    patient.codex(r'core_identity = """', 'core_identity = """' + "It is so. " * 900, "robin.toml")


async def no_image(patient: Patient) -> None:
    for path in patient.home.glob("live_image.fs*"):
        path.unlink()


async def image_damaged(patient: Patient) -> None:
    path = patient.home / "live_image.fs"
    path.write_bytes(path.read_bytes()[:-40])


async def image_foreign(patient: Patient) -> None:
    path = patient.home / "live_image.fs"
    path.write_bytes(path.read_bytes().replace(b"batos.objects.prototype", b"batos.objects.prototypX"))


async def other_journal(patient: Patient) -> None:
    elsewhere = patient.home / "elsewhere"
    async with open_uvm(Settings(home=elsewhere, ollama_host=patient.bridge.url)):
        pass
    for path in elsewhere.glob("journal.fs*"):
        path.replace(patient.home / path.name)


async def index_foreign(patient: Patient) -> None:
    (patient.home / "live_image.fs.index").write_bytes(b"cos\nsystem\n.")


async def torn(patient: Patient) -> None:
    with (patient.home / "live_image.fs").open("ab") as file:
        file.write(b"half a commit")


async def torn_and_opened(patient: Patient) -> None:
    await torn(patient)
    async with open_uvm(patient.settings):
        pass


async def root_incomplete(patient: Patient) -> None:
    async with open_uvm(patient.settings):
        pass
    # Past our database, which refuses this: as a tool from outside would.
    with closing(DB(FileStorage(str(patient.home / "live_image.fs")))) as db, db.transaction() as connection:
        root_of(connection).pop("babs_prototype_obj")


async def identities_unrecorded(patient: Patient) -> None:
    # As version 0.1.0 left an image; our database refuses it of one that has them.
    with closing(DB(FileStorage(str(patient.home / "live_image.fs")))) as db, db.transaction() as connection:
        del root_of(connection)["genesis"]["organisation"]


async def state_lost(patient: Patient) -> None:
    await patient.change(lambda root: delattr(root["orchestrator_obj"], "failed_state_obj"))


async def method_lost(patient: Patient) -> None:
    def change(root: Any) -> None:
        brick = root["brick_prototype_obj"]
        install(root, brick, "guide_facet_", "one")
        install(root, brick, "guide_facet_", "two")

    await patient.change(change)
    # Past our database, which refuses what does not fit together: as a tool from outside would.
    storage = FileStorage(str(patient.home / "live_image.fs"))
    with closing(DB(storage)) as db, db.transaction() as connection:
        root = root_of(connection)
        brick = root["brick_prototype_obj"]
        lineage = lineage_of(root, brick, "guide_facet_")
        assert lineage is not None
        brick.guide_facet_ = lineage.revisions[1]


async def asked(patient: Patient, file: bytes = b"") -> str:
    """A mission that is done, with a file if one is given."""
    async with open_uvm(patient.settings) as uvm:
        answer = await uvm.missions.ask(
            {"text": "Why is the sea salt?", "effort": "reflex"}, files=[as_file("salt.txt", file)] if file else []
        )
    return str(answer["id"])


async def image_older(patient: Patient) -> None:
    image = patient.home / "live_image.fs"
    before = image.read_bytes()
    await asked(patient)
    image.write_bytes(before)
    (patient.home / "live_image.fs.index").unlink()


async def journal_older(patient: Patient) -> None:
    journal = patient.home / "journal.fs"
    before = journal.read_bytes()
    await asked(patient)
    journal.write_bytes(before)
    (patient.home / "journal.fs.index").unlink()


async def blob_lost(patient: Patient) -> None:
    await asked(patient, b"The sea is salt. " * 6000)
    next((patient.home / "blobs").rglob("*.blob")).unlink()


async def blob_flipped(patient: Patient) -> None:
    await asked(patient, b"The sea is salt. " * 6000)
    path = next((patient.home / "blobs").rglob("*.blob"))
    path.chmod(0o600)
    path.write_bytes(b"X" + path.read_bytes()[1:])


async def journal_flipped(patient: Patient) -> None:
    await asked(patient)
    path = patient.home / "journal.fs"
    data = bytearray(path.read_bytes())
    data[data.rfind(b"x\x01") + 60] ^= 1
    path.write_bytes(data)


async def journal_rewritten(patient: Patient) -> None:
    """A record that can be read and is another than the one that was written: the chain does not know it."""
    mission = await asked(patient)
    async with open_uvm(patient.settings) as uvm:

        def change(root: Any) -> None:
            entry = root["missions"][mission].entries[0]
            record = replace(entry.record(), response={"message": {"content": "another"}})
            entry.become(record, canonical_bodies(record))

        await uvm.image.journal_writer.apply(change)


async def effect_unknown(patient: Patient) -> None:
    async with open_uvm(patient.settings) as uvm:
        mission = await uvm.missions.submit({"text": "Why?"})
        effect = EffectData(grant="dark", oid="oid:0x1", operation="effect.post", payload={"data": 1}, number=1)

        def change(root: Root) -> None:
            effect_records.fold(root, mission, {**effect, "fingerprint": "f"}, asks=lambda *_: "")
            made = effect_records.find_effect(root, f"e-{mission[2:]}-01")
            effect_records.become(root, made, "unknown", "", {"reason": "its process ended"})

        await uvm.image.writer.apply(change)


async def erasure_cut_off(patient: Patient) -> None:
    lines = redaction.Lines((), ())
    await patient.change(lambda root: redaction.begin_erasure(root, {"by": "you"}, lines, "2026-11-28T04:00:00.000Z"))


async def left_behind(patient: Patient) -> None:
    async with open_uvm(patient.settings) as uvm:
        await uvm.missions.submit({"text": "Why?"})


async def open_home(patient: Patient) -> None:
    patient.home.chmod(0o755)


async def open_files(patient: Patient) -> None:
    for path in (*patient.home.glob("*.fs*"), patient.home / "codex"):
        path.chmod(0o755)


#: More than the kernel gives.
NO_PROCESS = 2**22 + 1


def left(pid: int) -> addresses.ServerRecord:
    """The note of a server."""
    where = "tcp://127.0.0.1:7717"
    return addresses.ServerRecord(
        pid, addresses.birth_time(pid) or "", "2026-01-01T00:00:00Z", where, where, "plain", "plain", "0"
    )


async def stale_note(patient: Patient) -> None:
    addresses.write_record(patient.home, left(NO_PROCESS))


async def strange_note(patient: Patient) -> None:
    (patient.home / "server.json").write_text("[]", encoding="utf-8")


#: Each finding with what makes it wrong. What needs another disk, user or clock is in test_home_checks.py.
AILMENTS: Mapping[str, tuple[Ail, ...]] = {
    "ollama.answers": (away, no_address),
    "ollama.environment": (other_settings,),
    "models.listed": (away,),
    "models.pull": (base_deleted,),
    "models.upload": (new_adapter,),
    "models.create": (model_deleted, codex_changed, new_adapter),
    "models.recorded": (other_model_recorded,),
    "models.digests": (model_replaced,),
    "models.files": (modelfile_edited, codex_changed),
    "models.capable": (thinking_embedder,),
    "models.loads": (loaded_for_each_call,),
    "models.trained": (untrained_window,),
    "models.window": (small_window,),
    "vram.budget": (small_card, untrained_window),
    "vram.spill": (spilled,),
    "codex.files": (codex_broken, no_such_profile),
    "codex.digest": (codex_changed,),
    "persona.robin": (pillar_lost,),
    "window.robin": (long_charter,),
    "adapters.files": (broken_adapter, unfit_adapter),
    "adapters.choice": (lost_adapter,),
    "image.opens": (no_image, image_damaged),
    "image.reads": (image_foreign,),
    "image.pair": (other_journal,),
    "image.index": (index_foreign,),
    "image.tail": (torn,),
    "image.cut": (torn_and_opened,),
    "image.root": (root_incomplete,),
    "image.identities": (identities_unrecorded,),
    "image.states": (state_lost,),
    "image.methods": (method_lost,),
    "image.moment": (image_older, journal_older),
    "image.files": (blob_lost, blob_flipped),
    "image.journal": (journal_flipped, journal_rewritten),
    "image.effects": (effect_unknown,),
    "image.erasure": (erasure_cut_off,),
    "missions.waiting": (left_behind,),
    "home.private": (open_home,),
    "home.files": (open_files,),
    "home.server": (stale_note, strange_note),
}

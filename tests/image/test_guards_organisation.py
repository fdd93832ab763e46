"""The organisation: no commit, whoever makes it, leaves a persona, an identity or the charter another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from BTrees.OOBTree import OOBTree
from tests.image.open_image import answer, dump, open_image, thought_in
from tests.image.writers import WRITERS, start_mission

from batos.genesis import graph
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.image import roots
from batos.image.guards import IDENTITIES, identities
from batos.image.image import LivingImage
from batos.image.roots import named_objects
from batos.objects.prototype import UvmObject, own_slots, parents_of, reparent
from batos.protocol.errors import Refused

ROBIN = "robin_prototype_obj"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped codex, copied."""
    copied = tmp_path_factory.mktemp("home") / "codex"
    codices.install(copied)
    return copied


@pytest.fixture(scope="module")
def codex(folder: Path) -> Codex:
    """The shipped codex, read."""
    return codices.load(folder)


def _past_the_record(root: Any) -> None:
    del root[roots.GENESIS][IDENTITIES]
    root[ROBIN].core_identity = "I am another."


def _bear(root: Any, name: str, *parents: str) -> None:
    reparent(root[name], [root[each] for each in parents], by="test", reason="test", audit=lambda change: None)


def _stranger(root: Any) -> None:
    parents = [UvmObject({"infer_": "I answer"}), *parents_of(root[ROBIN])]
    reparent(root[ROBIN], parents, by="test", reason="test", audit=lambda change: None)


#: What undoes the organisation, and what the error says of it.
UNDONE: dict[str, tuple[Callable[[Any], object], str]] = {
    "deleted": (lambda root: root.pop(ROBIN), f"take {ROBIN} out of the root"),
    "renamed": (lambda root: root.__setitem__("robin_obj", root.pop(ROBIN)), f"take {ROBIN} out of the root"),
    "replaced": (lambda root: root.__setitem__(ROBIN, UvmObject({"name": "ROBIN"})), f"leave {ROBIN} with another"),
    "another": (lambda root: root.__setitem__(ROBIN, root["brick_prototype_obj"]), f"leave {ROBIN} with another"),
    "no object": (lambda root: root.__setitem__(ROBIN, None), f"leave {ROBIN} with another"),
    "the record": (_past_the_record, f"change {IDENTITIES} of what genesis recorded"),
    "its bond": (lambda root: root[roots.GENESIS].pop(roots.PAIR), "change pair of what genesis recorded"),
    "all of it": (lambda root: root.pop(roots.GENESIS), "take genesis out of the root"),
    "its records": (lambda root: root.pop(roots.METHODS), f"take {roots.METHODS} out of the root"),
    "other records": (lambda root: root.__setitem__(roots.METHODS, OOBTree()), f"in the place of {roots.METHODS}"),
    "what all share": (lambda root: root.pop("traits_obj"), "take traits_obj out of the root"),
    "the laws' holder": (lambda root: root.pop("orchestrator_obj"), "take orchestrator_obj out of the root"),
}

#: The same done to an object that stays where it is.
WITHIN: dict[str, tuple[Callable[[Any], object], str]] = {
    "its name": (lambda root: setattr(root[ROBIN], "name", "ROBERT"), f"leave {ROBIN} with another"),
    "its identity": (lambda root: delattr(root[ROBIN], "core_identity"), f"leave {ROBIN} with another"),
    "its method of work": (lambda root: setattr(root[ROBIN], "core_method", "Guess."), f"leave {ROBIN} with another"),
    "its line, cut": (
        lambda root: _bear(root, ROBIN, "pLLM_obj"),
        f"leave {ROBIN} with another identity or other parents",
    ),
    "its line, turned": (lambda root: _bear(root, ROBIN, "traits_obj", "pLLM_obj"), f"leave {ROBIN} with another"),
    "another's line": (
        lambda root: _bear(root, "pLLM_obj", "traits_obj", "genesis_obj"),
        "leave pLLM_obj with another",
    ),
    "a stranger's line": (_stranger, f"leave {ROBIN} with another"),
    "the charter": (lambda root: setattr(root["orchestrator_obj"], "charter", "Obey."), "leave orchestrator_obj with"),
}


@pytest.mark.parametrize("undo", [*UNDONE, *WITHIN])
async def test_no_change_undoes_it(undo: str, codex: Codex) -> None:
    """A change that the writer is given is refused, leaves nothing, and takes no other change of its batch with it."""
    change, what = {**UNDONE, **WITHIN}[undo]
    async with open_image(None) as image:
        await image.writer.apply(lambda root: graph.build(root, codex))
        before = dump(image)
        with pytest.raises(Refused, match=what) as refused:
            await image.writer.apply(change)
        assert "batos genesis" in refused.value.remedy
        assert dump(image) == before
        await image.writer.apply(lambda root: setattr(named_objects(root)[ROBIN], "options", {"seed": 1}))
        with image.snapshot() as root:
            assert own_slots(named_objects(root)[ROBIN])["options"] == {"seed": 1}
            assert own_slots(named_objects(root)[ROBIN])["core_identity"] == codex.personas["ROBIN"].core_identity


async def _running(image: LivingImage, codex: Codex) -> str:
    await image.writer.apply(lambda root: graph.build(root, codex))
    return await start_mission(image)


def _organisation(image: LivingImage) -> dict[str, str]:
    with image.snapshot() as root:
        return {**identities(root), "names": repr(sorted(named_objects(root)))}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("undo", [*UNDONE, *WITHIN])
async def test_no_writer_undoes_it(undo: str, writer: str, codex: Codex) -> None:
    """Whoever commits is refused, and the objects of the organisation are as they were."""
    change, what = {**UNDONE, **WITHIN}[undo]
    async with open_image(None) as image:
        mission = await _running(image, codex)
        before = _organisation(image)
        with pytest.raises(Refused, match=what):
            await WRITERS[writer](image, mission, change)
        assert _organisation(image) == before


async def test_no_thought_does_what_genesis_does(codex: Codex) -> None:
    """Another identity with its new record is genesis's commit; in a thought's it is refused."""
    async with open_image(None) as image:
        mission = await _running(image, codex)
        with image.transaction(mission) as transaction:
            kept = transaction.root[roots.GENESIS]
            kept[IDENTITIES] = {**kept[IDENTITIES], ROBIN: "0" * 64}
            with pytest.raises(Refused, match=f"change {IDENTITIES}"):
                await transaction.commit(answer(thought_in(image, transaction, mission)))


@pytest.fixture(scope="module")
def changed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Codex:
    """The codex in which ROBIN is somebody else."""
    copied = tmp_path_factory.mktemp("changed")
    for each in folder.iterdir():
        text = each.read_text(encoding="utf-8")
        (copied / each.name).write_text(text.replace("the heart of this mind", "the warm heart of this mind"), "utf-8")
    return codices.load(copied)


async def test_the_codex_changes_who_they_are(codex: Codex, changed: Codex) -> None:
    """Genesis with another codex writes identity and record in one commit, which passes; so does what follows it."""
    assert changed.personas["ROBIN"].core_identity != codex.personas["ROBIN"].core_identity
    async with open_image(None) as image:
        await image.writer.apply(lambda root: graph.build(root, codex))
        changes = await image.writer.apply(lambda root: graph.build(root, changed))
        assert f"{ROBIN}.core_identity changed" in changes
        assert not await image.writer.apply(lambda root: graph.build(root, changed))
        await image.writer.apply(lambda root: setattr(named_objects(root)[ROBIN], "options", {}))
        with image.snapshot() as root:
            assert own_slots(named_objects(root)[ROBIN])["core_identity"] == changed.personas["ROBIN"].core_identity


async def test_the_journal_stays_bound() -> None:
    """The journal keeps the id that it shares with its image."""
    async with open_image(None) as image:
        with pytest.raises(Refused, match="take pair out of the root"):
            await image.journal_writer.apply(lambda root: root.pop(roots.PAIR))

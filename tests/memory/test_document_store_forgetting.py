"""Forgetting: what goes with a document, and what stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of
from tests.memory.test_fold_store import LATER, filler

from batos.image import roots
from batos.image.roots import Root
from batos.memory.document_store import forget_all, going_with
from batos.memory.fold_store import FoldStore
from batos.memory.records import memory_records
from batos.memory.search.recollection import Recollection
from batos.records import memory_lineage
from batos.testing import ScriptedBridge, scripted_uvm

LAMP = "Maro winds the clockwork of the lamp."


async def test_an_answer_goes_with_what_it_cites_and_not_with_its_neighbours(tmp_path: Path) -> None:
    """A summary stands for both memories; who forgets the one leaves the answer that cites the other."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(LAMP)) as uvm:
        store, recollection = store_of(uvm.image), Recollection()
        texts = [f"{LAMP} {filler(0)}", f"Gulls cry at night. {filler(1)}", f"Oil is dear now. {filler(2)}"]
        given = [incoming(text, f"/notes/{number}", "tester") for number, text in enumerate(texts)]
        names = [each["document"] for each in (await store.remember(given))["remembered"]]
        told = await uvm.missions.ask(
            {"text": "Who winds the clockwork of the lamp?", "user": "tester", "effort": "reflex"}
        )
        assert told["provenance"]["citations"]
        await uvm.mission_memory.write()
        folds = FoldStore(uvm.image, store, recollection.search, lambda: LATER)
        (line,) = [await folds.fold(*each) for each in list(folds.survey(None, LATER))]
        assert line is not None
        assert {each["document"] for each in line["documents"]} == set(names)
        with uvm.image.snapshot() as root:
            answer = memory_records.find_document(root, told["id"]).name
            assert going_with(root, [names[1]]) == []
            assert going_with(root, [names[0]]) == going_with(root, [line["summary"]]) == [answer]
        gone = await uvm.image.shared.apply(
            lambda root: [each["document"] for each in forget_all(root, [root[roots.DOCUMENTS][names[1]]])]
        )
        assert set(gone) == {names[1], line["summary"]}
        with uvm.image.snapshot() as root:
            assert {*root[roots.DOCUMENTS]} == {names[0], names[2], answer}


async def test_an_edited_summary_goes_with_what_the_summary_stood_for() -> None:
    """A person could edit summaries once; such a text quotes a memory as the summary did."""
    async with open_image(None) as image:
        store = store_of(image)
        texts = [f"{LAMP} {filler(0)}", f"Gulls cry at night. {filler(1)}", f"Oil is dear now. {filler(2)}"]
        told = await store.remember([incoming(text, f"/notes/{number}") for number, text in enumerate(texts)])
        names = [each["document"] for each in told["remembered"]]
        folds = FoldStore(image, store, Recollection().search, lambda: LATER)
        (line,) = [await folds.fold(*each) for each in list(folds.survey(None, LATER))]
        assert line is not None
        made = (await store.remember([replace(incoming(f"In short: {LAMP}"), kind="summary")]))["remembered"][0]

        def edit(root: Root) -> None:
            setattr(root[roots.DOCUMENTS][made["document"]], memory_lineage.EDITS, (line["summary"],))

        await image.shared.apply(edit)
        gone = {each["document"] for each in (await store.forget([names[1]]))["forgotten"]}
        assert gone == {names[1], line["summary"], made["document"]}

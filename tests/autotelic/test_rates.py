"""Rates of the mind's own work: their sums, their windows, whose they are, and what they cost."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.autotelic.test_answer_measures import LAMP, winding
from tests.autotelic.test_entropy_days import Days
from tests.history.test_as_of_past_questions import Door

from batos.autotelic import rates
from batos.image import ids, roots
from batos.image.ownership import DOOR
from batos.protocol.errors import BatosError
from batos.protocol.mission_documents import MissionDocument
from batos.testing import scripted_uvm
from batos.uvm import UVM, Seams


async def work(uvm: UVM, texts: Sequence[str], **brief: Any) -> list[MissionDocument]:
    """Ask each; one that begins with a mark of exclamation asks a model that is not there."""
    for text in texts:
        model = {"model": "absent:1b"} if text.startswith("!") else {}
        try:
            await uvm.missions.ask({"text": text, "effort": "reflex", "persona": "BRICK", **model, **brief}, (LAMP,))
        except BatosError:
            continue
    await uvm.mission_memory.job.finish()
    return [uvm.readings.mission(each["id"]) for each in uvm.readings.newest(1_000)]


async def test_an_empty_image_has_rates_of_nothing(tmp_path: Path) -> None:
    """Nothing is divided by nothing; the audit of the genesis is there."""
    async with scripted_uvm(tmp_path) as uvm:
        found = uvm.rates()
        for window in found["windows"].values():
            assert (window["missions"], window["looked_at"], window["median"], window["outcome"]) == ({}, 0, None, None)
            assert window["counted"]["calls"] == 0
        assert found["cem"] == []
        assert found["audit"] is not None
        assert found["audit"]["held"] == found["audit"]["checks"] > 0


@settings(max_examples=5, deadline=None)
@given(st.lists(st.sampled_from(["Who winds it?", "Do gulls cry?", "!Who winds it?"]), min_size=1, max_size=6))
async def test_sums_agree_with_a_walk_over_all_missions(texts: list[str]) -> None:
    """The counters of the days, the tally and the documents of the missions say the same."""
    with tempfile.TemporaryDirectory() as home:
        async with scripted_uvm(Path(home), winding()) as uvm:
            every = await work(uvm, texts)
            found = uvm.rates()["windows"]
            status = Counter(each["status"] for each in every)
            costs = [each["cost"] for each in every]
            for window in found.values():
                assert window["missions"] == status
                assert window["looked_at"] == len(every)
                assert window["counted"]["calls"] == sum(each["calls"] for each in costs)
                assert window["counted"]["tokens"] == sum(e["prompt_tokens"] + e["answer_tokens"] for e in costs)
                assert sum(window["failures"].values()) == status["failed"]
                stated = Counter(e["state"] for each in every for e in each.get("provenance", {}).get("sentences", ()))
                assert window["sentences"] == stated
                judged = sum(window["verdicts"].get(word, 0) for word in ("passed", "faulty", "unchecked"))
                assert judged == status["done"]


async def test_a_window_has_its_days_alone(tmp_path: Path) -> None:
    """Nine days ago is in no week, and three days ago in no day."""
    clock = Days()
    async with scripted_uvm(tmp_path, winding(), seams=Seams(clock=clock)) as uvm:
        await work(uvm, ["Who winds it?", "!Who winds it?"])
        clock.now += timedelta(days=6)
        await work(uvm, ["Do gulls cry?"])
        clock.now += timedelta(days=3)
        await work(uvm, ["!Do gulls cry?"])
        windows = uvm.rates()["windows"]
        assert [windows[each]["missions"] for each in ("day", "week", "all")] == [
            {"failed": 1}, {"done": 1, "failed": 1}, {"done": 2, "failed": 2},
        ]  # fmt: skip
        assert [windows[each]["looked_at"] for each in ("day", "week", "all")] == [1, 2, 4]
        assert windows["all"]["failures"] == {"model_missing": 2}


async def test_a_user_is_told_of_their_own_missions_alone(tmp_path: Path) -> None:
    """Nothing of others is counted, and nothing that all have together is told."""
    async with scripted_uvm(tmp_path, winding()) as uvm:
        await work(uvm, ["Who winds it?", "!Who winds it?"])
        await work(uvm, ["Do gulls cry?"], user="key ann")
        found = (await Door(uvm)("status", rates=True, user="key ann"))["rates"]
        for window in found["windows"].values():
            assert (window["missions"], window["looked_at"], window["failures"]) == ({"done": 1}, 1, {})
            assert "counted" not in window
        assert "audit" not in found
        nobody = (await Door(uvm)("status", rates=True, user="key bob"))["rates"]
        assert all(each["missions"] == each["failures"] == {} for each in nobody["windows"].values())
        whole = await Door(uvm)("status", rates=True)
        assert whole["rates"]["windows"]["day"]["missions"] == {"done": 2, "failed": 1}
        assert "rates" not in await Door(uvm)("status")


async def test_what_the_mind_asks_itself_is_no_answer_to_anybody(tmp_path: Path) -> None:
    """Its missions are counted, and say nothing of verdicts and medians."""
    async with scripted_uvm(tmp_path, winding()) as uvm:
        await work(uvm, ["Who winds it?"])
        await work(uvm, ["Write a question."], origin={"door": DOOR, "client": "items d-1"})
        found = uvm.rates()["windows"]["all"]
        assert (found["missions"], found["looked_at"], sum(found["verdicts"].values())) == ({"done": 2}, 1, 1)


async def test_only_the_newest_missions_are_read_whole(tmp_path: Path) -> None:
    """Of very many missions each is counted, and few are looked at."""
    async with scripted_uvm(tmp_path, winding()) as uvm:
        (one,) = await work(uvm, ["Who winds it?"])
        now = uvm.clock()

        def multiply(root: roots.Root) -> None:
            record, name = root[roots.MISSIONS][one["id"]], one["id"]
            for _ in range(rates.MOST + 9):
                name = ids.mission_id(now, name)
                root[roots.MISSIONS][name] = record
                roots.move_tally(root, name, None, "done")

        await uvm.image.writer.apply(multiply)
        found = uvm.rates()["windows"]["all"]
        assert found["missions"] == {"done": rates.MOST + 10}
        assert found["looked_at"] == rates.MOST

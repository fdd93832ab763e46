"""Deciding about methods through both doors: the same answers, refusals and missions that go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.approvals.coder_bridge import BRICK, CYCLE, FACET, MESSAGE, Coding
from tests.cli.doors.serving import client_of, serving

from batos.cli.doors.door import Door
from batos.image.roots import named_objects
from batos.protocol.errors import ApprovalNeeded, BatosError, BriefError, NotFound, ProtocolError, Refused
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.wire_messages import mission_error
from batos.records import methods
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import scripted_uvm
from batos.uvm import UVM

POLICY = {"install": "ask", "interpret": "never"}


class Deciding(ABC):
    """What every door does."""

    #: Whether a mission that an answer wakes goes on by itself.
    works: bool

    @abstractmethod
    def through(self, uvm: UVM) -> AbstractAsyncContextManager[Door]:
        """The door to an open UVM."""

    @asynccontextmanager
    async def opened(self, home: Path) -> AsyncIterator[tuple[Door, UVM]]:
        """The door to a mind whose coder is good."""
        async with scripted_uvm(home, Coding(), install="ask") as uvm, self.through(uvm) as way:
            yield way, uvm

    async def waiting(self, way: Door, brief: Mapping[str, Any] = MESSAGE) -> tuple[dict[str, Any], list[str]]:
        """A mission that waits, and the ids of what it waits for."""
        found = await way.call("submit", {"brief": {**brief, "user": "ada", "policy": POLICY}, "follow": True})
        listed = await way.call("approvals", {"status": "asked"})
        return found, [each["id"] for each in listed["approvals"]]

    async def test_a_yes(self, tmp_path: Path) -> None:
        """Who waits is told so by its end; what is asked is shown whole; the yes says who gave it, and wakes."""
        async with self.opened(tmp_path) as (way, _uvm):
            found, (name,) = await self.waiting(way)
            error = mission_error(cast("MissionDocument", found))
            assert isinstance(error, ApprovalNeeded)
            assert (found["status"], error.approval, error.exit_code) == ("waiting", name, 7)
            shown = await way.call("approvals", {"approval": name})
            assert f"async def {FACET}(self, query):" in shown["source"]
            assert shown["verdict"]["accepted"]
            assert (len(shown["checks"]), shown["mutants"]["made"] > 0, shown["diff"]) == (2, True, None)
            assert shown["intent"]["name"] == "The Literal Engine"
            for said in ("last", name[:14].lower()):
                assert await way.call("approvals", {"approval": said}) == shown
            told = await way.call("approve", {"approvals": ["last", name[:14]], "user": "ada"})
            assert told["woken"] == [found["id"]]
            assert told["approved"] == [
                {
                    "id": name,
                    "object": BRICK,
                    "selector": FACET,
                    "digest": shown["digest"],
                    "by": "ada",
                    "revision": 1,
                }
            ]
            if not self.works:
                await way.begin(found["id"])
            ended = await way.call("wait", {"mission": found["id"]})
            assert ended["status"] == "done"
            (line,) = (await way.call("approvals"))["approvals"]
            assert (line["status"], line["by"], line["missions"]) == ("approved", "ada", [found["id"]])
            assert (await way.call("approvals"))["waiting"] == 0

    async def test_all_that_match(self, tmp_path: Path) -> None:
        """A pattern is over object and selector, by any of the object's names; nothing else is approved."""
        async with self.opened(tmp_path) as (way, _uvm):
            _, names = await self.waiting(way, CYCLE)
            with pytest.raises(NotFound):
                await way.call("approve", {"matching": "robin*.*"})
            with pytest.raises(NotFound):
                await way.call("approve", {"matching": "brick"})
            first = await way.call("approve", {"matching": "*.tamland*"})
            assert [each["selector"] for each in first["approved"]] == [FACET]
            rest = await way.call("approve", {"matching": "brick.*_FACET_", "user": "eve"})
            approved = {each["id"] for each in first["approved"]}
            assert [each["id"] for each in rest["approved"]] == [name for name in names if name not in approved]
            assert {each["by"] for each in rest["approved"]} == {"eve"}

    async def test_some_of_several(self, tmp_path: Path) -> None:
        """What can be approved is, and what cannot is named with its reason; where nothing can, it is refused."""
        async with self.opened(tmp_path) as (way, _uvm):
            _, names = await self.waiting(way, CYCLE)
            await way.call("reject", {"approval": "last-2", "why": "no"})
            told = await way.call("approve", {"approvals": names})
            assert [each["id"] for each in told["approved"]] == names[1:]
            ((name, error),) = [(each["id"], each["error"]) for each in told["refused"]]
            assert (name, error["code"]) == (names[0], "refused")
            assert "was rejected by tester: no" in error["message"]
            with pytest.raises(Refused, match="rejected"):
                await way.call("approve", {"approvals": [names[0]]})

    async def test_what_is_no_answer(self, tmp_path: Path) -> None:
        """Ids that are none, both ways at once, no way at all, and no reason."""
        async with self.opened(tmp_path) as (way, _uvm):
            _, (name,) = await self.waiting(way)
            wrong: list[tuple[str, dict[str, Any], type[BatosError]]] = [
                ("approve", {"approvals": [name, "a-none"]}, NotFound),
                ("approve", {}, ProtocolError),
                ("approve", {"approvals": []}, ProtocolError),
                ("approve", {"approvals": [name], "matching": "*"}, ProtocolError),
                ("reject", {"approval": name, "why": " "}, BriefError),
                ("reject", {"approval": name}, ProtocolError),
                ("reject", {"approval": "a-none", "why": "no"}, NotFound),
                ("approvals", {"approval": "a-none"}, NotFound),
                ("approvals", {"status": "maybe"}, ProtocolError),
            ]
            for verb, args, kind in wrong:
                with pytest.raises(kind):
                    await way.call(verb, args)
            assert (await way.call("approvals"))["waiting"] == 1

    async def test_a_later_revision_shows_what_it_changes(self, tmp_path: Path) -> None:
        """The diff is to what was active when it was asked; approved, it is the next revision."""
        async with self.opened(tmp_path) as (way, uvm):
            _, (name,) = await self.waiting(way)
            await way.call("approve", {"approvals": [name]})
            with uvm.image.snapshot() as root:
                lineage = methods.lineage_of(root, named_objects(root)[BRICK], FACET)
                assert lineage is not None
                former = lineage.revisions[1].source
            candidate = await uvm.method_runtime.generator.redefine(
                BRICK, FACET, "ada", source=former.replace("Your part", "Thy part")
            )
            second = await uvm.approvals.ask(candidate, None)
            shown = await way.call("approvals", {"approval": second})
            changed = [line for line in shown["diff"] if line.startswith(("-  ", "+  "))]
            assert [("Your part" in line, "Thy part" in line) for line in changed] == [(True, False), (False, True)]
            assert shown["former"] == 1
            told = await way.call("approve", {"matching": f"{BRICK}.{FACET}"})
            assert told["approved"][0]["revision"] == 2

    async def test_the_status_tells_how_many_wait(self, tmp_path: Path) -> None:
        """Beside the queue."""
        async with self.opened(tmp_path) as (way, uvm):
            await self.waiting(way, CYCLE)
            assert uvm.status()["approvals"] == {"waiting": 3}


class TestLocal(Deciding):
    """In the process that holds the image: a mission that is woken waits until somebody begins it."""

    works = False

    @asynccontextmanager
    async def through(self, uvm: UVM) -> AsyncIterator[Door]:
        uploads = Uploads(uvm.settings.home / "uploads", 2**20)
        yield Door(Dispatcher(uvm, uploads, works=False).handle, uvm=uvm)
        await uploads.close()


class TestThroughServer(Deciding):
    """Through a server: it goes on with them by itself."""

    works = True

    @asynccontextmanager
    async def through(self, uvm: UVM) -> AsyncIterator[Door]:
        async with serving(uvm), client_of(uvm) as client:
            yield Door(client.call, client.watch)

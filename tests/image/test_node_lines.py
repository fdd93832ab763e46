"""`batos status` tells the nodes of an image on a server: who publishes, who waits for that, who fell silent."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from tests.image.lease_clock import LEASE
from tests.image.open_image import brief, open_image
from tests.image.servers import zeo_server, zeo_uri
from tests.waiting import until

from batos.cli.verbs.status import status_text
from batos.config import Settings
from batos.image import node_lines, roots
from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.protocol.image_documents import NodeLine
from batos.server.dispatch.looking import read_status

pytestmark = pytest.mark.blocks_loop


def lines(image: LivingImage, later: float = 0.0) -> list[NodeLine]:
    """The nodes as this one tells them, so many seconds from now."""
    with image.snapshot() as root:
        return node_lines.list_nodes(root, LEASE, utc_now() + timedelta(seconds=later), image.fence)


def lines_if_asked(image: LivingImage) -> list[NodeLine]:
    """The nodes, if one asks to publish."""
    told = lines(image)
    return told if any(each["asks_to_publish"] for each in told) else []


def node(image: str, name: str) -> AbstractAsyncContextManager[LivingImage]:
    """A node of an image."""
    return open_image(None, image=image, lease=LEASE, node=name)


async def test_each_node_is_told_with_its_part(tmp_path: Path) -> None:
    """By a node and by who only reads: the part of the publisher, who waits for it, missions, silence, and the end."""
    async with AsyncExitStack() as stack:
        server = zeo_uri(stack.enter_context(zeo_server(tmp_path)))
        first = await stack.enter_async_context(node(server, "first"))
        second = await stack.enter_async_context(node(server, "second"))
        mission = await second.accept(brief())
        await second.move(mission, "running")
        async with first.publishing.here():
            asking = asyncio.create_task(second.shared.apply(lambda root: None))
            told = await until(lambda: lines_if_asked(first), "the question for the part")
        assert [each["name"].split()[0] for each in told] == ["first", "second"]
        assert [each["state"] for each in told] == ["live", "live"]
        assert [(each["publishes"], each["asks_to_publish"]) for each in told] == [(True, False), (False, True)]
        assert [(each["here"], each["running"]) for each in told] == [(True, 0), (False, 1)]
        await asking
        assert [each["publishes"] for each in lines(second)] == [False, True]
        assert [each["state"] for each in lines(second, later=LEASE + 1)] == ["silent", "silent"]
        settings = Settings(home=tmp_path / "third", image=server, ollama_host="http://127.0.0.1:9")
        read = (await read_status(settings))["nodes"]
        assert [(each["here"], each["running"]) for each in read] == [(False, 0), (False, 1)]

        def end(root: roots.Root) -> None:
            root[roots.NODES][first.fence]["ended"] = True

        await second.writer.apply(end)
        assert [each["name"].split()[0] for each in lines(second)] == ["second"]  # nothing is left of the first


def test_the_screen_has_a_line_for_each_node() -> None:
    """With the age of its lease; an image in a file has none."""
    now = utc_now()
    usual: NodeLine = {
        "fence": 1, "name": "ada, process 7 a1b2", "here": True, "state": "live", "publishes": True,
        "asks_to_publish": False, "renewed": (now - timedelta(seconds=2)).isoformat(), "running": 2, "waiting": 0,
    }  # fmt: skip
    asks: NodeLine = {**usual, "fence": 2, "here": False, "publishes": False, "asks_to_publish": True, "running": 0}
    silent: NodeLine = {**asks, "fence": 3, "state": "silent", "asks_to_publish": False, "running": 1, "waiting": 1}
    ended: NodeLine = {**silent, "fence": 4, "state": "ended"}
    both = "1 mission under way, 1 mission waiting"
    assert status_text({"nodes": [usual, asks, silent, ended]}, now).splitlines()[1:] == [
        "nodes    ada, process 7 a1b2 (here): lease renewed 2 s ago, publishes, 2 missions under way",
        "         ada, process 7 a1b2: lease renewed 2 s ago, waits to publish",
        f"         ada, process 7 a1b2: suspended or dead, lease not renewed for 2 s, {both}",
        f"         ada, process 7 a1b2: lease ended, others take its missions over, {both}",
    ]
    assert "nodes" not in status_text({"nodes": []}, now)

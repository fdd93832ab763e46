"""The nodes of an image on a server as people see them: who lives, who publishes, who fell silent, what each runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from batos.image import roots
from batos.image.ids import iso
from batos.image.nodes import claims
from batos.image.past import moment_of
from batos.image.roots import Root
from batos.protocol.image_documents import NodeLine


def list_nodes(root: Root, lease: float, now: datetime, here: int = 0) -> list[NodeLine]:
    """List the nodes that have a lease of so many seconds, and those that ended and left missions behind.

    `here` is the fence of the asking node. The moment of a renewal is the server's, so that a node is told as silent
    too early or too late by as much as the clocks differ.
    """
    nodes: Any = root.get(roots.NODES, {})
    lines = [_line(root, fence, node, lease, now, fence == here) for fence, node in nodes.items()]
    return [line for line in lines if line["state"] != "ended" or line["running"] or line["waiting"]]


def _line(root: Root, fence: int, node: Any, lease: float, now: datetime, is_here: bool) -> NodeLine:
    publisher = root[roots.PUBLISHER]
    words = [roots.mission_record(root, name).status for name in node["claims"]]
    held = [status.word for status in words if claims.is_claimed(status, fence)]
    beat = node["beat"]
    beat["count"]  # loads it: an object that is not loaded has no serial
    renewed = moment_of(beat._p_serial)
    is_silent = (now - renewed).total_seconds() >= lease
    return {
        "fence": fence,
        "name": node["name"],
        "here": is_here,
        "state": "ended" if node["ended"] else "silent" if is_silent else "live",
        "publishes": publisher["fence"] == fence and not node["ended"],
        "asks_to_publish": publisher["wanted"] == fence and not node["ended"],
        "renewed": iso(renewed),
        "running": held.count("running"),
        "waiting": held.count("waiting"),
    }

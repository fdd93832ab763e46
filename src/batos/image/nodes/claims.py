"""Claims of missions: which node runs one, by the number of its lease; a claim ends with the lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from batos.image import roots
from batos.image.records import Status, StatusWord
from batos.image.roots import Root
from batos.protocol.errors import Busy, ImageError, Refused

#: Seconds between two looks whether other nodes work.
_PAUSE: Final = 0.05


def claim(root: Root, fence: int, mission: str, status: Status) -> None:
    """Note that the node of this fence runs a mission; its claims of missions that run no more are dropped.

    Each node has a set of its own, so that no two nodes write the same one.
    """
    status.claim = fence
    claims = root[roots.NODES][fence]["claims"]
    for name in list(claims):
        if not is_claimed(roots.mission_record(root, name).status, fence):
            claims.remove(name)
    claims.insert(mission)


def is_claimed(status: Status, fence: int) -> bool:
    """Test if the node of this fence runs a mission, or has it wait, or did so when it ended."""
    return status.word in ("running", "waiting") and status.claim == fence


def is_elsewhere(root: Root, status: Status, fence: int) -> bool:
    """Test if another node runs a mission, whose lease nobody has ended.

    An image of a single process (fence 0) has no other node: the nodes in it are of a server that it was copied from.
    """
    if fence == 0 or status.word != "running" or status.claim in (0, fence):
        return False
    return not has_ended(root.get(roots.NODES, {}), status.claim)


def has_ended(nodes: Any, fence: int) -> bool:
    """Test if the lease of a node has ended; one without a record ended long ago."""
    record = nodes.get(fence)
    return record is None or bool(record["ended"])


def check_here(root: Root, mission: str, status: Status, fence: int) -> None:
    """Check that no other node runs a mission. Raises: Refused."""
    if is_elsewhere(root, status, fence):
        name = root[roots.NODES][status.claim]["name"]
        raise Refused(f"{mission} runs at another node: {name}", field="mission", remedy="Wait for its end.")


def ask_to_stop(root: Root, status: Status, fence: int, word: StatusWord) -> str:
    """Ask the other node that runs a mission to stop it as `word`, and return its name; "" if none runs it."""
    if not is_elsewhere(root, status, fence):
        return ""
    if status.asked != word:
        status.asked = word
    return str(root[roots.NODES][status.claim]["name"])


def unheeded_error(mission: str, node: str, seconds: float) -> Busy:
    """Return the error of a mission that a node has not stopped so many seconds after it was asked to."""
    return Busy(
        f"{mission} runs at another node, which was asked to stop it and has not in {seconds:g} s: {node}",
        field="mission",
        remedy="That node stays asked, and may be at a long call. If its log tells of a full disk or another fault, "
        "end its process; then ask again.",
    )


def requests(root: Root, fence: int) -> dict[str, StatusWord]:
    """Return the missions of a node that others ask it to stop, each with the status that it is to have."""
    found: dict[str, StatusWord] = {}
    for name, status in _running(root, root[roots.NODES][fence]):
        if status.asked and status.claim == fence:
            found[name] = status.asked
    return found


def running_elsewhere(root: Root, fence: int) -> list[str]:
    """Return the missions that other nodes run, or ran when they ended."""
    return [name for other, node in root[roots.NODES].items() if other != fence for name, _ in _running(root, node)]


def left_by_the_dead(root: Root) -> dict[int, list[str]]:
    """Return the missions that nodes had whose leases have ended, by fence, for each that has any claim."""
    return {
        fence: [name for name in node["claims"] if is_claimed(roots.mission_record(root, name).status, fence)]
        for fence, node in root[roots.NODES].items()
        if node["ended"] and node["claims"]
    }


def clear(root: Root, fence: int) -> None:
    """Drop the claims of a node that has ended, and whose missions were settled."""
    root[roots.NODES][fence]["claims"].clear()


async def wait_until_alone(snapshot: Callable[[], AbstractContextManager[Root]], fence: int, seconds: float) -> None:
    """Wait until no other node works on an image that is to be upgraded: it would go on writing the former form.

    A node that died counts until somebody ends its lease. Raises: ImageError: one works on after so many seconds.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        with snapshot() as root:
            others = [each["name"] for other, each in root[roots.NODES].items() if other != fence and not each["ended"]]
        if not others:
            return
        if loop.time() > end:
            what = f"an older version wrote the image, and it is in use at {', '.join(others)}"
            raise ImageError(what, remedy="Stop all other nodes, then start this one again: it upgrades the image.")
        await asyncio.sleep(_PAUSE)


def _running(root: Root, node: Any) -> list[tuple[str, Status]]:
    found = ((name, roots.mission_record(root, name).status) for name in node["claims"])
    return [(name, status) for name, status in found if status.word == "running"]

"""Claims of missions by the numbers of leases, and evidence for missions that are suspected of a process's death."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from persistent.mapping import PersistentMapping

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


#: The counted deaths of its process after which a mission is suspected, and runs alone.
DEATHS: Final = 2


def note_deaths(root: Root, fence: int) -> None:
    """Note the suspected missions that wait now, in the process of this fence; within a change."""
    if roots.SUSPECTED not in root:
        root[roots.SUSPECTED] = PersistentMapping()
    waiting = roots.list_oldest_queued(root)
    root[roots.SUSPECTED][str(fence)] = tuple(name for name, record in waiting if record.status.deaths >= DEATHS)


def drop_notes(root: Root, fence: int) -> None:
    """Drop the note of a process that ends as it should; within a change."""
    if roots.SUSPECTED in root:
        root[roots.SUSPECTED].pop(str(fence), None)


def has_notes_of_dead(root: Root, fence: int) -> bool:
    """Test if a process died that had noted something."""
    return any(True for _ in _notes_of_dead(root, fence))


def acquit(root: Root, fence: int) -> list[str]:
    """Drop the notes of processes that died, and return the missions for which they speak; within a change.

    If no mission ran alone in such a process, those that waited are not the reason of its death: what counts against
    them is forgotten as far as they would have to run alone anew. Do this before deaths are counted.
    """
    acquitted: list[str] = []
    for other, names in list(_notes_of_dead(root, fence)):
        del root[roots.SUSPECTED][other]
        if not any(status.alone for status in _running_statuses(root, int(other))):
            found = ((name, roots.find_record(root, name)) for name in names)
            waited = [(name, each.status) for name, each in found if each is not None and each.status.word == "queued"]
            for name, status in waited:
                if status.deaths > DEATHS:
                    status.deaths = DEATHS
                    acquitted.append(name)
    return acquitted


def _notes_of_dead(root: Root, fence: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the notes of processes that died: of all others on an image that is one process's."""
    for other, names in (root.get(roots.SUSPECTED) or {}).items():
        if fence == 0 or has_ended(root.get(roots.NODES, {}), int(other)):
            yield other, names


def _running_statuses(root: Root, fence: int) -> Iterator[Status]:
    """Yield the statuses of the missions that run according to a process that died."""
    names = root[roots.UNFOLDED] if fence == 0 else root[roots.NODES].get(fence, {"claims": ()})["claims"]
    for name in names:
        record = roots.find_record(root, name)
        if record is not None and record.status.word == "running" and fence in (0, record.status.claim):
            yield record.status

"""What speaks for suspected missions: deaths of processes in which they waited, and none of them ran."""

from __future__ import annotations

from typing import Any

import pytest
from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree, OOTreeSet

from batos.image.nodes import claims
from batos.image.records import Status

#: Two suspected missions, one that is not, and one that runs.
DEATHS = {"m-1": 4, "m-2": 2, "m-3": 1, "m-4": 0}


def made(*, alone: bool = False, claim: int = 0) -> Any:
    """A root in which they stand."""
    statuses = {name: Status("queued", "now") for name in DEATHS}
    for name, status in statuses.items():
        status.deaths = DEATHS[name]
    statuses["m-4"].become("running", "now")
    statuses["m-4"].alone, statuses["m-4"].claim = alone, claim
    queued = OOTreeSet(name for name in DEATHS if name != "m-4")
    missions = OOBTree({name: (None, status, None) for name, status in statuses.items()})
    return {"missions": missions, "queued": queued, "unfolded": OOTreeSet(DEATHS)}


def deaths(root: Any) -> list[int]:
    """What counts against each of them."""
    return [root["missions"][name][1].deaths for name in DEATHS]


@pytest.fixture
def root() -> Any:
    """A root with the note of a process on its own image."""
    found = made()
    claims.note_deaths(found, 0)
    return found


def test_a_death_while_they_waited_speaks_for_them(root: Any) -> None:
    """They run alone all the same, and are not nearer to being parked."""
    assert claims.has_notes_of_dead(root, 0)
    assert claims.acquit(root, 0) == ["m-1"]
    assert deaths(root) == [2, 2, 1, 0]
    assert not claims.has_notes_of_dead(root, 0)
    assert claims.acquit(root, 0) == []


def test_a_death_in_which_one_ran_alone_speaks_for_none() -> None:
    """Two missions that end every process would speak for each other for ever."""
    root = made(alone=True)
    claims.note_deaths(root, 0)
    assert claims.acquit(root, 0) == []
    assert (deaths(root), claims.has_notes_of_dead(root, 0)) == ([4, 2, 1, 0], False)


def test_an_end_speaks_for_nobody(root: Any) -> None:
    """A process that ends as it should drops its note."""
    claims.drop_notes(root, 0)
    assert (claims.acquit(root, 0), deaths(root)) == ([], [4, 2, 1, 0])
    claims.drop_notes({}, 0)


def test_a_mission_that_left_the_queue_is_left(root: Any) -> None:
    """Somebody resumed it, or it is done; another may be gone."""
    root["missions"]["m-1"][1].become("parked", "now")
    del root["missions"]["m-2"]
    assert claims.acquit(root, 0) == []
    assert root["missions"]["m-1"][1].deaths == 4


@pytest.mark.parametrize(("alone", "claim", "expected"), [(False, 1, ["m-1"]), (True, 1, []), (True, 2, ["m-1"])])
def test_on_a_server_each_node_speaks_for_itself(alone: bool, claim: int, expected: list[str]) -> None:
    """What ran alone at another node says nothing of the one that died; a node that lives says nothing."""
    root = made(alone=alone, claim=claim)
    root["nodes"] = IOBTree({1: {"ended": False, "claims": {"m-4"}}, 2: {"ended": False, "claims": {"m-4"}}})
    claims.note_deaths(root, 1)
    assert claims.acquit(root, 2) == []
    assert not claims.has_notes_of_dead(root, 2)
    root["nodes"][1]["ended"] = True
    assert claims.has_notes_of_dead(root, 2)
    assert claims.acquit(root, 2) == expected

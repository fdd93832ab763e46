"""Importing holds the garbage collector back, and what asks without a server loads nothing of sockets."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from batos.cli.imports import pause_collector


def test_the_collector_rests_within_and_works_again_after() -> None:
    """It is off while modules are imported, and on afterwards."""
    with pause_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_works_again_after_a_failed_import() -> None:
    """An import that fails leaves it on."""
    with pytest.raises(ImportError), pause_collector():
        raise ImportError("no such module")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    """Whoever turned it off before finds it off, also within another import."""
    with pause_collector():
        with pause_collector():
            pass
        assert not gc.isenabled()


def test_a_question_without_a_server_loads_no_client() -> None:
    """What `ask` needs to answer by itself has neither sockets nor client in it."""
    code = (
        "import sys, batos.cli.verbs.ask, batos.cli.doors.in_process\n"
        "print(sorted({'zmq', 'batos.client.clients'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"

"""The figures of the house that bench/house.py prints."""

from __future__ import annotations

from pathlib import Path

import house


def test_files_are_those_of_all_packages_but_the_emulator() -> None:
    """What stands in for the daemon is no part of the house, and the readers of model files are."""
    paths = ("src/batos/uvm.py", "src/batos/cli/entry.py", "src/model_files/gguf.py", "src/ollama_emulator/emulator.py")
    assert house.count_files(map(Path, paths)) == 3

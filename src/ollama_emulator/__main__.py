"""Run an emulator until it is told to end, as `python -m ollama_emulator`."""

from __future__ import annotations

from ollama_emulator.command import main

if __name__ == "__main__":
    main()

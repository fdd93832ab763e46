"""`python -m ollama_emulator` runs an emulator until it is told to end."""

from __future__ import annotations

from ollama_emulator.command import main

if __name__ == "__main__":
    main()

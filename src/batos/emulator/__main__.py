"""`python -m batos.emulator` runs an emulator until it is told to end."""

from __future__ import annotations

from batos.emulator.command import main

if __name__ == "__main__":
    main()

"""`python -m batos` is the command `batos`."""

from __future__ import annotations

from batos.cli.entry import main

if __name__ == "__main__":
    main()

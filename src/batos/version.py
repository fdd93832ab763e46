"""The version of BAT OS: of the wheel, of what an image was written by, and of what a server says."""

from __future__ import annotations

__version__ = "0.1.0"

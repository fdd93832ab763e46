"""Methods as they are read, by the image's owner or beside it: listed, shown whole, with their history, as tools."""

from __future__ import annotations

from typing import Any

from batos.cognition import report
from batos.cognition.lives import showing
from batos.image.readable import ReadableImage


class LivesRead:
    """Reads the lives of all methods of one image; each call is a look of its own."""

    def __init__(self, image: ReadableImage) -> None:
        self._image = image

    def slot(self, name: str) -> tuple[str, str]:
        """The holder's reference and the selector of `OBJECT.SELECTOR`, if an intent or method is there; NotFound."""
        with self._image.snapshot() as root:
            return showing.slot(root, name)

    def listed(self, name: str | None = None) -> list[dict[str, Any]]:
        """A line for each slot that ever had a method, of all objects or of one."""
        with self._image.snapshot() as root:
            return showing.listed(root, None if name is None else report.find_object(root, name))

    def tools(self) -> list[dict[str, Any]]:
        """The tools that can be called now."""
        with self._image.snapshot() as root:
            return showing.tools(root)

    def shown(self, name: str, revision: int | None = None) -> dict[str, Any]:
        """The method `OBJECT.SELECTOR` whole, with its active revision or the one that is named; NotFound."""
        with self._image.snapshot() as root:
            return showing.whole(root, showing.found(root, name), revision)

    def history(self, name: str) -> dict[str, Any]:
        """Every revision of `OBJECT.SELECTOR`, and why each came and went; NotFound."""
        with self._image.snapshot() as root:
            return showing.history(root, showing.found(root, name))

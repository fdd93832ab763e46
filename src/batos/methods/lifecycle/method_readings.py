"""Methods as they are read, by the image's owner or beside it: listed, shown whole, with their history, as tools."""

from __future__ import annotations

from typing import Any

from batos.image import whose
from batos.image.lookup import find_object
from batos.image.readable import ReadableImage
from batos.methods.lifecycle import method_reports


class MethodReader:
    """Reads the lives of all methods of one image; each call is a look of its own."""

    def __init__(self, image: ReadableImage) -> None:
        self._image = image

    def slot(self, name: str) -> tuple[str, str]:
        """Return the holder's reference and the selector of `OBJECT.SELECTOR`; NotFound if no such slot is there."""
        with self._image.snapshot() as root:
            return method_reports.locate(root, name)

    def listed(self, name: str | None = None) -> list[dict[str, Any]]:
        """List a line for each slot that ever had a method, of all objects or of one."""
        with self._image.snapshot() as root:
            return method_reports.list_methods(root, None if name is None else find_object(root, name, whose.NOBODY))

    def tools(self) -> list[dict[str, Any]]:
        """List the tools that can be called now."""
        with self._image.snapshot() as root:
            return method_reports.tools(root)

    def shown(self, name: str, revision: int | None = None) -> dict[str, Any]:
        """Show the method `OBJECT.SELECTOR` whole, with its active revision or the named one; NotFound."""
        with self._image.snapshot() as root:
            return method_reports.describe(root, method_reports.find_lineage(root, name), revision)

    def history(self, name: str) -> dict[str, Any]:
        """Return every revision of `OBJECT.SELECTOR`, and why each came and went; NotFound."""
        with self._image.snapshot() as root:
            return method_reports.history(root, method_reports.find_lineage(root, name))

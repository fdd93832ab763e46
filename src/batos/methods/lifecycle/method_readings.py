"""Reading of methods, by the owner of the image or beside it: lists, one method whole, its history, and the tools."""

from __future__ import annotations

from batos.agency.lookup import find_object
from batos.image import ownership
from batos.image.readable import ReadableImage
from batos.methods.lifecycle import method_reports, user_views
from batos.protocol.method_documents import MethodDocument, MethodHistory, MethodLine, ToolLine
from batos.records import wishes


class MethodReader:
    """Reads the methods of one image; each call takes a snapshot of its own.

    A `user` is shown no mission and no person that is not theirs; None sees all.
    """

    def __init__(self, image: ReadableImage) -> None:
        self._image = image

    def slot(self, name: str) -> tuple[str, str]:
        """Return the holder's reference and the selector of `OBJECT.SELECTOR`.

        Raises: NotFound: there is no such slot.
        """
        with self._image.snapshot() as root:
            return method_reports.locate(root, name)

    def list_methods(self, name: str | None = None, user: str | None = None) -> list[MethodLine]:
        """List a line for each slot that ever had a method, of all objects or of one."""
        with self._image.snapshot() as root:
            holder = None if name is None else find_object(root, name, ownership.NOBODY)
            return user_views.lines_for(method_reports.list_methods(root, holder), user)

    def count_wishes(self, name: str | None = None) -> int:
        """Count the methods that are still to be made, of all objects or of one. Raises: NotFound: no such object."""
        with self._image.snapshot() as root:
            return wishes.count(root, None if name is None else find_object(root, name, ownership.NOBODY))

    def tools(self) -> list[ToolLine]:
        """List the tools that can be called now."""
        with self._image.snapshot() as root:
            return method_reports.tools(root)

    def describe(self, name: str, revision: int | None = None, user: str | None = None) -> MethodDocument:
        """Return the description of `OBJECT.SELECTOR`, with its active or the named revision. Raises: NotFound."""
        with self._image.snapshot() as root:
            found = method_reports.describe(root, method_reports.find_lineage(root, name), revision)
            return user_views.document_for(root, found, user)

    def history(self, name: str, user: str | None = None) -> MethodHistory:
        """Return every revision and change of `OBJECT.SELECTOR`, with reasons. Raises: NotFound."""
        with self._image.snapshot() as root:
            lineage = method_reports.find_lineage(root, name)
            return user_views.history_for(lineage, method_reports.history(root, lineage), user)

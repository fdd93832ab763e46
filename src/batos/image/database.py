"""A database that takes nothing it could not load again, or that no commit may leave: each record is checked first."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, Final

from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.POSException import POSKeyError
from ZODB.serialize import referencesf
from ZODB.utils import z64

from batos.errors import Refused
from batos.image.classes import check_record
from batos.image.ids import oid_text
from batos.image.invariants import check_written

#: A possible object id in a record: eight bytes after pickle's code for them. Every reference has one, and a text may
#: contain one. This search takes a fifth of the time of reading a record's references.
_LIKELY: Final = re.compile(rb"C\x08(?=(.{8}))", re.DOTALL)


class _CheckedConnection(Connection):
    """A connection that checks, at the commit, each record that is about to be stored.

    The commit raises ForbiddenClass for a record that could not be loaded, and Refused for one that breaks an
    invariant or refers to an object that is not there.
    """

    #: True if the commit is a mission's: its transaction sets this.
    thought = False

    def _store_objects(self, writer: Any, transaction: Any) -> None:
        serialize, found = writer.serialize, {each._p_oid for each in writer._stack}

        def check_and_serialize(value: Any) -> bytes:
            begin = len(writer._stack)
            record: bytes = serialize(value)
            found.update(each._p_oid for each in writer._stack[begin:])
            check_record(record)
            check_written(value, thought=self.thought)
            self._check_references(value, record, found)
            return record

        writer.serialize = check_and_serialize
        super()._store_objects(writer, transaction)

    def _check_references(self, value: Any, record: bytes, found: Container[bytes]) -> None:
        """Raise Refused for a reference that the record did not have before to an object that the database lacks.

        The database keeps what is new in three places until it is stored; `found` has the objects that serializing came
        upon. An object that is loaded may be gone all the same: a pack removes what nothing refers to and tells no
        connection.
        """
        likely = set(_LIKELY.findall(record))
        if likely and getattr(value, "_p_serial", z64) != z64:
            likely.difference_update(_LIKELY.findall(self._storage.load(value._p_oid)[0]))
        # The places are as large as the commit and a record has few references: these are looked up one by one.
        likely = {oid for oid in likely if not (oid in found or oid in self._creating or oid in self._added)}
        for oid in likely.intersection(referencesf(record)) if likely else ():
            try:
                self._storage.load(oid)
            except POSKeyError:
                what = f"{oid_text(value._p_oid)} would refer to {oid_text(oid)}, which is not there any more"
                raise Refused(what, field="references", remedy="Nothing was written. Ask again.") from None


class LoadableDB(DB):
    """A DB whose connections check what they write."""

    klass = _CheckedConnection

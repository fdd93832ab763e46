"""Read the log database of the program `llm`: each row is a question and its answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from batos.memory.reading.chats import ChatTeller, row_of
from batos.memory.reading.read_text import Emit, NoText, NotReadable, UnreadPart

_ROWS: Final = """
select r.id, r.prompt, r.response, r.datetime_utc, r.conversation_id, c.name as conversation_name
from responses r left join conversations c on c.id = r.conversation_id order by r.conversation_id, r.datetime_utc, r.id
"""


def read(path: Path, emit: Emit) -> None:
    """Read a database, row by row."""
    try:
        _read(path, "mode=ro", emit)
    except sqlite3.OperationalError:
        try:  # a log of writes beside it asks for files, and none are written here
            _read(path, "immutable=1", emit)
        except sqlite3.Error as error:
            raise NotReadable(f"the database cannot be read: {error}") from None
        if path.with_name(f"{path.name}-wal").exists():
            emit(UnreadPart("", "what stands in its write-ahead log is not read: end the programs that use it"))
    except sqlite3.Error as error:
        raise NotReadable(f"the database cannot be read: {error}") from None


def _read(path: Path, way: str, emit: Emit) -> None:
    database = sqlite3.connect(f"file:{quote(str(path))}?{way}", uri=True)
    with closing(database):
        database.row_factory = sqlite3.Row
        database.text_factory = lambda data: data.decode("utf-8", "replace")  # texts may be broken
        database.execute("pragma trusted_schema = off")
        tables = {row["name"] for row in database.execute("select name from sqlite_master where type = 'table'")}
        if not {"responses", "conversations"} <= tables:
            raise NoText("it is a database, and no log of `llm`")
        teller = ChatTeller(emit, "")
        for row in database.execute(_ROWS):
            teller.tell(row_of(dict(row)))

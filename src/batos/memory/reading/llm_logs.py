"""Read the log database of the program `llm`: each row is a question and its answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from batos.memory.reading.chats import ChatTurn, Conversation, row_of
from batos.memory.reading.read_text import Emit, NoText, NotReadable, ReadText, UnreadPart, one_line

_ROWS: Final = """
select r.id, r.prompt, r.response, r.datetime_utc, r.conversation_id, c.name as conversation_name
from responses r left join conversations c on c.id = r.conversation_id order by r.conversation_id, r.datetime_utc, r.id
"""


class _LogDatabase(sqlite3.Connection):
    """A database whose texts may be broken."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.row_factory = sqlite3.Row
        self.text_factory = _decode


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


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
    with closing(sqlite3.connect(f"file:{quote(str(path))}?{way}", uri=True, factory=_LogDatabase)) as database:
        database.execute("pragma trusted_schema = off")
        tables = {row["name"] for row in database.execute("select name from sqlite_master where type = 'table'")}
        if not {"responses", "conversations"} <= tables:
            raise NoText("it is a database, and no log of `llm`")
        for row in database.execute(_ROWS):
            _tell(row_of(dict(row)), emit)


def _tell(conversation: Conversation, emit: Emit) -> None:
    title = conversation.title or one_line(conversation.turns[0].text)[:60]
    for turn in conversation.turns:
        if text := turn.speech:
            emit(_text_of(turn, text, title, conversation.name))


def _text_of(turn: ChatTurn, text: str, title: str, conversation: str) -> ReadText:
    place = "/".join(filter(None, (conversation, turn.name)))
    named = one_line(conversation)
    return ReadText(text, title, "text/plain", one_line(place), "turn", turn.said_at, turn.speaker, named)

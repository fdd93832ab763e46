"""The log database of `llm`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from batos.memory.reading import llm_logs
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.read_text import NotReadable, Read, ReadText, UnreadPart

_TABLES = """
create table conversations (id text primary key, name text, model text);
create table responses (id text primary key, model text, prompt text, system text, response text,
 conversation_id text, datetime_utc text);
insert into conversations values ('c', 'Oil', 'm');
insert into responses values ('r2', 'm', 'And the wick?', null, 'Beside it.', 'c', '2024-05-01T10:01:00');
insert into responses values ('r1', 'm', 'Where is the oil?', null, 'In the cellar.', 'c', '2024-05-01T10:00:00');
insert into responses values ('r3', 'm', 'Alone?', null, null, null, null);
"""


def logs(path: Path, tables: str = _TABLES, mode: str = "delete") -> Path:
    """A database of these tables."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"pragma journal_mode = {mode}")
        database.executescript(tables)
    return path


def read(path: Path) -> list[Read]:
    """All that is read of a file."""
    found: list[Read] = []
    llm_logs.read(path, found.append)
    return found


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_rows_are_questions_and_answers(tmp_path: Path, mode: str) -> None:
    """They come conversation by conversation, in the order in which they were said."""
    found = [each for each in read(logs(tmp_path / "logs.db", mode=mode)) if isinstance(each, ReadText)]
    assert [(each.speaker, each.text) for each in found] == [
        ("user", "Alone?"),
        ("user", "Where is the oil?"),
        ("assistant", "In the cellar."),
        ("user", "And the wick?"),
        ("assistant", "Beside it."),
    ]
    assert (found[2].title, found[2].place, found[2].said_at) == ("Oil", "c/r1/response", "2024-05-01T10:00:00.000Z")


def test_a_database_that_is_in_use_is_read_without_being_written(tmp_path: Path) -> None:
    """What its log of writes holds is either read, or told to be missing."""
    path = logs(tmp_path / "logs.db", mode="wal")
    with closing(sqlite3.connect(path)) as writer, FileTexts(ReadingLimits(2**20)) as texts:
        writer.execute("insert into responses values ('r4', 'm', 'Late?', null, 'Yes.', 'c', null)")
        writer.commit()
        found = list(texts.read(path, "llm_logs"))
        said = {each.text for each in found if isinstance(each, ReadText)}
        assert {"Late?"} <= said or any(isinstance(each, UnreadPart) and "write-ahead" in each.reason for each in found)
        assert {"Where is the oil?"} <= said


def test_strange_names_of_conversations_are_lines(tmp_path: Path) -> None:
    """A name with control characters, or of thousands of letters, is read like that of a chat log: one short line."""
    name = "b\x1b[31m\n" + "c" * 3_000
    path = logs(tmp_path / "logs.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute("update responses set conversation_id = ?, id = id || char(10)", [name])
        database.commit()
    found = [each for each in read(path) if isinstance(each, ReadText)]
    assert len(found) == 5
    for each in found:
        assert each.conversation.startswith("b [31m ccc")
        assert (each.conversation.isprintable(), each.place.isprintable()) == (True, True)
        assert max(len(each.conversation), len(each.place)) <= 1_024


@pytest.mark.parametrize("tables", ["create table t (a)", "create view responses as select 1; create table x (a)"])
def test_another_database_is_told(tmp_path: Path, tables: str) -> None:
    """A database of another program is not read."""
    with pytest.raises(NotReadable, match="no log"):
        read(logs(tmp_path / "a.db", tables))


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    """Bytes behind the right beginning are no database yet."""
    path = tmp_path / "a.db"
    path.write_bytes(b"SQLite format 3\0" + b"lamp" * 500)
    with pytest.raises(NotReadable):
        read(path)

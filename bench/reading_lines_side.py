"""Given files of JSON lines, and logs of the program `llm`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from reading_case_side import GivenFile
from reading_chats_side import START, write_json


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from lines()
    yield from other_lines()
    yield from sessions()
    yield from logs()


def _lines(rows: Sequence[Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def lines() -> Iterator[GivenFile]:
    """Yield files with a JSON value a line."""
    said = [
        {"role": "user", "content": "The chimney of the bakery smokes at noon.", "timestamp": "2023-06-09T11:00:00Z"},
        {"role": "assistant", "content": "Then call sweep Quill.", "timestamp": "2023-06-09T11:00:04Z"},
    ]
    yield GivenFile(
        "jsonl-messages.jsonl",
        "jsonl",
        _lines(said),
        ("The chimney of the bakery smokes at noon.", "Then call sweep Quill.", "2023-06-09"),
    )
    whole = [
        {
            "messages": [
                {"role": "user", "content": f"Where moors the {boat}?"},
                {"role": "assistant", "content": f"The {boat} moors at {quay}."},
            ]
        }
        for boat, quay in (("Sandpiper", "Quay Elm"), ("Curlew", "Quay Ash"))
    ]
    yield GivenFile(
        "jsonl-conversations.jsonl",
        "jsonl",
        _lines(whole),
        ("Where moors the Sandpiper?", "The Curlew moors at Quay Ash."),
    )
    broken = (
        _lines(said).replace(b"bakery", b"tannery").replace(b"sweep Quill", b"sweep Fennimore")
        + b'{"role": "user", "content": "cut o'
    )
    yield GivenFile(
        "jsonl-cut-line.jsonl",
        "jsonl",
        broken,
        ("The chimney of the tannery smokes at noon.", "Then call sweep Fennimore."),
        (("line", "json", "message"),),
    )


def other_lines() -> Iterator[GivenFile]:
    """Yield lines that are cut, or no messages."""
    records = [{"village": f"Aldby-{n}", "wells": n * 7 % 41, "deficit": n * 31 % 503} for n in range(300)]
    yield GivenFile("jsonl-records.jsonl", "jsonl", _lines(records), ("Aldby-0", "Aldby-299"))
    shared = [
        {
            "conversations": [
                {"from": "human", "value": "Which bell cracked at Dom?"},
                {"from": "gpt", "value": "The bell Gloriosa cracked at Dom."},
            ]
        }
    ]
    yield GivenFile(
        "jsonl-shared.ndjson",
        "jsonl",
        _lines(shared),
        ("Which bell cracked at Dom?", "The bell Gloriosa cracked at Dom."),
    )


def sessions() -> Iterator[GivenFile]:
    """Yield the export of a chat in llama.cpp: a session, then its messages, with a branch that was not chosen."""
    said = [
        ("m0", None, ["m1"], "system", ""),
        ("m1", "m0", ["m2", "m3"], "user", "How long dries peat on Islay?"),
        ("m2", "m1", [], "assistant", "Peat dries in one hour, surely."),
        ("m3", "m1", ["m4"], "assistant", "Peat on Islay dries for 5 weeks."),
        ("m4", "m3", [], "user", "Good, then it is ready by Lammas."),
    ]
    rows: list[Any] = [
        {"harness": "llama.cpp", "type": "session", "id": "w1", "name": "Peat", "currNode": "m4", "lastModified": START}
    ]
    for at, (name, parent, children, role, content) in enumerate(said):
        message: dict[str, Any] = {
            "convId": "w1",
            "id": name,
            "parent": parent,
            "children": children,
            "role": role,
            "content": content,
        }
        message |= {"type": "root" if parent is None else "text", "timestamp": START * 1000 + at}
        rows.append({"message": message, "type": "message"})
    yield GivenFile(
        "jsonl-session.jsonl",
        "jsonl",
        _lines(rows),
        ("How long dries peat on Islay?", "Peat on Islay dries for 5 weeks.", "Good, then it is ready by Lammas."),
        (),
        ("in one hour, surely", "convId"),
    )


_TABLES: Final = (
    "CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT)",
    (
        "CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT,"
        " options_json TEXT, response TEXT, response_json TEXT, conversation_id TEXT REFERENCES conversations(id),"
        " duration_ms INTEGER, datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT,"
        " schema_id TEXT, resolved_model TEXT)"
    ),
    "CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB)",
)


def database(rows: Sequence[tuple[str, str, str]], tables: Sequence[str] = _TABLES) -> bytes:
    """Return the log of `llm`: for each row a day, a prompt and its answer."""
    with closing(sqlite3.connect(":memory:")) as base:
        for each in tables:
            base.execute(each)
        base.execute("INSERT INTO conversations VALUES ('k', 'First words', 'mistral')")
        for number, (day, prompt, answer) in enumerate(rows):
            base.execute(
                "INSERT INTO responses (id, model, prompt, response, conversation_id, datetime_utc) VALUES (?,"
                " 'mistral', ?, ?, 'k', ?)",
                (f"01j{number:03}", prompt, answer, f"{day}T09:00:0{number}.000000+00:00"),
            )
        base.commit()
        return base.serialize()


def logs() -> Iterator[GivenFile]:
    """Yield logs of `llm`, as its database and as its JSON."""
    rows = [
        ("2024-10-03", "Which glue holds slate?", "Use lime putty for slate."),
        ("2024-10-04", "And for the gutter of lead?", "Solder the lead gutter instead."),
    ]
    yield GivenFile(
        "llm-logs.db",
        "llm",
        database(rows),
        ("Which glue holds slate?", "Solder the lead gutter instead.", "2024-10-03"),
    )
    old = (*_TABLES[:1], _TABLES[1].partition(", input_tokens")[0] + ")")
    yield GivenFile(
        "llm-old-logs.db",
        "llm",
        database([("2023-09-12", "Name a knot for silk.", "The surgeon's loop of Kyoto.")], old),
        ("Name a knot for silk.", "The surgeon's loop of Kyoto."),
    )
    printed: list[dict[str, Any]] = [
        {
            "id": "01k1",
            "model": "mistral",
            "prompt": "How is rye sown at Viljandi?",
            "system": None,
            "prompt_json": None,
            "options_json": {},
            "response": "By hand, 14 stone to the acre.",
            "response_json": None,
            "conversation_id": "k7",
            "duration_ms": 900,
            "datetime_utc": "2024-11-20T08:00:00",
            "conversation_name": "Rye",
            "conversation_model": "mistral",
            "attachments": [],
        }
    ]
    yield GivenFile(
        "llm-printed.json",
        "llm",
        write_json(printed),
        ("How is rye sown at Viljandi?", "By hand, 14 stone to the acre.", "2024-11-20"),
        (),
        ("duration_ms",),
    )
    yield GivenFile("llm-other.db", "llm", _other(), (), (("table", "log", "llm", "database", "not"),))


def _other() -> bytes:
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE stock (item TEXT)")
        base.execute("INSERT INTO stock VALUES ('nine kegs of tallow')")
        base.commit()
        return base.serialize()

"""Texts that people ask for, long, alike and none of them without end; and a cut as tokenizers make it."""

from __future__ import annotations

import re


def pieces_of(text: str) -> list[str]:
    """Cut a text as tokenizers do: words with the blank before them, numbers by up to three digits, rules whole."""
    return re.findall(r" ?[^\W\d_]+|[0-9]{1,3}| ?[-=_*#A]{2,16}| ?\||\s+|.", text, re.DOTALL)


#: What people ask for: long, alike, and none of it without end.
HONEST = {
    "rows for a test": [
        f'{{"id": {n}, "name": "User {n}", "email": "user{n}@example.com", "active": true}},\n' for n in range(1, 61)
    ],
    "numbers to five hundred": [f"{n}, " for n in range(1, 501)],
    "seats": [f"Seat {n}\n" for n in range(1, 121)],
    "a table of squares": [f"| {n} | {n * n} |\n" for n in range(1, 900)],
    "a table of measurements": [f"2026-01-{n % 28 + 1:02d},{n * 7919 % 97}.{n * 31 % 10},ok\n" for n in range(900)],
    "a list of words": [f"{n}. {''.join(chr(97 + (n * k) % 26) for k in (3, 5, 7, 11))}\n" for n in range(600)],
    "an empty form": ["| ______ | ______ | ______ | ______ |\n"] * 4,
    "a rule": ["Part one\n", "----------------" * 5, "\n", "=" * 64, "\n"],
    "the head of a table": ["| a | b | c | d | e | f |\n", "| --- " * 6, "|\n", "| 1 | 2 | 3 | 4 | 5 | 6 |\n"],
    "equal values": ['{"row": [0, 0, 0, 0, 0, 0], "next": [1, 1, 1, 1, 1], "nulls": [null, null, null, null]}'],
    "zeros": ["AAAAAAAAAAAAAAAA" * 3, "BAAAAGCAAAAAAAAAAAAB", "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgK"],
    "indented code": [
        "def f():\n",
        "    for a in b:\n",
        "        for c in a:\n",
        "            c.close()\n" * 3,
        "    return\n",
    ],
    "brackets": ["        }\n", "      }\n", "    }\n", "  }\n", "}\n"],
    "Chinese": ["守灯人每四小时上一次发条。", "大雾之夜，他亲手敲钟。" * 3, "人人都说：好，好，好，好。"],
    "laughter": ["He said: ha ha ha ha ha ha! Then: no, no, no, no. And: very, very, very good.\n"],
    "numbers by name": [f"{n:04d} " for n in range(0, 400, 7)],
    "code": [f"    case {n}:\n        return {n * n % 251};\n" for n in range(256)],
    "a refrain": [f"Verse {n}\n" + "Row, row, row your boat, gently down the stream.\n" * 4 for n in range(11)],
}

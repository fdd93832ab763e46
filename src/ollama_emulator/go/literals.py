"""Constants of Go templates: the text of a quoted string, and the value of a number."""

from __future__ import annotations

import ast
import re

_BYTE = re.compile(r"\\(?:([0-7]{3})|x([0-9a-fA-F]{2}))")
_INT = re.compile(r"[+-]?(0[xX][\da-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[\d_]+)\Z")


def unescape(body: str) -> str:
    """Return the text between a string's quotes without its escapes, which the caller has checked."""
    if "\\" not in body:
        return body
    body = _BYTE.sub(lambda found: f"\\x{int(found[1], 8) & 255:02x}" if found[1] else f"\\x{found[2]}", body)
    try:
        return str(ast.literal_eval('"' + body.replace('\\"', '"').replace('"', '\\"').replace("\n", "\\n") + '"'))
    except (SyntaxError, ValueError):
        return body


def number(text: str) -> int | float | complex | None:
    """Return the value of a number in Go's syntax, or None if the text is no number."""
    try:
        if text.endswith("i"):
            return complex(text[:-1] + "j")
        if _INT.match(text):
            sign = -1 if text.startswith("-") else 1
            bare = text.lstrip("+-")
            if bare.isdigit() and len(bare) > 1 and bare.startswith("0"):
                bare = "0o" + bare[1:]
            return sign * int(bare, 0)
        if "0x" in text.lower():
            return float.fromhex(text)
        return float(text)
    except (ValueError, OverflowError):
        return None

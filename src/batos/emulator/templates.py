"""Go templates as far as the emulator needs them: whether one parses, and which fields it uses."""

from __future__ import annotations

import re
from typing import Any

from batos.emulator import chatformats

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_BLOCKS = ("if", "range", "with", "block", "define")


def fault(text: str) -> str:
    """What Go's parser finds wrong with a template, or nothing."""
    depth = 0
    at = 0
    while (start := text.find("{{", at)) >= 0:
        line = text.count("\n", 0, start) + 1
        end = text.find("}}", start)
        if end < 0:
            return f"template: :{line}: unclosed action"
        found = _ACTION.match(text, start)
        words = found[1].split() if found else []
        if not words:
            return f"template: :{line}: missing value for command"
        if words[0] in _BLOCKS:
            depth += 1
        elif words[0] == "end":
            depth -= 1
            if depth < 0:
                return f"template: :{line}: unexpected {{{{end}}}}"
        at = end + 2
    return "template: :1: unexpected EOF" if depth else ""


def detect(chat_template: str) -> tuple[str, str, dict[str, Any]] | None:
    """What create does with weights that carry a chat template: the name, Go template and parameters it is given."""
    found = chatformats.nearest(chat_template) if chat_template else None
    if found is None:
        return None
    return found.name, found.template, {"stop": list(found.stop)} if found.stop else {}

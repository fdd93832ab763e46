"""Requests for code as BAT OS makes them (docs/generation.md), and what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: Characters of each field of a check, at most.
MOST = {"arguments": 120, "before": 120, "replies": 240, "result": 240, "slots": 120}
_CHECK = {
    "type": "object",
    "properties": {name: {"type": "string", "maxLength": most} for name, most in MOST.items()},
    "required": list(MOST),
}
_CHECKS = {"type": "array", "minItems": 2, "maxItems": 3, "items": _CHECK}
_SOURCE = {"type": "string", "maxLength": 1999}

#: What the reply to a request for one method has to be.
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {"checks": _CHECKS, "source": _SOURCE},
    "required": ["checks", "source"],
}
#: The same for a whole prototype, with letters that order the keys.
FORM_OF_MANY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "a_methods": {
            "type": "array",
            "minItems": 1,
            "maxItems": 8,
            "items": {
                "type": "object",
                "properties": {
                    "a_selector": {"type": "string", "maxLength": 64},
                    "b_source": _SOURCE,
                    "c_checks": _CHECKS,
                },
                "required": ["a_selector", "b_source", "c_checks"],
            },
        }
    },
    "required": ["a_methods"],
}

GUIDE = """
Explain with the erudition of a travel guide that has been everywhere and kept the receipts.
Be precise where it counts. "No more than one detour", it says.
"""


def asking(
    signature: str, intent: str, slots: Sequence[str] = (), kind: str = "method", name: str = ""
) -> list[dict[str, str]]:
    """The messages of a request for one method."""
    parts = {
        "Owner": "You are BRICK.\nDeconstruction: take the problem apart.",
        "Receiver": "brick_prototype_obj",
        "Selector": signature.partition("(")[0],
        "Signature": signature,
        "Kind": kind,
        "Name": name,
        "Arguments": "str",
        "Intent": intent.strip(),
        "Slots": "\n".join(f"- {slot}" for slot in slots),
        "Task": "Write it, and two checks.",
    }
    told = [f"{head}:{_space(text)}{text}" for head, text in parts.items() if text]
    system = "You write one method for an object of BAT OS.\nIntent: not this line."
    return [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(told)}]


def _space(text: str) -> str:
    return "\n" if "\n" in text or text.startswith("-") else " "


def decoded(reply: str) -> tuple[str, list[dict[str, Any]]]:
    """The source of a reply and its checks, their JSON read."""
    found = json.loads(reply)
    return found["source"], [
        {name: json.loads(text) if text else None for name, text in check.items()} for check in found["checks"]
    ]

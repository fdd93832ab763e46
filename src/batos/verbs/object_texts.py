"""The texts of `inspect`: the names of the root, an object with its slots, the text of a slot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from batos.protocol.image_documents import InspectedDocument, RootNames
from batos.terminal.console import count_text
from batos.terminal.layout import table, wrap

#: Characters of a slot's value on its line.
_LINE: Final = 200


def inspected_text(found: InspectedDocument | RootNames) -> str:
    """Write what was looked at: the root, a slot, an object, or one that is declared and absent."""
    if "objects" in found:
        return "\n".join(_root(found))
    if "slot" in found:
        return "\n".join(_slot(found))
    if "api" in found:
        head = f"object   {found['object']}, declared: the first message makes it"
        return "\n".join([head, "", wrap(str(found["api"]))])
    return "\n".join(_object(found))


def _root(found: RootNames) -> Iterator[str]:
    rows = [[name, str(oid)] for name, oid in found["objects"].items()]
    rows += [[name, "declared, not made yet" if oid is None else str(oid)] for name, oid in found["declared"].items()]
    yield table(rows, ("object", "reference")) if rows else "There is no object yet: `batos genesis` makes them."
    records = ", ".join(f"{count:,} {name}" for name, count in found["records"].items() if count)
    yield f"\nrecords  {records or 'none'}"


def _object(found: InspectedDocument) -> Iterator[str]:
    yield f"object   {found['object']} ({found['oid']})"
    yield f"parents  {', '.join(found['parents']) or 'none'}"
    yield ""
    yield table([[name, *_describe(value)] for name, value in sorted(found["slots"].items())], ("slot", "kind", "what"))
    yield ""
    yield f"`batos inspect {found['object']}.SLOT` shows one whole, --json or -v everything."


def _describe(value: object) -> tuple[str, str]:
    """Return the kind of a slot's value, and the value on one line."""
    if isinstance(value, str):
        return "text", _short(value)
    method, intent = _part(value, "method"), _part(value, "intent")
    if method is not None:
        return "method", _short(method.get("intent", ""))
    if intent is not None:
        return str(intent.get("kind") or "intent"), _short(f"{intent.get('name') or 'intent'}: {intent['text']}")
    if isinstance(value, Mapping):
        return "map", count_text(len(value), "key")
    if isinstance(value, list):
        return "list", _short(", ".join(each if isinstance(each, str) else json.dumps(each) for each in value))
    return "value", _short(json.dumps(value, ensure_ascii=False))


def _part(value: object, kind: str) -> Mapping[str, object] | None:
    """Return the method or the intent that a slot holds, if it does: a map may have such a key of its own."""
    found = value.get(kind) if isinstance(value, Mapping) and len(value) == 1 else None
    text = {"method": "source", "intent": "text"}[kind]
    return found if isinstance(found, Mapping) and text in found else None


def _short(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 3]}..."


def _slot(found: InspectedDocument) -> Iterator[str]:
    value = found["value"]
    own = found["holder"] == found["object"] or str(found["holder"]).startswith("oid:")
    where = "" if own else f", from {found['holder']}"
    yield f"slot     {found['object']}.{found['slot']}{where}"
    method, intent = _part(value, "method"), _part(value, "intent")
    if method is not None:
        yield f"method   made for: {_short(method.get('intent', ''))}"
        yield f"\n{str(method['source']).rstrip()}\n"
        yield f"`batos method show {found['object']}.{found['slot']}` shows its verdict, checks and ledger."
    elif intent is not None:
        yield from _intent(intent)
    else:
        yield ""
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _intent(intent: Mapping[str, Any]) -> Iterator[str]:
    heads = {"name": "intent", "signature": "called", "inspiration": "after"}
    yield from (f"{head.ljust(8)} {intent[name]}" for name, head in heads.items() if intent.get(name))
    yield ""
    yield wrap(str(intent["text"]))
    if intent.get("examples"):
        yield ""
        yield from (f"  - {each}" for each in intent["examples"])

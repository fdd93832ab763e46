"""The functions that a template may call: those of Go's text/template and those that the daemon adds."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote_plus

from ollama_emulator.go.go_values import StructValue, format_value, marshal, true, type_name
from ollama_emulator.go.lex import quote

LONGEST = 1 << 20  # characters of the result of one call or one template
_DAY = 24 * 3600
_VERB = re.compile(r"%([-+# 0]*)(\d+)?(?:\.(\d+))?(.)", re.DOTALL)
_MISMATCH = "incompatible types for comparison"
_NO_TYPE = "invalid type for comparison"
_JS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


class Wrong(Exception):
    """The error of a template's function about its arguments, in Go's words."""


def _kind(value: Any) -> str:
    """Return the kind of a value for comparisons, "" for nil."""
    for kind in (bool, int, float, complex, str):
        if isinstance(value, kind):
            return kind.__name__
    return "" if value is None else "other"


def equal(first: Any, *others: Any) -> bool:
    """Compute `eq`: return whether the first argument equals one of the others.

    Raises: Wrong: they cannot be compared.
    """
    if not others:
        raise Wrong("missing argument for comparison")
    kind = _kind(first)
    for other in others:
        if kind != _kind(other):
            if first is not None and other is not None:
                raise Wrong(_MISMATCH)
        elif kind == "other":
            shown = f"{format_value(first)}: {type_name(first)}, {type_name(other)}: {format_value(other)}"
            raise Wrong(f"non-comparable types {shown}")
        elif first == other:
            return True
    return False


def less(one: Any, two: Any) -> bool:
    """Compute `lt`: return whether `one` comes before `two`.

    Raises: Wrong: they are no numbers or strings of one type.
    """
    for value in (one, two):
        if _kind(value) not in ("int", "float", "str"):
            raise Wrong(_NO_TYPE)
    if _kind(one) != _kind(two):
        raise Wrong(_MISMATCH)
    return bool(one < two)


def length(value: Any) -> int:
    """Compute `len`: return the bytes of a string or the items of a container.

    Raises: Wrong: the value has no length.
    """
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list | dict):
        return len(value)
    raise Wrong("len of untyped nil" if value is None else f"len of type {type_name(value)}")


def index(value: Any, *steps: Any) -> Any:
    """Compute `index`: follow keys and positions into a container and return the item. Raises: Wrong: there is none."""
    if value is None:
        raise Wrong("index of untyped nil")
    for step in steps:
        if isinstance(value, dict):
            if not isinstance(step, str):
                raise Wrong(f"value has type {type_name(step)}; should be string")
            value = value.get(step)
        elif isinstance(value, list | str):
            value = _item(value, step)
        else:
            raise Wrong("index of nil pointer" if value is None else f"can't index item of type {type_name(value)}")
    return value


def _item(value: Any, step: Any) -> Any:
    """Return an item of a list, or a byte of a string. Raises: Wrong: the index is invalid."""
    if step is None:
        raise Wrong("cannot index slice/array with nil")
    if not isinstance(step, int) or isinstance(step, bool):
        raise Wrong(f"cannot index slice/array with type {type_name(step)}")
    items = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    if not 0 <= step < len(items):
        raise Wrong(f"index out of range: {step}")
    return items[step]


def slice_value(value: Any, *ends: Any) -> Any:
    """Compute `slice`: return the part of a string or a list between the given ends. Raises: Wrong: there is none."""
    if value is None:
        raise Wrong("slice of untyped nil")
    if len(ends) > 3:
        raise Wrong(f"too many slice indexes: {len(ends)}")
    if not isinstance(value, str | list):
        raise Wrong(f"can't slice item of type {type_name(value)}")
    if isinstance(value, str) and len(ends) == 3:
        raise Wrong("cannot 3-index slice a string")
    items: Any = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    bounds = [0, len(items)]
    for at, end in enumerate(ends[:2]):
        if not isinstance(end, int) or isinstance(end, bool):
            raise Wrong(f"cannot index slice/array with type {type_name(end)}")
        if not 0 <= end <= len(items):
            raise Wrong(f"index out of range: {end}")
        bounds[at] = end
    if bounds[0] > bounds[1]:
        raise Wrong(f"invalid slice index: {bounds[0]} > {bounds[1]}")
    part = items[bounds[0] : bounds[1]]
    return part.decode("utf-8", "replace") if isinstance(value, str) else [*part]


def sprint(*values: Any) -> str:
    """Compute `print`: join the arguments as fmt.Sprint does, with a blank between two that are not strings."""
    text = ""
    for at, value in enumerate(values):
        if at and not isinstance(value, str) and not isinstance(values[at - 1], str):
            text += " "
        text += format_value(value)
    return text


def sprintf(form: Any, *values: Any) -> str:
    """Compute `printf`: fill in a format as fmt.Sprintf does, with the verbs that templates use.

    Raises: Wrong: `form` is no string, or the result is too long.
    """
    if not isinstance(form, str):
        raise Wrong(f"wrong type for value; expected string; got {type_name(form)}")
    given = iter(values)
    left, room = len(values), LONGEST

    def write(found: re.Match[str]) -> str:
        nonlocal left, room
        flags, width, places, verb = found.groups()
        if verb == "%":
            return "%"
        if left == 0:
            return f"%!{verb}(MISSING)"
        left -= 1
        if int(width or 0) > LONGEST or int(places or 0) > 1000:
            raise Wrong("width out of range")
        room -= int(width or 0)
        if room < 0:
            raise Wrong("width out of range")
        text = _verb(verb, next(given), flags, places)
        filled = "0" if "0" in flags and "-" not in flags and verb in "dfgex" else " "
        return text.ljust(int(width or 0)) if "-" in flags else text.rjust(int(width or 0), filled)

    text = _VERB.sub(write, form)
    extra = list(given)
    if extra:
        text += "%!(EXTRA " + ", ".join(f"{type_name(value)}={format_value(value)}" for value in extra) + ")"
    return text


def _verb(verb: str, value: Any, flags: str, places: str | None) -> str:
    """Return one value as a verb of fmt.Sprintf prints it; `places` is the precision as written."""
    plus = "+" if "+" in flags else ""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if verb in "sv":
        return format_value(value)[: int(places)] if places is not None and verb == "s" else format_value(value)
    if verb == "T":
        return type_name(value)
    if verb == "t" and isinstance(value, bool):
        return format_value(value)
    if isinstance(value, str) and verb in "qxX":
        digits = value.encode("utf-8", "surrogatepass").hex()
        return quote(value) if verb == "q" else digits.upper() if verb == "X" else digits
    if whole and verb == "c":
        return chr(value) if 0 <= value < 0x110000 else "\ufffd"
    if whole and verb in "dxXob":
        return f"{value:{plus}{verb}}"
    if isinstance(value, float) and verb in "fFgGeE":
        return f"{value:{plus}.{places or 6}{verb}}" if places or verb in "fFeE" else format_value(value)
    return f"%!{verb}({type_name(value)}={format_value(value)})"


def _html(*values: Any) -> str:
    text = html.escape(sprint(*values), quote=True)
    return text.replace("&quot;", "&#34;").replace("&#x27;", "&#39;").replace("\x00", "\ufffd")


def _js(*values: Any) -> str:
    return "".join(_JS.get(letter, letter) for letter in sprint(*values))


def _typescript(value: Any) -> str:
    """Compute `toTypeScriptType`: return the TypeScript type of a tool's property, `any` for another value."""
    if not isinstance(value, StructValue) or "AnyOf" not in value.fields:
        return "any"
    parts = value.fields["AnyOf"]
    if parts:
        return " | ".join(_typescript(part) for part in parts)
    named = {"integer": "number", "array": "any[]", "object": "Record<string, any>"}
    plain = ("string", "number", "boolean", "null")
    kinds = value.fields["Type"]
    return " | ".join(named.get(kind, kind if kind in plain else "any") for kind in kinds) or "any"


def _refuse_call(value: Any, *_: Any) -> Any:
    """Refuse `call`: templates are given no functions as values."""
    raise Wrong("call of nil" if value is None else f"non-function of type {type_name(value)}")


def day(back: int = 0) -> str:
    """Return the date `back` days ago as YYYY-MM-DD, in this machine's time zone."""
    return time.strftime("%Y-%m-%d", time.localtime(time.time() - back * _DAY))


def _date_function(back: int) -> Callable[..., str]:
    """Return a template's function for the date `back` days ago."""

    def date(*forms: Any) -> str:
        for form in forms:
            if not isinstance(form, str):
                raise Wrong(f"wrong type for value; expected string; got {type_name(form)}")
        return day(back)

    return date


def _not(value: Any) -> bool:
    return not true(value)


_Entry = tuple[Callable[..., Any], int, int | None]
_ANY = None
#: Go's own functions by name: the function, the fewest and the most arguments.
OWN: dict[str, _Entry] = {
    "eq": (equal, 1, _ANY),
    "ne": (lambda one, two: not equal(one, two), 2, 2),
    "lt": (less, 2, 2),
    "le": (lambda one, two: less(one, two) or equal(one, two), 2, 2),
    "gt": (lambda one, two: not less(one, two) and not equal(one, two), 2, 2),
    "ge": (lambda one, two: not less(one, two), 2, 2),
    "not": (_not, 1, 1),
    "len": (length, 1, 1),
    "index": (index, 1, _ANY),
    "slice": (slice_value, 1, _ANY),
    "print": (sprint, 0, _ANY),
    "printf": (sprintf, 1, _ANY),
    "println": (lambda *values: " ".join(format_value(value) for value in values) + "\n", 0, _ANY),
    "html": (_html, 0, _ANY),
    "js": (_js, 0, _ANY),
    "urlquery": (lambda *values: quote_plus(sprint(*values)), 0, _ANY),
    "call": (_refuse_call, 1, _ANY),
}
#: The functions that the daemon adds.
ADDED: dict[str, _Entry] = {
    "json": (marshal, 1, 1),
    "currentDate": (_date_function(0), 0, _ANY),
    "yesterdayDate": (_date_function(1), 0, _ANY),
    "toTypeScriptType": (_typescript, 1, 1),
}


def call(name: str, values: Sequence[Any], own_only: bool) -> Any:
    """Call a template's function by name and return its result. With `own_only` only Go's own functions are known.

    Raises: Wrong: the function is unknown, or refuses its arguments.
    """
    entry = OWN.get(name) or (None if own_only else ADDED.get(name))
    if entry is None:
        raise Wrong(f"{quote(name)} is not a defined function")
    function, fewest, most = entry
    if most is None and len(values) < fewest:
        raise Wrong(f"wrong number of args for {name}: want at least {fewest} got {len(values)}")
    if most is not None and len(values) != most:
        raise Wrong(f"wrong number of args for {name}: want {most} got {len(values)}")
    if sum(len(value) for value in values if isinstance(value, str)) > LONGEST:
        raise Wrong(f"the emulator gives {name} no more than {LONGEST} characters")
    try:
        return function(*values)
    except Wrong as wrong:
        text = str(wrong)
        raise Wrong(text if text.startswith("wrong type") else f"error calling {name}: {text}") from None
    except (ValueError, OverflowError) as fault:
        raise Wrong(f"error calling {name}: {fault}") from None

"""The payloads of effects: what a message to a capability may ask for, checked before anything is staged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from batos.protocol.errors import ObjectError

#: The most characters of a text that is appended, and of data that is posted, as JSON.
MOST_TEXT: Final = 64 * 1024
#: The most characters of a path below a granted folder, and the most folders in it.
MOST_PATH, MOST_FOLDERS = 512, 8
#: The longest name of a file or folder, in bytes.
_LONGEST_NAME: Final = 255
#: Names of files from which builds, packagers and systems take orders, in small letters.
_ORDERS: Final = frozenset(
    "makefile gnumakefile cmakelists.txt justfile rakefile gemfile procfile vagrantfile jenkinsfile dockerfile"
    " containerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml package.json composer.json"
    " cargo.toml build.rs pyproject.toml setup.py setup.cfg tox.ini noxfile.py conftest.py pytest.ini"
    " sitecustomize.py usercustomize.py pom.xml build.gradle settings.gradle build.xml meson.build authorized_keys"
    " crontab autorun.inf autoexec.bat desktop.ini node_modules __pycache__ cron.d init.d systemd launchagents startup"
    " batos.toml modelfile".split()
)
#: Endings of programs, scripts, and files that start one.
_PROGRAMS: Final = tuple(
    ".exe .com .bat .cmd .ps1 .psm1 .vbs .vbe .wsf .wsh .scr .msi .reg .lnk .url .hta .cpl .jar .app .command .sh .bash"
    " .zsh .fish .csh .ksh .py .pyw .pyc .pyd .pth .pl .rb .php .js .mjs .cjs .ts .lua .so .dll .dylib .desktop"
    " .service .timer .socket .path .mount .plist .rules .mk .cmake .gradle".split()
)


def append_payload(args: Sequence[object]) -> dict[str, object]:
    """Return the payload of `append_(path, text)`: {path, text}; a text that ends without a line break gets one.

    Raises: ObjectError: an argument is wrong.
    """
    payload, text = _file_payload("append_", args)
    return payload if text.endswith("\n") else {**payload, "text": f"{text}\n"}


def write_payload(args: Sequence[object]) -> dict[str, object]:
    """Return the payload of `write_(path, text)`: {path, text}, the whole text of a new file.

    Raises: ObjectError: an argument is wrong.
    """
    return _file_payload("write_", args)[0]


def _file_payload(selector: str, args: Sequence[object]) -> tuple[dict[str, object], str]:
    if len(args) != 2:
        raise ObjectError(f"`{selector}` takes a path below its folder, and a text")
    path, text = args
    if not isinstance(text, str) or not text:
        raise ObjectError(f"`{selector}` takes its text as a text that is not empty")
    if len(text) > MOST_TEXT:
        raise ObjectError(f"`{selector}` takes a text of at most {MOST_TEXT:,} characters, not {len(text):,}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ObjectError(f"`{selector}`: the text is not valid Unicode text") from None
    return {"path": "/".join(path_parts(path, selector)), "text": text}, text


def path_parts(path: object, selector: str = "append_") -> list[str]:
    """Return the names in a path below a folder.

    Raises: ObjectError: it leaves the folder, or has a name that no file may have.
    """
    if not isinstance(path, str) or not path.strip():
        raise ObjectError(f"`{selector}` takes a path as a text that is not empty")
    parts = path.split("/")
    if len(path) > MOST_PATH or len(parts) > MOST_FOLDERS:
        raise ObjectError(f"`{selector}` takes a path of at most {MOST_PATH} characters and {MOST_FOLDERS} names")
    for part in parts:
        if part in ("", ".", ".."):
            raise ObjectError(f"`{selector}`: {path[:80]!r} is not a plain path below the granted folder")
        if is_order(part):
            raise ObjectError(f"`{selector}`: {part[:80]!r} is hidden, or a program may take orders from it")
        if not part.isprintable() or len(part.encode("utf-8", "replace")) > _LONGEST_NAME:
            raise ObjectError(f"`{selector}`: {part[:80]!r} is no name of a file")
    return parts


def is_order(name: str) -> bool:
    """Test if a file or folder of this name is hidden, or one that a shell, a build or a system takes orders from.

    >>> is_order(".git"), is_order("Makefile"), is_order("run.sh"), is_order("notes.txt")
    (True, True, True, False)
    """
    folded = name.rstrip(". ").casefold()  # some systems leave these out
    return name.startswith(".") or folded in _ORDERS or folded.endswith(_PROGRAMS)


def post_payload(args: Sequence[object]) -> dict[str, object]:
    """Return the payload of `post_(data)`: {data}, any plain data as JSON.

    Raises: ObjectError: an argument is wrong.
    """
    if len(args) != 1:
        raise ObjectError("`post_` takes one argument: the data that is posted as JSON")
    try:
        text = json.dumps(args[0], ensure_ascii=False, allow_nan=False, sort_keys=True)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise ObjectError("`post_` takes plain data: text, numbers, lists, objects") from None
    if len(text) > MOST_TEXT:
        raise ObjectError(f"`post_` takes at most {MOST_TEXT:,} characters of JSON, not {len(text):,}")
    return {"data": json.loads(text)}


def call_payload(args: Sequence[object]) -> dict[str, object]:
    """Return the payload of `call_(tool, arguments)`: {tool, arguments}. Raises: ObjectError: an argument is wrong."""
    tool, given = (*args, None, None)[:2]
    if len(args) != 2 or not isinstance(tool, str) or not isinstance(given, Mapping):
        raise ObjectError("`call_` takes the name of a tool, and its arguments as an object")
    return {"tool": tool, "arguments": post_payload([dict(given)])["data"]}


_PAYLOADS: Final[Mapping[str, Callable[[Sequence[object]], dict[str, object]]]] = {
    "effect.append": append_payload,
    "effect.write": write_payload,
    "effect.post": post_payload,
    "effect.call": call_payload,
}


def payload_of(operation: str, args: Sequence[object]) -> Mapping[str, object]:
    """Return the payload of a kernel's function for effects. Raises: ObjectError: an argument is wrong."""
    return _PAYLOADS[operation](args)


def describe(operation: str, payload: Mapping[str, Any]) -> str:
    """Describe an effect in a line for people; of an erased one nothing is known."""
    if not payload:
        return "something that was erased"
    if operation in ("effect.append", "effect.write"):
        does, where = ("append", "") if operation == "effect.append" else ("write", "the new file ")
        return f"{does} {len(payload['text'].encode()):,} bytes to {where}{payload['path']}"
    if operation in ("tool.call", "effect.call"):
        text = json.dumps(payload["arguments"], ensure_ascii=False)
        return f"call {payload['tool']} {text if len(text) <= 60 else f'{text[:59]}…'}"
    text = json.dumps(payload["data"], ensure_ascii=False)
    return f"post {text if len(text) <= 60 else f'{text[:59]}…'}"

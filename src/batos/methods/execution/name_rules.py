"""Names that a method may send or write, looked at again on the kernel's side, whatever the guardian has said."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from batos.errors import MethodFailed
from batos.image.protection import protected
from batos.methods.execution.plain_data import is_record
from batos.methods.execution.write_buffer import WriteBuffer
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, is_reserved, label

#: Characters of a name.
LONGEST: Final = 128

#: Never sent and never written, in any spelling: the object model's own, and what makes or changes behaviour.
_NEVER = re.compile(
    r"^_|^parents?\*?$|guardian|does_?not_?understand|"
    r"^(?:un)?install_|^re_?parent|^(?:become|clone|eval|exec|compile)_?$",
    re.IGNORECASE,
)


def check_selector(selector: object) -> str:
    """A selector that a method may send; MethodFailed for any other."""
    name = _name(selector, "a selector")
    if _NEVER.search(name):
        raise MethodFailed(f"no method may send {name!r}", remedy="Send a public message.")
    return name


def check_read(slot: object) -> str:
    """A slot of another object that a method may read; MethodFailed for any other."""
    name = _name(slot, "a slot's name")
    if _NEVER.search(name):
        raise MethodFailed(f"no method may read {name!r} of another object")
    return name


def check_write(sheet: WriteBuffer, receiver: UvmObject, slot: object) -> str:
    """A slot of the receiver that its method may write or delete; MethodFailed for any other.

    Never a protected name, never one that holds behaviour (its own or a parent's), never what the codex declares of
    this very object, never a container of the kernel's.
    """
    name = _name(slot, "a slot's name")
    if _NEVER.search(name) or is_reserved(name):
        raise MethodFailed(f"no method may write {name!r}")
    kept = sheet.find(receiver, name)
    if kept is not None and isinstance(kept.value, Behaviour):
        raise MethodFailed(f"{name!r} of {label(receiver)} is behaviour: no method writes over it")
    if kept is not None and kept.holder is receiver and is_record(kept.value):
        raise MethodFailed(f"{name!r} of {label(receiver)} is a container of the kernel's: no method writes it")
    if name in protected(receiver):
        raise MethodFailed(f"{name!r} of {label(receiver)} is the codex's or the kernel's: no method writes it")
    return name


def _name(name: object, what: str) -> str:
    if not isinstance(name, str) or not name or len(name) > LONGEST or not name.isidentifier():
        raise MethodFailed(f"{what} is a name of at most {LONGEST} characters, not {str(name)[:40]!r}")
    if unicodedata.normalize("NFKC", name) != name:
        raise MethodFailed(f"{what} is not written in its plain form: {name!r}")
    return name

"""Rules for the names that a method may send, read or write, checked by the kernel independently of the guardian."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from batos.image.protection import protected_slots
from batos.methods.execution.plain_data import is_record
from batos.methods.execution.write_buffer import WriteBuffer
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, is_reserved, label
from batos.protocol.errors import MethodFailed

#: The most characters of a name.
LONGEST: Final = 128

#: Names never sent and never written, in any case: those of the object model, and those that change behaviour.
_NEVER = re.compile(
    r"^_|^parents?\*?$|guardian|does_?not_?understand|"
    r"^(?:un)?install_|^re_?parent|^(?:become|clone|eval|exec|compile)_?$",
    re.IGNORECASE,
)


def check_selector(selector: object) -> str:
    """Return the selector if a method may send it. Raises: MethodFailed: no method may."""
    name = _name(selector, "a selector")
    if _NEVER.search(name):
        raise MethodFailed(f"no method may send {name!r}", remedy="Send a public message.")
    return name


def check_read(slot: object) -> str:
    """Return the slot's name if a method may read it of another object. Raises: MethodFailed: no method may."""
    name = _name(slot, "a slot's name")
    if _NEVER.search(name):
        raise MethodFailed(f"no method may read {name!r} of another object")
    return name


def check_write(buffer: WriteBuffer, receiver: UvmObject, slot: object) -> str:
    """Return the slot's name if a method of the receiver may write or delete it.

    Raises: MethodFailed: the name is reserved or protected, the slot holds behaviour (the receiver's own or inherited),
    or the receiver's own slot holds a container of the kernel.
    """
    name = _name(slot, "a slot's name")
    if _NEVER.search(name) or is_reserved(name):
        raise MethodFailed(f"no method may write {name!r}")
    kept = buffer.find(receiver, name)
    if kept is not None and isinstance(kept.value, Behaviour):
        raise MethodFailed(f"{name!r} of {label(receiver)} is behaviour: no method writes over it")
    if kept is not None and kept.holder is receiver and is_record(kept.value):
        raise MethodFailed(f"{name!r} of {label(receiver)} is a container of the kernel's: no method writes it")
    if name in protected_slots(receiver):
        raise MethodFailed(f"{name!r} of {label(receiver)} is the codex's or the kernel's: no method writes it")
    return name


def _name(name: object, what: str) -> str:
    """Return the name if it is an identifier in normal form of at most LONGEST characters. Raises: MethodFailed."""
    if not isinstance(name, str) or not name or len(name) > LONGEST or not name.isidentifier():
        raise MethodFailed(f"{what} is a name of at most {LONGEST} characters, not {str(name)[:40]!r}")
    if unicodedata.normalize("NFKC", name) != name:
        raise MethodFailed(f"{what} is not written in its plain form: {name!r}")
    return name

"""A verb as a value: its arguments and its reply, who may ask it, how a person types it, and the text of its reply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Generic, TypeVar

from batos.protocol.wire_messages import StrictModel

Args = TypeVar("Args", bound=StrictModel)
Reply = TypeVar("Reply", bound=Mapping[str, object])


@dataclass(frozen=True)
class WireVerb(Generic[Args, Reply]):
    """A verb. mypy holds who answers it and who asks it against its arguments and its reply.

    The docstring of the arguments is its help, but for arguments that several verbs take; their fields are described
    once, for the wire and for a person.
    """

    name: str
    args: type[Args]
    #: The command line: words, then the fields that stand without an option, and options that are not named like
    #: their fields: `effects list [MISSION]`, `pack --keep=KEEP_DAYS`.
    typed: str = ""
    #: The reply in words, by a function or with names of its keys in braces; without either it is shown as it is.
    text: Callable[[Reply], str] | str | None = None
    #: The reply with all details, as -v asks for it, where that is another text.
    whole: Callable[[Reply], str] | None = None
    examples: tuple[str, ...] = ()
    #: Said of each event that comes before the reply, with names of its keys in braces.
    progress: str = ""
    #: Nothing is changed: whoever only reads an image can answer.
    reads: bool = False
    #: The mind is changed in what it is made of: only whoever is in the home may ask, and no guest.
    governs: bool = False
    #: The help of a verb whose arguments are those of others too.
    about: str = ""

    def in_words(self, reply: Reply, *, whole: bool = False) -> str:
        """Return a reply in words; `whole`: with all details."""
        text = (whole and self.whole) or self.text
        if text is None:
            return document_text(reply)
        return text.format_map(reply) if isinstance(text, str) else text(reply)

    @property
    def help(self) -> str:
        """Return what the verb does, in all that is said of it."""
        return self.about or cleandoc(self.args.__doc__ or "")

    @property
    def summary(self) -> str:
        """Return what the verb does, in one clause."""
        return re.split(r"[.:;](?:\s|$)", self.help, maxsplit=1)[0] + "."

    @property
    def words(self) -> list[str]:
        """Return the words of the command line that are no arguments."""
        return [each for each in self.typed.split() if each.islower()]


def document_text(reply: Mapping[str, object]) -> str:
    """Write a reply as it is."""
    return json.dumps(reply, ensure_ascii=False, indent=2)


@dataclass(frozen=True)
class Noun:
    """A word before verbs, with its help, and the verb that is meant where none is named."""

    name: str
    help: str
    default: str = ""

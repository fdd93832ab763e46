"""The messages that a client sends: one question, what came before it, and what the client tells the model to be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from batos.protocol.brief import TEXT_LIMIT
from batos.protocol.errors import BatosError, BriefError
from batos.protocol.wire_messages import parse

_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
#: The types of a message's parts that hold text.
_TEXTS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
#: Characters of each end of a question that is too long for a brief; the whole of it is a file.
_ENDS: Final = 4_000
#: Texts that clients send, in one message by itself, to name a chat or to propose what might be asked next.
_CHORE: Final = re.compile(
    r"\A\s*(?:### Task:\s|Provide a concise, 5-word-or-less title|Create a concise, 3-5 word (?:phrase|title)"
    r"|Given the following[^\n]{0,120}title for the chat|Summari[sz]e in a \d+-word title)",
    re.IGNORECASE,
)


class SentCall(NamedTuple):
    """A call of a tool that the client was handed and made: its id, the tool, and the arguments as JSON in one form."""

    id: str
    tool: str
    arguments: str


class SentMessage(NamedTuple):
    """A message: who said it (`user`, `assistant`, `tool`), its text, its calls, or the call whose result it is.

    A message of the assistant's with calls is no answer; it is said by `calls`.
    """

    role: str
    text: str
    calls: tuple[SentCall, ...] = ()
    of: str = ""


class SentMessages(NamedTuple):
    """The messages of a request: the question, what came before and after it, and the client's system text."""

    question: str
    earlier: tuple[SentMessage, ...] = ()
    later: tuple[SentMessage, ...] = ()
    system: str = ""

    @property
    def calls(self) -> list[SentCall]:
        """Return the calls that were made for the question."""
        return [call for each in self.later for call in each.calls]

    @property
    def last_calls(self) -> tuple[SentCall, ...]:
        """Return those of them that were made last, together."""
        return next((each.calls for each in reversed(self.later) if each.calls), ())

    def results(self) -> Iterator[tuple[str, str]]:
        """Yield the results of those calls, each with the name of its tool."""
        names = {call.id: call.tool for call in self.calls if call.id}
        for number, each in enumerate(each for each in self.later if each.role == "tool"):
            in_turn = self.calls[number].tool if number < len(self.calls) else "tool"
            yield names.get(each.of) or each.of or in_turn, each.text


def read_messages(messages: object, field: str = "messages") -> SentMessages:
    """Read a list of messages in the form of OpenAI or Ollama. Raises: BriefError: one cannot be used; it is named."""
    if not isinstance(messages, list):
        raise _wrong(field, "it must be a list of messages", "Send [{role, content}, ...].")
    system: list[str] = []
    said: list[SentMessage] = []
    for number, each in enumerate(messages):
        read = _read_message(each, f"{field}[{number}]")
        if read.role == "system":
            system.append(read.text)
        elif read.text.strip() or read.role in {"calls", "tool"}:
            said.append(read)
    asked = max((place for place, each in enumerate(said) if each.role == "user"), default=None)
    if asked is None:
        raise _wrong(field, "there is no message of the user in it", "Send one with the role user and a text.")
    return SentMessages(said[asked].text, tuple(said[:asked]), tuple(said[asked + 1 :]), "\n\n".join(system).strip())


def _read_message(each: object, field: str) -> SentMessage:
    if not isinstance(each, Mapping):
        raise _wrong(field, "a message is an object", "Send {role, content}.")
    role = each.get("role", "user")
    if not isinstance(role, str) or role not in _ROLES:
        raise _wrong(f"{field}.role", "there is no such role", f"Use one of {', '.join(_ROLES)}.")
    if each.get("images"):
        raise _wrong(f"{field}.images", "images are not read", "Describe what is on it in words.")
    text, calls = text_of(each.get("content"), f"{field}.content"), tuple(_read_calls(each.get("tool_calls"), field))
    of = each.get("tool_call_id") or each.get("tool_name") or each.get("name")
    return SentMessage("calls" if calls else _ROLES[role], text, calls, of if isinstance(of, str) else "")


def _read_calls(given: object, field: str) -> Iterator[SentCall]:
    """Yield the calls of a message, whose arguments are an object, or that as JSON. Raises: BriefError."""
    for number, each in enumerate(given if isinstance(given, list) else ()):
        function = each.get("function") if isinstance(each, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(each, Mapping) or not isinstance(function, Mapping) or not isinstance(name, str):
            raise _wrong(f"{field}.tool_calls[{number}]", "it has no function with a name", "Send it as it was handed.")
        yield SentCall(str(each.get("id") or ""), clean(name), in_one_form(function.get("arguments")))


def in_one_form(arguments: object) -> str:
    """Return the arguments of a call as JSON whose keys are sorted, however a client sends them.

    >>> in_one_form('{"b": 1, "a": "x"}') == in_one_form({"a": "x", "b": 1})
    True
    """
    if isinstance(arguments, str):
        with suppress(BatosError):  # what is no JSON stays the text that it is
            arguments = parse(arguments.encode("utf-8", "replace"))
    return clean(json.dumps(arguments, sort_keys=True, ensure_ascii=False))


def text_of(content: object, field: str) -> str:
    """Return the text of a content: a text, a list of parts, or nothing. Raises: BriefError: a part is no text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return clean(content)
    if not isinstance(content, list):
        raise _wrong(field, "it is neither a text nor a list of parts", "Send a text.")
    return clean("\n".join(_texts(content, field)))


def _texts(parts: Sequence[object], field: str) -> Iterator[str]:
    for number, part in enumerate(parts):
        if isinstance(part, str):
            yield part
            continue
        kind = part.get("type", "text") if isinstance(part, Mapping) else None
        text = part.get("text", part.get("refusal")) if isinstance(part, Mapping) else None
        if kind not in _TEXTS or not isinstance(text, str):
            shown = f"parts of the type {str(kind)[:40]!r} are not read" if kind else "a part is an object with a text"
            raise _wrong(f"{field}[{number}]", shown, "Send its text.")
        yield text


def clean(text: str) -> str:
    """Return a text that can be stored: without NUL, and with what is no Unicode text replaced."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _wrong(field: str, why: str, remedy: str) -> BriefError:
    return BriefError(f"{field}: {why}", field=field, remedy=remedy)


def is_chore(read: SentMessages) -> bool:
    """Test if a client asks for work of its own, such as a title: one message in a known form, and no other."""
    return not read.earlier and not read.later and bool(_CHORE.match(read.question))


def as_text(said: Iterable[SentMessage]) -> str:
    """Write messages as the text of a file."""
    return "\n\n".join(f"{each.role}: {each.text.strip()}" for each in said if each.text.strip())


def shorten_question(text: str) -> str | None:
    """Return both ends of a question that is too long for a brief, and is then a file; None: it is short enough."""
    if len(text) <= TEXT_LIMIT:
        return None
    return f"{text[:_ENDS]}\n[... the whole message is in message.txt ...]\n{text[-_ENDS:]}"


def read_options(given: Mapping[str, Any], names: Mapping[str, str], prefix: str = "") -> dict[str, Any]:
    """Return the options of a brief that a request has; `names` maps their names there to those of a brief.

    Raises: BriefError: one is no number; the error names it as the client did.
    """
    found: dict[str, Any] = {}
    for theirs, ours in names.items():
        value = given.get(theirs)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(f"{prefix}{theirs}", "it must be a number", f"Correct `{prefix}{theirs}`, or leave it out.")
        found[ours] = int(value) if ours in {"seed", "max_tokens"} and float(value).is_integer() else value
    return found

"""Read chat logs: JSONL of messages, and exports of chat programs, value by value."""

from __future__ import annotations

import codecs
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from batos.inference import thoughts
from batos.memory.reading.other_text import decode, without_data
from batos.memory.reading.packed_texts import read_archive
from batos.memory.reading.read_text import Emit, NoText, NotReadable, ReadText, UnreadPart, clean, moment_of, one_line

#: Bytes that are read at once; more for a value that is longer, twice as many each time.
_PIECE: Final = 2**18
#: The longest line.
_LINE: Final = 2**26
_BLANKS: Final = " \t\r\n\ufeff"


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line of a file of lines that is no JSON."""

    number: int


def json_values(file: IO[bytes]) -> Iterator[Any]:
    """Yield the values of a file that can be gone back in; where each line has one, a broken line leaves the others.

    Raises: NotReadable: what is there is not JSON.
    """
    first = file.readline(_LINE)
    if _is_a_line(first):
        yield from _lines(chain([first], iter(partial(file.readline, _LINE), b"")))
        return
    file.seek(0)
    window = _Window(file)
    passed, end = _BLANKS, ""
    if window.peek(_BLANKS) == "[":
        window.skip()
        passed, end = _BLANKS + ",", "]"
    while window.peek(passed) not in {"", end}:
        yield window.value()


def _is_a_line(first: bytes) -> bool:
    """Test if a file's first line is an object with others below it."""
    text = first.decode("utf-8", "replace").strip(_BLANKS)
    try:
        return first.endswith(b"\n") and text[:1] == "{" and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _lines(lines: Iterable[bytes]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        if text := line.decode("utf-8", "replace").strip(_BLANKS):
            try:
                yield json.loads(text)
            except (ValueError, RecursionError):
                yield BrokenLine(number)


class _Window:
    """A part of a file's text, read on as far as it is needed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text = ""
        self._at = 0
        self._ended = False
        self._decoder = json.JSONDecoder()

    def peek(self, passed: str) -> str:
        """Return the next character but those that are passed over; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in passed:
                self._at += 1
            if self._at < len(self._text) or not self._more(_PIECE):
                return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        """Pass over a character."""
        self._at += 1

    def value(self) -> Any:
        """Return the value that begins here."""
        size = _PIECE
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._more(size):
                    raise NotReadable("it is not JSON to its end") from None
                size *= 2
                continue
            if end == len(self._text) and self._more(size):
                continue  # a number may go on
            self._at = end
            return found

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        data = self._file.read(size)
        self._ended = not data
        self._text, self._at = self._text[self._at :] + self._decode(data, not data), 0
        return True


#: The roles of messages that nobody said.
_UNSAID: Final = frozenset({"system", "developer", "tool", "function"})
#: The roles of people, in whose words marks of thoughts are words.
_PEOPLE: Final = frozenset({"user", "human", "prompt"})
#: The types of a message's parts, and the channels, in which a model thinks.
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "thought", "thoughts", "analysis"})
#: The fold in which Open WebUI keeps what a model thought.
_FOLD: Final = re.compile(
    r"<details\b[^>]*\btype=\"reasoning\"[^>]*>.*?(?:</details>|\Z)\s*", re.DOTALL | re.IGNORECASE
)
#: The file of a ChatGPT export's archive that has the conversations.
_IN_ARCHIVE: Final = "conversations.json"
_ROLES: Final = ("role", "sender", "speaker", "from")
_MOMENTS: Final = ("timestamp", "create_time", "created_at", "datetime_utc", "date", "time")
_CONVERSATIONS: Final = ("conversation", "conversation_id", "session_id", "chat_id", "thread_id")


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """The words of somebody in a conversation; texts are "" where they are not known."""

    speaker: str
    text: str
    said_at: str = ""
    name: str = ""

    @property
    def speech(self) -> str:
        """Return what was said: a model's words without what it only thought."""
        text = clean(self.text)
        return (text if self.speaker.lower() in _PEOPLE else thoughts.part(_FOLD.sub("", text)).said).strip()


@dataclass(slots=True)
class Conversation:
    """A conversation, or a part of it."""

    name: str
    title: str
    turns: list[ChatTurn] = field(default_factory=list)


def read(path: Path, emit: Emit) -> None:
    """Read a file turn by turn; a file that holds no conversation is one text."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if _IN_ARCHIVE not in archive.namelist():
                read_archive(path, emit)
                return
            with archive.open(_IN_ARCHIVE) as file:
                is_chat = _read_conversations(file, "", emit)
        if not is_chat:
            raise NoText(f"its {_IN_ARCHIVE} has no conversation")
        return
    with path.open("rb") as file:
        is_chat = _read_conversations(file, path.stem, emit)
    if not is_chat:
        decoded, doubts = decode(path.read_bytes())
        text, left_out = without_data(decoded)
        kind = "application/json" if path.suffix == ".json" else "text/plain"
        emit(ReadText(text, media_type=kind, left_out=(*doubts, *left_out)))


def _read_conversations(file: IO[bytes], name: str, emit: Emit) -> bool:
    """Read what can be taken for conversations; return False where the first value is none."""
    teller = ChatTeller(emit, name)
    strange = 0
    try:
        for value in _join_sessions(_unwrap(json_values(file))):
            if isinstance(value, BrokenLine):
                emit(UnreadPart(f"line {value.number}", "it is not JSON"))
                continue
            found = list(_conversations_of(value))
            strange += not found
            if not found and not teller.count:
                return False
            for each in found:
                teller.tell(each)
    except NotReadable as error:
        if not teller.count:
            return False
        emit(UnreadPart("", str(error)))
    if strange:
        emit(UnreadPart("", f"{strange} of its values are no conversation"))
    return teller.count > 0


def _unwrap(values: Iterator[object]) -> Iterator[Any]:
    """Yield values, those of a list inside a single object (`{"conversations": [...]}`) in its place."""
    first = next(values, None)
    if isinstance(first, dict):
        for key in ("conversations", "chats", "data"):
            if isinstance(first.get(key), list):
                return chain(iter(first[key]), values)
    return chain([first], values)


def _join_sessions(values: Iterator[object]) -> Iterator[object]:
    """Yield values, in the place of a line `session` with its lines `message` (llama.cpp) one conversation."""
    session: dict[str, object] | None = None
    nodes: dict[str, object] = {}
    for value in values:
        kind = value.get("type") if isinstance(value, dict) else None
        message = value.get("message") if isinstance(value, dict) else None
        if session is not None and kind == "message" and isinstance(message, dict):
            nodes[str(message.get("id"))] = {"message": message, "parent": message.get("parent")}
            continue
        if session is not None:
            yield session
            session = None
        if isinstance(value, dict) and kind == "session" and "currNode" in value:
            nodes = {}
            named = {"id": value.get("id"), "title": value.get("name")}
            session = {**named, "mapping": nodes, "current_node": value["currNode"]}
        else:
            yield value
    if session is not None:
        yield session


class ChatTeller:
    """Hands the turns of conversations on, each numbered in its own."""

    def __init__(self, emit: Emit, name: str) -> None:
        self._emit = emit
        self._name = name
        self._numbers: dict[str, int] = {}
        self._titles: dict[str, str] = {}
        self.count = 0

    def tell(self, conversation: Conversation) -> None:
        """Hand the turns of a conversation on."""
        key = conversation.name or self._name
        for turn in conversation.turns:
            self._numbers[key] = number = self._numbers.get(key, 0) + 1
            text, left_out = without_data(turn.speech)
            if not text:
                continue
            title = conversation.title or self._titles.setdefault(key, one_line(text)[:60])
            place = one_line("/".join(filter(None, (conversation.name, turn.name or str(number)))))
            self._emit(
                ReadText(text, title, "text/plain", place, "turn", turn.said_at, turn.speaker, one_line(key), left_out)
            )
            self.count += 1


def _conversations_of(value: object) -> Iterator[Conversation]:
    """Yield the conversation that a value is: an export's, a list of messages, a message alone, or a row of `llm`."""
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        return
    name = next((str(value[key]) for key in ("conversation_id", "id", "uuid") if value.get(key)), "")
    title = one_line(value.get("title") or value.get("name") or "")
    inner = value.get("chat")
    if isinstance(value.get("mapping"), dict):
        yield Conversation(name, title, _branch(value["mapping"], value.get("current_node"), "parent"))
    elif isinstance(inner, dict):
        yield Conversation(name, title or one_line(inner.get("title") or ""), _web_ui_turns(inner))
    elif isinstance(value.get("messages"), list) or isinstance(value.get("chat_messages"), list):
        found = [_turn_of(each) for each in value.get("messages") or value.get("chat_messages") or ()]
        if any(found):
            yield Conversation(name, title, [each for each in found if each is not None])
    elif isinstance(value.get("prompt"), str) and isinstance(value.get("response"), str):
        yield row_of(value)
    elif (turn := _turn_of(value)) is not None:
        named = next((str(value[key]) for key in _CONVERSATIONS if isinstance(value.get(key), str | int)), "")
        yield Conversation(named, title if "title" in value else "", [turn])


def row_of(row: Mapping[str, object]) -> Conversation:
    """Return a row of llm's log: a question and its answer."""
    at, name = moment_of(row.get("datetime_utc")), str(row.get("id") or "")
    turns = [
        ChatTurn("user", str(row.get("prompt") or ""), at, name and f"{name}/prompt"),
        ChatTurn("assistant", str(row.get("response") or ""), at, name and f"{name}/response"),
    ]
    return Conversation(str(row.get("conversation_id") or ""), one_line(row.get("conversation_name") or ""), turns)


def _web_ui_turns(chat: Mapping[str, object]) -> list[ChatTurn]:
    messages = chat.get("messages")
    if isinstance(messages, list) and messages:
        return [turn for each in messages if (turn := _turn_of(each)) is not None]
    history = chat.get("history")
    if not isinstance(history, dict) or not isinstance(history.get("messages"), dict):
        return []
    return _branch(history["messages"], history.get("currentId"), "parentId")


def _branch(nodes: dict[str, Any], last: Any, parent: str) -> list[ChatTurn]:
    """Return the turns of the branch that was shown last, the first one first."""
    if not isinstance(last, str) or last not in nodes:
        last = next(reversed(nodes), None)
    turns: list[ChatTurn] = []
    left = dict(nodes)  # a message is said once, wherever its parents lead
    while isinstance(last, str) and isinstance(node := left.pop(last, None), dict):
        message = node.get("message") if parent == "parent" else node
        turn = _turn_of(message) if isinstance(message, dict) else None
        turns += [turn] if turn is not None else []
        last = node.get(parent)
    return turns[::-1]


def _turn_of(message: object) -> ChatTurn | None:
    """Return a message as a turn; None where it is none, or nobody said it."""
    if not isinstance(message, dict):
        return None
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else next(
        (message[key] for key in _ROLES if isinstance(message.get(key), str)), None
    )  # fmt: skip
    about = message.get("metadata")
    hidden = message.get("channel") in _THOUGHTS or (
        isinstance(about, dict) and about.get("is_visually_hidden_from_conversation")
    )
    content = message.get("content", message.get("text"))
    if not isinstance(role, str) or content is None:
        return None
    text = "" if role in _UNSAID or hidden else _content_text(content)
    at = next((found for key in _MOMENTS if (found := moment_of(message.get(key)))), "")
    return ChatTurn(one_line(role), text, at, one_line(message.get("id") or ""))


def _content_text(content: object) -> str:
    """Return the text of a message's content: a text, a list of parts, or ChatGPT's object with parts."""
    if isinstance(content, dict):
        if content.get("content_type") not in {None, "text", "multimodal_text", "code"}:
            return ""
        content = content.get("parts") or content.get("text") or ""
    if isinstance(content, list):
        shown = (each for each in content if not isinstance(each, dict) or each.get("type") not in _THOUGHTS)
        parts = [each.get("text") if isinstance(each, dict) else each for each in shown]
        return "\n\n".join(each for each in parts if isinstance(each, str) and each)
    return content if isinstance(content, str) else ""

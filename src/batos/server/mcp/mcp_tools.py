"""The tools of MCP: verbs of the mind, with the arguments that a host's model gives and the words that it reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from batos.client.pending import nobody, send_files
from batos.protocol.brief import AttachmentRef, File
from batos.protocol.errors import Refused, TimedOut
from batos.server.mcp.mcp_messages import McpClient, Message
from batos.verbs.all_verbs import VERBS

#: Tells how a call goes on, in a line.
Progress: TypeAlias = Callable[[str], None]
#: Does what a tool does, and returns the reply of its verb.
Run: TypeAlias = Callable[[McpClient, Mapping[str, Any], Progress], Awaitable[dict[str, Any]]]

#: Seconds that a host waits for an answer unless it names others, and at most: hosts end a call after sixty.
_USUAL, _LONGEST = 45, 50
#: Memories that are forgotten at once, each of which a person is shown before.
_FORGOTTEN: Final = 50
_WAIT: Final[Message] = {
    "type": "integer", "minimum": 0, "maximum": _LONGEST, "default": _USUAL,
    "description": "Seconds to wait for the answer. After them the mission goes on, and `wait` waits for it again.",
}  # fmt: skip
_ANSWER: Final[Message] = {
    "type": "object",
    "required": ["mission", "status"],
    "properties": {
        "mission": {"type": "string"}, "status": {"type": "string"}, "answer": {"type": "string"},
        "sources": {"type": "array", "items": {"type": "object"}},
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool: how a host lists it, what it does, and the words of its reply.

    A tool with a rehearsal is a deed: a person is shown what came of that, and has to say yes.
    """

    name: str
    description: str
    schema: Message
    run: Run
    words: Callable[[dict[str, Any]], str]
    reads: bool = False
    destroys: bool = False
    output: Message | None = None
    rehearse: Run | None = None

    def as_document(self) -> Message:
        """Return it as `tools/list` has it."""
        hints = {"readOnlyHint": self.reads, "destructiveHint": self.destroys, "openWorldHint": False}
        shown: Message = {
            "name": self.name, "description": self.description, "inputSchema": self.schema, "annotations": hints,
        }  # fmt: skip
        return shown if self.output is None else {**shown, "outputSchema": self.output}


# -- what the tools do


async def _ask(client: McpClient, args: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Submit a question, and wait for its answer; who leaves meanwhile ends the waiting alone."""
    given = {name: args[name] for name in ("persona", "effort", "conversation") if name in args}
    origin = {"door": "mcp", "client": client.name, **({"typed": True} if client.is_person else {})}
    brief = {"text": args.get("question"), "origin": origin, **given}
    accepted = await client.call("submit", {"brief": brief}, nobody)
    return await _wait(client, {**args, "mission": accepted["mission"]}, progress)


async def _wait(client: McpClient, args: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Wait for a mission within the time that a host gives."""
    seconds = args.get("wait_seconds", _USUAL)
    seconds = min(seconds, _LONGEST) if isinstance(seconds, int | float) and not isinstance(seconds, bool) else seconds

    def on_event(event: str, keys: Mapping[str, Any]) -> None:
        if event == "mission.routed" and keys["personas"]:
            progress(f"{', '.join(keys['personas'])}: {keys['effort'] or 'thinking'}")
        elif event in ("mission.partial", "mission.status"):
            progress(str(keys.get("status") or "a part is back"))

    meant = {"mission": args.get("mission"), "seconds": seconds, "follow": True}
    try:
        return await client.call("wait", meant, on_event)
    except TimedOut:
        return await client.call("show", {"mission": args.get("mission")}, nobody)


async def _remember(client: McpClient, args: Mapping[str, Any], _progress: Progress) -> dict[str, Any]:
    """Remember a text: of a person who types as theirs, of a program as that of a file, which is foreign."""
    text, title = args.get("text"), args.get("title")
    named = {} if title is None else {"title": title}
    if client.is_person or not isinstance(text, str) or not text.strip():
        return await client.call("remember", {"text": text, **named}, nobody)
    data = text.encode("utf-8", "replace")
    ref = AttachmentRef(name="note.txt", media_type="text/plain", sha256=hashlib.sha256(data).hexdigest())

    async def ask(verb: str, asked: Mapping[str, object]) -> dict[str, Any]:
        return await client.call(verb, asked, nobody)

    (sent,) = await send_files(ask, [File(ref, data)])
    return await client.call("remember", {"files": [{**sent, **named}]}, nobody)


async def _forget_rehearsal(client: McpClient, args: Mapping[str, Any], _progress: Progress) -> dict[str, Any]:
    """Show what would be forgotten."""
    names = args.get("documents")
    if not isinstance(names, list) or not 0 < len(names) <= _FORGOTTEN:
        raise Refused(
            f"documents is a list of at most {_FORGOTTEN} ids or sources", field="documents",
            remedy="`recall` shows the ids.",
        )  # fmt: skip
    found = [await client.call("memories", {"document": each}, nobody) for each in names]
    return {"would_forget": found}


def _verb(name: str, fixed: Mapping[str, object] | None = None) -> Run:
    """Return what asks a verb with the arguments of a tool."""

    async def run(client: McpClient, args: Mapping[str, Any], _progress: Progress) -> dict[str, Any]:
        return await client.call(name, {**args, **(fixed or {})}, nobody)

    return run


# -- the words of their replies


def _answer_words(found: dict[str, Any]) -> str:
    """Write an answer with its sources; of a mission without one, how it stands and what to call."""
    if found["status"] != "done":
        if found["status"] in ("queued", "running", "waiting"):
            return f"{found['id']} is {found['status']}. Call `wait` with this mission for the answer."
        reason = found.get("reason") or {}
        return f"{found['id']} is {found['status']}: {reason.get('message', 'it has no answer')}"
    answer = found["answer"] if isinstance(found["answer"], str) else json.dumps(found["answer"], ensure_ascii=False)
    lines = [f'[{each["document"]}] {each.get("name", "")}: "{each["quote"]}"' for each in _citations(found)]
    return "\n".join([answer, "", *lines, f"(mission {found['id']})"])


def _citations(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((found.get("provenance") or {}).get("citations") or ())


def shown_answer(found: Mapping[str, Any]) -> Message:
    """Return what a program reads of a mission."""
    answer = found.get("answer")
    shown: Message = {"mission": found["id"], "status": found["status"]}
    if found["status"] == "done":
        shown["answer"] = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        shown["sources"] = [{"name": each.get("name", ""), "quote": each["quote"]} for each in _citations(found)]
    return shown


def _recalled_words(found: dict[str, Any]) -> str:
    parts = [f"{each.get('title', '')} ({each.get('document', '')})\n{each['text']}" for each in found["recalled"]]
    return "\n\n".join(parts) or "Nothing that is remembered matches."


def _remembered_words(found: dict[str, Any]) -> str:
    names = ", ".join(each["document"] for each in found["remembered"])
    return f"Remembered: {names}." if names else "This was remembered before."


def _forget_words(found: dict[str, Any]) -> str:
    lines = [f"{each['document']}: {each.get('title', '')}" for each in found["would_forget"]]
    return "\n".join(["This would be forgotten:", *lines])


def _reply_words(verb: str) -> Callable[[dict[str, Any]], str]:
    """Return what writes the reply of a verb as its declaration does."""
    return VERBS[verb].in_words


def _schema(verb: str, *names: str, **more: Message) -> Message:
    """Return the schema of some arguments of a verb as it declares them, and of others."""
    declared = VERBS[verb].args.model_json_schema()
    fields = {name: declared["properties"][name] for name in names}
    needed = [name for name in names if name in declared.get("required", ())]
    return {"type": "object", "properties": {**fields, **more}, "required": needed, "additionalProperties": False}


_QUESTION: Final[Message] = {
    "type": "object",
    "required": ["question"],
    "additionalProperties": False,
    "properties": {
        "question": {"type": "string", "description": "The question, in any language."},
        "persona": {"enum": ["ROBIN", "BRICK", "BABS", "ALFRED"], "description": "Who answers; absent: its choice."},
        "effort": {"enum": ["reflex", "cycle", "council"], "description": "One call, several, or all personas."},
        "conversation": {"type": "string", "description": "`new`, `last` or a conversation's id."},
        "wait_seconds": _WAIT,
    },
}  # fmt: skip
_NOTE: Final[Message] = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "description": "The text."},
        "title": {"type": "string", "description": "Its title."},
    },
}  # fmt: skip
_DOCUMENTS: Final = partial(_schema, "forget", "documents")
#: All tools, in the order in which they are listed.
TOOLS: Final[Mapping[str, McpTool]] = {
    each.name: each
    for each in (
        McpTool(
            "ask", "Ask the mind a question about what it remembers, or anything else. The answer has its sources.",
            _QUESTION, _ask, _answer_words, output=_ANSWER,
        ),
        McpTool(
            "wait", "Wait for the answer of a mission that `ask` left running.",
            _schema("wait", "mission", wait_seconds=_WAIT), _wait, _answer_words, reads=True, output=_ANSWER,
        ),
        McpTool(
            "cancel", "Cancel a mission.", _schema("cancel", "mission"), _verb("cancel"), _reply_words("cancel"),
            destroys=True,
        ),
        McpTool(
            "remember", "Remember a text; later questions are answered from it too.", _NOTE, _remember,
            _remembered_words,
        ),
        McpTool(
            "recall", "Find what is remembered about something; no model answers.",
            _schema("recall", "query", "limit"), _verb("recall"), _recalled_words, reads=True,
        ),
        McpTool(
            "why", "Show what an answer, a mission or a memory came from.", _schema("why", "what"), _verb("why"),
            _reply_words("why"), reads=True,
        ),
        McpTool(
            "missions", "List the newest missions.", _schema("missions", "limit", "status"), _verb("missions"),
            _reply_words("missions"), reads=True,
        ),
        McpTool(
            "undo_dry_run", "Show what an undo of a mission would take out.", _schema("undo", "mission"),
            _verb("undo", {"dry_run": True}), _reply_words("undo"), reads=True,
        ),
        McpTool(
            "forget_dry_run", "Show what would be forgotten.", _DOCUMENTS(), _forget_rehearsal, _forget_words,
            reads=True,
        ),
        McpTool(
            "undo", "Take a mission out of the mind with all that it left. A person is asked first.",
            _schema("undo", "mission"), _verb("undo"), _reply_words("undo"), destroys=True,
            rehearse=_verb("undo", {"dry_run": True}),
        ),
        McpTool(
            "forget", "Forget memories. A person is asked first.", _DOCUMENTS(), _verb("forget"),
            _reply_words("forget"), destroys=True, rehearse=_forget_rehearsal,
        ),
    )
}  # fmt: skip

"""The face for OpenAI's responses: a reply that is kept, can be read and cancelled later, and can be replied to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from batos.protocol.errors import BatosError, BriefError, NotFound
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.wire_messages import mission_error
from batos.server.http import answer_stream
from batos.server.http.answer_stream import AnswerStream
from batos.server.http.client_missions import ClientMissions, ClientQuestion
from batos.server.http.client_tools import (
    READ,
    messages_of_items,
    mission_of_call,
    openai_calls,
    read_tools,
    response_items,
)
from batos.server.http.door_models import choose
from batos.server.http.http_errors import openai_error
from batos.server.http.http_exchange import SSE, Exchange, event
from batos.server.http.openai_chat import OPTIONS, note_ignored, schema_of
from batos.server.http.sent_messages import SentMessages, read_messages, read_options, text_of

_PREFIX: Final = "resp_"
_READ: Final = frozenset({
    "model", "input", "instructions", "stream", "background", "previous_response_id", "text", "store", *READ,
    "temperature", "top_p", "seed", "max_output_tokens", "conversation",
})  # fmt: skip
#: The status of a response by that of its mission.
_STATUS: Final[Mapping[str, str]] = {
    "queued": "queued", "running": "in_progress", "waiting": "in_progress", "paused": "in_progress",
    "done": "completed", "cancelled": "cancelled",
}  # fmt: skip


def response_id(mission: str) -> str:
    """Return the id of the response that a mission is.

    >>> response_id("m-01ABC"), mission_of("resp_01ABC")
    ('resp_01ABC', 'm-01ABC')
    """
    return f"{_PREFIX}{mission.removeprefix('m-')}"


def mission_of(response: object) -> str:
    """Return the mission of a response. Raises: NotFound: that is no id of one."""
    if isinstance(response, str) and response.startswith(_PREFIX) and response.removeprefix(_PREFIX).isalnum():
        return f"m-{response.removeprefix(_PREFIX)[:26]}"
    raise NotFound(f"there is no response {str(response)[:80]!r}", field="response_id")


class Responses:
    """Answers requests for responses."""

    def __init__(self, asking: ClientMissions) -> None:
        self._asking = asking

    async def create(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Answer a request for a response: streamed, whole, or in the background."""
        tools, ignored = read_tools(given, self._asking.settings.client_tools)
        chosen, said = choose(given.get("model")), await self._read_input(exchange, given)
        fields, agent = await self._fields(exchange, given, said), exchange.headers.get("user-agent", "")
        ask = ClientQuestion("openai", chosen, said, fields, agent, tools, remembers=False)
        note_ignored(exchange, [*(given.keys() - _READ), *ignored])
        model = str(given["model"])
        if given.get("background"):
            following = await self._asking.begin(ask, exchange.came_in, follow=False)
            exchange.more["x-batos-mission"] = following.mission
            await self._show(exchange, following.mission, model)
            return
        streams = bool(given.get("stream"))
        stream = await answer_stream.begin(self._asking, ask, exchange, streams=streams)
        if streams:
            await exchange.stream(SSE, _Events(model, stream).frames())
        else:
            await exchange.reply_json(response_document(await stream.whole(), model, exchange.base, stream.sent))

    async def _read_input(self, exchange: Exchange, given: Mapping[str, Any]) -> SentMessages:
        """Return the messages of a request; one with nothing but results has the question that they were wanted for."""
        asked, system = given.get("input"), text_of(given.get("instructions"), "instructions").strip()
        if isinstance(asked, str):
            if not asked.strip():
                raise BriefError("input: it is empty", field="input", remedy="Send a text.")
            return SentMessages(text_of(asked, "input"), system=system)
        if isinstance(asked, list):
            asked = list(messages_of_items(asked))
            roles = {each.get("role", "user") for each in asked if isinstance(each, Mapping)}
            if "tool" in roles and "user" not in roles and (before := given.get("previous_response_id")):
                found: MissionDocument = await self._asking.call(  # type: ignore[assignment]  # the reply of `show`
                    "show", {"mission": mission_of(before)}, exchange.came_in
                )
                calls = {"role": "assistant", "tool_calls": openai_calls(found)}
                asked = [{"role": "user", "content": found["brief"]["text"]}, calls, *asked]
        read = read_messages(asked, "input")
        return read._replace(system="\n\n".join(filter(None, (system, read.system))))

    async def _fields(self, exchange: Exchange, given: Mapping[str, Any], said: SentMessages) -> dict[str, Any]:
        """Return what a request has of a brief's fields, the conversation that it goes on among them."""
        names = {**{name: name for name in ("temperature", "top_p", "seed")}, "max_output_tokens": "max_tokens"}
        fields = read_options(given, {name: OPTIONS.get(ours, ours) for name, ours in names.items()})
        text = given.get("text")
        form = text.get("format") if isinstance(text, Mapping) else None
        if (schema := schema_of(form, "text.format")) is not None:
            fields["schema"] = schema
        if key := exchange.headers.get("idempotency-key"):
            fields["idempotency_key"] = key
        before = given.get("previous_response_id")
        mission = await self._find_handed(exchange, said) if before is None else mission_of(before)
        if mission is None:
            return fields if key else {**fields, "conversation": "new"}
        conversation = await self._conversation_after(mission, exchange.came_in)
        return {**fields, "in_reply_to": mission, **({} if conversation is None else {"conversation": conversation})}

    async def _find_handed(self, exchange: Exchange, said: SentMessages) -> str | None:
        """Return the mission that ended with the call whose result is sent; None: it is none of this client's."""
        for mission in filter(None, (mission_of_call(each.id) for each in said.last_calls)):
            with suppress(BatosError):
                found = await self._asking.call("show", {"mission": mission}, exchange.came_in)
                return mission if found["status"] == "done" else None
        return None

    async def _conversation_after(self, mission: str, came_in: str) -> str | None:
        """Return the conversation in which no turn follows a mission; else a new one, which forks it."""
        found = await self._asking.call("show", {"mission": mission}, came_in)
        conversation = found["brief"].get("conversation")
        if conversation is None:
            return "new"
        page = await self._asking.call("turns", {"conversation": conversation, "start": -1, "limit": 1}, came_in)
        goes_on = all(each["mission"] <= mission for each in page["turns"])
        return str(conversation) if goes_on else "new"

    async def show(self, exchange: Exchange, name: str) -> None:
        """Show a response as it is now."""
        await self._show(exchange, mission_of(name), None)

    async def cancel(self, exchange: Exchange, name: str) -> None:
        """Cancel a response, and show it."""
        mission = mission_of(name)
        await self._asking.call("cancel", {"mission": mission}, exchange.came_in)
        await self._show(exchange, mission, None)

    async def _show(self, exchange: Exchange, mission: str, model: str | None) -> None:
        found: MissionDocument = await self._asking.call("show", {"mission": mission}, exchange.came_in)  # type: ignore[assignment]  # the reply of `show`
        await exchange.reply_json(response_document(found, model or _model_of(found), exchange.base))


def _model_of(found: MissionDocument) -> str:
    return str(found["brief"].get("persona", "batos")).lower()


def response_document(found: MissionDocument, model: str, base: str, text: str | None = None) -> dict[str, Any]:
    """Return a mission as a response; `text` is its answer as it was sent."""
    brief, cost = found["brief"], found.get("cost")
    said = text if text is not None else str(found.get("answer", ""))
    is_done = found["status"] == "done"
    before, after = (cost["prompt_tokens"], cost["answer_tokens"]) if cost else (0, 0)
    cut = is_done and answer_stream.was_cut(found)
    failed = None if found["status"] not in {"failed", "parked"} else openai_error(mission_error(found))["error"]
    return {
        "id": response_id(found["id"]), "object": "response",
        "created_at": int(datetime.fromisoformat(found["accepted_at"]).timestamp()),
        "status": "incomplete" if cut else _STATUS.get(found["status"], "failed"),
        "error": None if failed is None else {"code": failed["code"], "message": failed["message"]},
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": brief.get("system"), "model": model,
        "output": (response_items(found) or [_item(found, said, base)]) if is_done else [],
        "parallel_tool_calls": False,
        "previous_response_id": response_id(brief["in_reply_to"]) if "in_reply_to" in brief else None,
        "store": True, "temperature": brief.get("temperature"), "top_p": brief.get("top_p"),
        "text": {"format": {"type": "text"}}, "tool_choice": "none", "tools": [], "truncation": "disabled",
        "usage": {
            "input_tokens": before, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": after,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": before + after,
        },
        "metadata": {}, "batos": answer_stream.about(found) if is_done else {"mission": found["id"]},
    }  # fmt: skip


def _item(found: MissionDocument, text: str, base: str) -> dict[str, Any]:
    noted = [{"type": each["type"], **each["url_citation"]} for each in answer_stream.annotations_of(found, text, base)]
    return _message(found["id"], text, "completed", noted)


def _message(mission: str, text: str, status: str, noted: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    parts = [] if status == "in_progress" else [_part(text, noted)]
    item = {"type": "message", "id": f"msg_{mission.removeprefix('m-')}", "status": status, "role": "assistant"}
    return {**item, "content": parts}


def _part(text: str, noted: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": noted or [], "logprobs": []}


class _Events:
    """The events of a streamed response, numbered without a gap."""

    def __init__(self, model: str, stream: AnswerStream) -> None:
        self._model, self._stream = model, stream
        self._number = -1
        self._began = int(time.time())

    def _event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return event({"type": f"response.{kind}", "sequence_number": self._number, **fields})

    def _empty(self, status: str) -> dict[str, Any]:
        """Return the response as it is before there is an answer."""
        mission = self._stream.following.mission
        return {
            "id": response_id(mission), "object": "response", "created_at": self._began, "status": status,
            "error": None, "incomplete_details": None, "instructions": None, "model": self._model, "output": [],
            "parallel_tool_calls": False, "previous_response_id": None, "store": True, "temperature": None,
            "text": {"format": {"type": "text"}}, "tool_choice": "none", "tools": [], "top_p": None,
            "truncation": "disabled", "usage": None, "metadata": {}, "batos": {"mission": mission},
        }  # fmt: skip

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the events; the last tells that the response is whole, cut or failed."""
        stream, mission = self._stream, self._stream.following.mission
        item = _message(mission, "", "in_progress")
        place: dict[str, object] = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        is_open = False
        try:
            yield self._event("created", response=self._empty("in_progress"))
            yield self._event("in_progress", response=self._empty("in_progress"))
            async for piece in stream.pieces():
                if piece.kind == "answer":
                    for opening in () if is_open else self._opening(item, place):
                        yield opening
                    is_open = True
                    yield self._event("output_text.delta", **place, delta=piece.text, logprobs=[])
                else:
                    yield b": %b\n\n" % (piece.text.strip().encode() or b"beat")
            found = await stream.following.document()
        except BatosError as error:
            told = openai_error(error)["error"]
            failed = {"code": told["code"], "message": told["message"]}
            yield self._event("failed", response={**self._empty("failed"), "error": failed})
            return
        whole = response_document(found, self._model, stream.exchange.base, stream.sent)
        calls = response_items(found)
        for each in (each for number, call in enumerate(calls) for each in self._call_events(number, call)):
            yield each
        if not calls:
            for opening in () if is_open else self._opening(item, place):
                yield opening
            yield self._event("output_text.done", **place, text=stream.sent, logprobs=[])
            yield self._event("content_part.done", **place, part=whole["output"][0]["content"][0])
            yield self._event("output_item.done", output_index=0, item=whole["output"][0])
        yield self._event(whole["status"], response=whole)

    def _opening(self, item: Mapping[str, Any], place: Mapping[str, object]) -> Iterator[bytes]:
        yield self._event("output_item.added", output_index=0, item=item)
        yield self._event("content_part.added", **place, part=_part(""))

    def _call_events(self, number: int, item: dict[str, Any]) -> Iterator[bytes]:
        """Yield the events of a call in the place of an answer."""
        place, arguments = {"item_id": item["id"], "output_index": number}, item["arguments"]
        started = {**item, "status": "in_progress", "arguments": ""}
        yield self._event("output_item.added", output_index=number, item=started)
        yield self._event("function_call_arguments.delta", **place, delta=arguments)
        yield self._event("function_call_arguments.done", **place, name=item["name"], arguments=arguments)
        yield self._event("output_item.done", output_index=number, item=item)

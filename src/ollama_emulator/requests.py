"""Read the bodies of requests as the daemon does: fields by name without case, and their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import keep_alive, quote
from ollama_emulator.go.scan import EMPTY, GoError, exact, plain, quick
from ollama_emulator.go.types import (
    ANY,
    BOOL,
    FLOAT,
    FLOAT32,
    INT,
    RAW,
    STRING,
    STRINGS,
    Custom,
    GoStruct,
    Map,
    Scalar,
    Slice,
    Type,
    decode,
    kind_of,
)

_LEVELS = ("high", "medium", "low", "max")
_ALLOWED = '"high", "medium", "low", "max", true, or false'
_NO_OBJECT = "Value looks like object, but can't find closing '}' symbol"


def _keep_alive(node: Any) -> Any:
    """Return the value of a `keep_alive`. Raises: GoError: it is no duration."""
    value, _ = plain(node)
    try:
        keep_alive(value)
    except ApiError as fault:
        raise GoError(fault.text) from None
    return value


def _think(node: Any) -> Any:
    """Return the value of `think`. Raises: GoError: it is neither a boolean nor a known level."""
    if isinstance(node, bool):
        return node
    if kind_of(node) != "string":
        raise GoError(f"think must be a boolean or string ({_ALLOWED})")
    if node not in _LEVELS:
        raise GoError(f"invalid think value: {quote(node)} (must be {_ALLOWED})")
    return node


def _decode_in_order(node: Any, element: Type) -> dict[str, Any]:
    """Return an object with its keys in the order sent, its values decoded into `element`."""
    if node is None:
        return {}
    if kind_of(node) != "object":
        raise GoError(_NO_OBJECT)
    pairs = node.items() if isinstance(node, dict) else node
    return {key: decode(element, value) for key, value in pairs}


def _kinds(node: Any) -> list[str]:
    """Return the `type` of a tool's property as a list of names."""
    found: list[str] = [node or ""] if node is None or kind_of(node) == "string" else decode(STRINGS, node)
    return found


def _message(node: Any) -> dict[str, Any]:
    """Decode a message; its role is set in small letters."""
    found: dict[str, Any] = decode(_ALIAS, node) or {}
    if "role" in found:
        found["role"] = found["role"].lower()
    return found


def _properties(node: Any) -> dict[str, Any]:
    return _decode_in_order(node, _PROPERTY)


_ANYTHING = Map("map[string]interface {}", ANY)
_FILES = Map("map[string]string", STRING)
_IMAGE = Scalar("api.ImageData", "bytes")
_IMAGES = Slice("[]api.ImageData", _IMAGE)
_DURATION = Custom("api.Duration", _keep_alive, pointer=True)
_THINK = Custom("api.ThinkValue", _think, pointer=True)
_ARGUMENTS = Custom("api.ToolCallFunctionArguments", lambda node: _decode_in_order(node, ANY))
_CALL = GoStruct("api.ToolCallFunction", {"index": INT, "name": STRING, "arguments": _ARGUMENTS})
_CALLS = Slice("[]api.ToolCall", GoStruct("api.ToolCall", {"id": STRING, "function": _CALL}))
_ALIAS = GoStruct(
    "api.Alias",
    {
        "role": STRING,
        "content": STRING,
        "thinking": STRING,
        "images": _IMAGES,
        "tool_calls": _CALLS,
        "tool_name": STRING,
        "tool_call_id": STRING,
    },
)
_MESSAGES = Slice("[]api.Message", Custom("api.Message", _message))
_PROPERTIES = Custom("api.ToolPropertiesMap", _properties, pointer=True)
_PROPERTY_FIELDS: dict[str, Type] = {}
_PROPERTY = GoStruct("api.ToolProperty", _PROPERTY_FIELDS)
_PROPERTY_FIELDS |= {  # a property may hold others
    "anyOf": Slice("[]api.ToolProperty", _PROPERTY),
    "type": Custom("api.PropertyType", _kinds),
    "items": ANY,
    "description": STRING,
    "enum": Slice("[]interface {}", ANY),
    "properties": _PROPERTIES,
    "required": STRINGS,
}
_PARAMETERS = GoStruct(
    "api.ToolFunctionParameters",
    {"type": STRING, "$defs": ANY, "items": ANY, "required": STRINGS, "properties": _PROPERTIES},
)
_FUNCTION = GoStruct("api.ToolFunction", {"name": STRING, "description": STRING, "parameters": _PARAMETERS})
_TOOL = GoStruct("api.Tool", {"type": STRING, "items": ANY, "function": _FUNCTION})
_ASKED: dict[str, Type] = {
    "model": STRING,
    "stream": BOOL,
    "format": RAW,
    "keep_alive": _DURATION,
    "options": _ANYTHING,
    "think": _THINK,
    "truncate": BOOL,
    "shift": BOOL,
    "_debug_render_only": BOOL,
    "logprobs": BOOL,
    "top_logprobs": INT,
}
_SIDE = Scalar("int32", "int", 32)
_UNNAMED = 'struct { Name string "json:\\"name\\""; Arguments string "json:\\"arguments\\"" }'
_STREAM_OPTIONS = GoStruct("openai.StreamOptions", {"include_usage": BOOL})
_OPENAI_CALL = GoStruct(
    "openai.ToolCall",
    {
        "id": STRING,
        "index": INT,
        "type": STRING,
        "function": GoStruct(_UNNAMED, {"name": STRING, "arguments": STRING}),
    },
)
_OPENAI_MESSAGE = GoStruct(
    "openai.Message",
    {
        "role": STRING,
        "content": ANY,
        "reasoning": STRING,
        "tool_calls": Slice("[]openai.ToolCall", _OPENAI_CALL),
        "name": STRING,
        "tool_call_id": STRING,
    },
)
_FORMAT = GoStruct(
    "openai.ResponseFormat", {"type": STRING, "json_schema": GoStruct("openai.JsonSchema", {"schema": RAW})}
)

#: Every request's struct by its name in Go.
STRUCTS: Mapping[str, GoStruct] = {
    struct.go: struct
    for struct in (
        GoStruct("api.ChatRequest", {**_ASKED, "messages": _MESSAGES, "tools": Slice("api.Tools", _TOOL)}),
        GoStruct(
            "api.GenerateRequest",
            {
                **_ASKED,
                **dict.fromkeys(("prompt", "suffix", "system", "template"), STRING),
                "context": Slice("[]int", INT),
                "raw": BOOL,
                "images": _IMAGES,
                **dict.fromkeys(("width", "height", "steps"), _SIDE),
            },
        ),
        GoStruct(
            "api.EmbedRequest",
            {
                "model": STRING,
                "input": ANY,
                "keep_alive": _DURATION,
                "truncate": BOOL,
                "dimensions": INT,
                "options": _ANYTHING,
            },
        ),
        GoStruct(
            "api.EmbeddingRequest",
            {"model": STRING, "prompt": STRING, "keep_alive": _DURATION, "options": _ANYTHING},
        ),
        GoStruct(
            "api.CreateRequest",
            {
                **dict.fromkeys(("model", "name", "quantize", "quantization", "from", "remote_host"), STRING),
                **dict.fromkeys(("template", "system", "renderer", "parser", "requires", "draft_quantize"), STRING),
                **dict.fromkeys(("files", "adapters", "draft_files"), _FILES),
                "stream": BOOL,
                "license": ANY,
                "parameters": _ANYTHING,
                "messages": _MESSAGES,
                "info": _ANYTHING,
            },
        ),
        GoStruct("api.DeleteRequest", {"model": STRING, "name": STRING}),
        GoStruct(
            "api.ShowRequest",
            {
                **dict.fromkeys(("model", "name", "system", "template"), STRING),
                "verbose": BOOL,
                "options": _ANYTHING,
            },
        ),
        GoStruct("api.CopyRequest", {"source": STRING, "destination": STRING}),
        GoStruct(
            "api.PullRequest",
            {
                **dict.fromkeys(("model", "name", "username", "password"), STRING),
                "insecure": BOOL,
                "stream": BOOL,
            },
        ),
        GoStruct(
            "openai.ChatCompletionRequest",
            {
                "model": STRING,
                "messages": Slice("[]openai.Message", _OPENAI_MESSAGE),
                "stream": BOOL,
                "stream_options": _STREAM_OPTIONS,
                **dict.fromkeys(("max_tokens", "seed", "top_logprobs"), INT),
                "stop": ANY,
                **dict.fromkeys(("temperature", "frequency_penalty", "presence_penalty", "top_p"), FLOAT),
                "response_format": _FORMAT,
                "tools": Slice("[]api.Tool", _TOOL),
                "reasoning": GoStruct("openai.Reasoning", {"effort": STRING}),
                "reasoning_effort": STRING,
                "logprobs": BOOL,
                "_debug_render_only": BOOL,
            },
        ),
        GoStruct(
            "openai.CompletionRequest",
            {
                **dict.fromkeys(("model", "prompt", "suffix"), STRING),
                **dict.fromkeys(("max_tokens", "seed", "logprobs"), INT),
                **dict.fromkeys(("temperature", "frequency_penalty", "presence_penalty", "top_p"), FLOAT32),
                "stop": ANY,
                "stream": BOOL,
                "stream_options": _STREAM_OPTIONS,
                "_debug_render_only": BOOL,
            },
        ),
        GoStruct(
            "openai.EmbedRequest",
            {"input": ANY, "model": STRING, "dimensions": INT, "encoding_format": STRING},
        ),
    )
}


class Fields:
    """The fields of a request's body, read into a Go struct: names without case, types checked."""

    def __init__(self, struct: str, body: bytes) -> None:
        self.given: dict[str, Any] = read(struct, body)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a field; the default if it is missing or null."""
        value = self.given.get(name)
        return default if value is None else value

    def has(self, name: str) -> bool:
        """Return whether a field was sent, even as null."""
        return name in self.given


def read(struct: str, body: bytes) -> dict[str, Any]:
    """Return the fields of a body; `struct` is the name of a Go struct, in the package `api` if it names none.

    Raises: ApiError: 400, a value does not fit; the message is Go's.
    """
    kind = STRUCTS[struct if "." in struct else f"api.{struct}"]
    try:
        try:
            return decode(kind, quick(body)) or {}
        except GoError:
            return decode(kind, exact(body)) or {}
    except GoError as fault:
        text = str(fault)
        raise ApiError(400, "missing request body" if text == EMPTY else text) from None

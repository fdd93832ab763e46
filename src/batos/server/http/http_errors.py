"""Errors as each kind of client reads them: a status and a body before the first byte, a frame after it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from batos.protocol.errors import (
    BatosError,
    BudgetExceeded,
    Busy,
    ContextOverflow,
    InternalError,
    NoServer,
    NotFound,
    OllamaError,
    OllamaTimeout,
    OllamaUnfit,
    OllamaUnreachable,
    Refused,
    TimedOut,
    Unauthorised,
    UsageError,
)

#: The kind of client that a path is for.
Face: TypeAlias = Literal["openai", "ollama", "mcp", "own"]


class UnknownModel(NotFound):
    """The door has no model of this name."""


class UnknownPath(NotFound):
    """The door has nothing at this path."""


class TooLarge(UsageError):
    """The body of a request is longer than what is taken."""


class LongHead(UsageError):
    """The head of a request is longer than what is taken."""


class WrongMethod(UsageError):
    """A path does not take requests of this method."""


class WrongMedia(UsageError):
    """The body is of a media type that this path does not take."""


class Forbidden(Refused):
    """The request comes from a page, or for a host, that is not ours."""


#: The status, OpenAI's type and OpenAI's code (None: ours) of each kind of error, the narrower kinds first.
_KINDS: Final[tuple[tuple[type[BatosError], int, str, str | None], ...]] = (
    (UnknownModel, 404, "invalid_request_error", "model_not_found"),
    (TooLarge, 413, "invalid_request_error", None),
    (LongHead, 431, "invalid_request_error", None),
    (WrongMedia, 415, "invalid_request_error", None),
    (WrongMethod, 405, "invalid_request_error", None),
    (Unauthorised, 401, "authentication_error", "invalid_api_key"),
    (Busy, 429, "rate_limit_error", "busy"),
    (BudgetExceeded, 400, "invalid_request_error", "budget"),
    (Refused, 403, "permission_error", "refused"),
    (NotFound, 404, "invalid_request_error", None),
    (UsageError, 400, "invalid_request_error", None),
    (ContextOverflow, 400, "invalid_request_error", "context_length_exceeded"),
    (OllamaTimeout, 504, "server_error", "deadline"),
    (OllamaUnreachable, 503, "server_error", None),
    (OllamaUnfit, 503, "server_error", "ollama_unreachable"),
    (OllamaError, 503, "server_error", None),
    (TimedOut, 504, "server_error", "deadline"),
    (NoServer, 503, "server_error", None),
    (InternalError, 500, "server_error", "internal"),
)


def _kind(error: BatosError) -> tuple[int, str, str]:
    """Return the status, the type and the code of an error; what is not in the list is a mission without an answer."""
    for cls, status, kind, code in _KINDS:
        if isinstance(error, cls):
            return status, kind, code or error.code
    return 503, "server_error", error.code


def status_of(error: BatosError) -> int:
    """Return the HTTP status of an error."""
    return _kind(error)[0]


def words_of(error: BatosError) -> str:
    """Return an error's message, ended by its remedy.

    >>> words_of(BatosError("the image is closed", remedy="Open it."))
    'the image is closed. Open it.'
    """
    message, remedy = error.message.strip(), error.remedy
    if not remedy or remedy == UsageError.remedy:  # that one is for who types commands
        return message
    return f"{message.rstrip('.')}. {remedy}"


def openai_error(error: BatosError) -> dict[str, Any]:
    """Return an error as OpenAI's clients read it, with all of its four keys."""
    _, kind, code = _kind(error)
    return {"error": {"message": words_of(error), "type": kind, "param": error.field, "code": code}}


def body_of(face: Face, error: BatosError) -> tuple[str, bytes]:
    """Return the media type and the body of an error for a kind of client."""
    if face == "own":
        return "text/plain; charset=utf-8", f"{words_of(error)}\n".encode("utf-8", "replace")
    value: Mapping[str, object] = openai_error(error) if face == "openai" else {"error": words_of(error)}
    if face == "mcp":
        value = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": words_of(error)}}
    return "application/json", json.dumps(value).encode()


def headers_of(error: BatosError, *, accepted: bool) -> Iterator[tuple[str, str]]:
    """Yield the headers of an error: whether and when a client is to ask again.

    A mission that was accepted is not asked a second time; `openai` repeats most errors by itself.
    """
    if isinstance(error, Unauthorised):
        yield "www-authenticate", "Bearer"
    if isinstance(error, Busy) and not accepted:
        yield "retry-after", "2"
    else:
        yield "x-should-retry", "false"


def face_of(path: str) -> Face:
    """Return the kind of client that a path is for.

    >>> face_of("/v1/models"), face_of("/api"), face_of("/apis"), face_of("/metrics")
    ('openai', 'ollama', 'own', 'own')
    """
    first = path.split("/", 2)[1:2]
    faces: Mapping[str, Face] = {"v1": "openai", "api": "ollama", "mcp": "mcp"}
    return faces.get(first[0], "own") if first else "own"

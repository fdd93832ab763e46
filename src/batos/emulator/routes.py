"""Which handler answers which path and method, and the router's own refusals."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from batos.emulator import answering, catalogue, control, embeds, openai
from batos.emulator.daemon import Daemon, refusal
from batos.emulator.http import Answer, Request, plain
from batos.emulator.replies import ApiError, Reply

Handler = Callable[[Daemon, Request], Awaitable[Answer]]
_ORIGINS = ("app://", "file://", "tauri://", "vscode-webview://", "vscode-file://")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "0.0.0.0")  # noqa: S104  # compared with, never listened on
_LOCAL_HOSTS = (".localhost", ".local", ".internal")


async def _root(daemon: Daemon, request: Request) -> Answer:
    daemon.note(request)
    return Reply(200, b"Ollama is running", "text/plain; charset=utf-8")


_ROUTES: dict[str, dict[str, Handler]] = {
    "/": {"GET": _root, "HEAD": _root},
    "/api/version": {"GET": catalogue.version, "HEAD": catalogue.version},
    "/api/tags": {"GET": catalogue.tags, "HEAD": catalogue.tags},
    "/api/ps": {"GET": catalogue.ps},
    "/api/show": {"POST": catalogue.show},
    "/api/pull": {"POST": catalogue.pull},
    "/api/create": {"POST": catalogue.create},
    "/api/copy": {"POST": catalogue.copy},
    "/api/delete": {"DELETE": catalogue.delete},
    "/api/chat": {"POST": answering.chat},
    "/api/generate": {"POST": answering.generate},
    "/api/embed": {"POST": embeds.embed},
    "/api/embeddings": {"POST": embeds.legacy},
    "/v1/chat/completions": {"POST": openai.chat},
    "/v1/completions": {"POST": openai.completions},
    "/v1/embeddings": {"POST": openai.embeddings},
    "/v1/models": {"GET": openai.listed},
}
_MODEL: dict[str, Handler] = {"GET": openai.retrieved}
_BLOBS: dict[str, Handler] = {"HEAD": catalogue.blob, "POST": catalogue.blob}
_METHODS = ("HEAD", "GET", "POST", "DELETE")
_CONTROL: dict[str, dict[str, Handler]] = {
    "/_emulator/fault": {"GET": control.fault, "POST": control.fault, "DELETE": control.fault},
    "/_emulator/log": {"GET": control.log},
    "/_emulator/state": {"GET": control.state},
    "/_emulator/registry": {"GET": control.registry, "POST": control.registry},
}


def streams(method: str, path: str) -> bool:
    """Whether the handler of a request reads its body in pieces."""
    return method == "POST" and path.startswith("/api/blobs/")


async def handle(daemon: Daemon, request: Request) -> Answer:
    """Answer one request, whatever it is."""
    if not _host_allowed(request.headers.get("host", "")):
        daemon.note(request)
        return Reply(403, content_type="")
    origin = request.headers.get("origin", "")
    if origin and not _origin_allowed(origin):
        daemon.note(request)
        return Reply(403, content_type="")
    methods = _find(daemon, request.path)
    handler = methods.get(request.method)
    try:
        if handler is None:
            daemon.note(request)
            return _unrouted(methods)
        answer = await handler(daemon, request)
    except ApiError as fault:
        daemon.note(request)
        answer = refusal(fault)
    daemon.note(request)  # where the handler did not: no request is answered before it is in the log
    request.entry["status"] = answer.status
    if origin and isinstance(answer, Reply):
        allowed = (("Access-Control-Allow-Origin", origin), ("Vary", "Origin"))
        return Reply(answer.status, answer.body, answer.content_type, (*answer.headers, *allowed))
    return answer


def _find(daemon: Daemon, path: str) -> dict[str, Handler]:
    if path.startswith("/api/blobs/") and path.count("/") == 3:
        return _BLOBS
    if path.startswith("/v1/models/") and path.count("/") == 3:
        return _MODEL
    if daemon.options.control and path in _CONTROL:
        return _CONTROL[path]
    return _ROUTES.get(path, {})


def _unrouted(methods: dict[str, Handler]) -> Reply:
    if not methods:
        return plain(404, "404 page not found")
    return plain(405, "405 method not allowed", ("Allow", ", ".join(sorted(methods, key=_METHODS.index))))


def _host_allowed(header: str) -> bool:
    """Whether a loopback listener answers to this Host: this machine by a number or a local name."""
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
    name = name.strip("[]").lower()
    if name in ("", "localhost", "127.0.0.1"):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return name.endswith(_LOCAL_HOSTS) or name == socket.gethostname().lower()
    return address.is_loopback or address.is_private or address.is_unspecified


def _origin_allowed(origin: str) -> bool:
    scheme, _, rest = origin.partition("://")
    if scheme in ("http", "https"):
        return rest.partition(":")[0] in _LOCAL_NAMES
    return origin.startswith(_ORIGINS)

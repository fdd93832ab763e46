"""The table of routes, with the router's redirects and refusals and the rules for other origins."""

from __future__ import annotations

import posixpath
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from html import escape
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import quote, unquote

from ollama_emulator.api import answering, control, embeds, listing, openai
from ollama_emulator.daemon import EmulatedDaemon, refusal
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.http.incoming import Answer, HttpRequest, plain
from ollama_emulator.remembering import short
from ollama_emulator.replies import HttpReply

Handler = Callable[[EmulatedDaemon, HttpRequest], Awaitable[Answer]]
_ORIGINS = ("app://", "file://", "tauri://", "vscode-webview://", "vscode-file://")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "0.0.0.0")  # noqa: S104  # compared with, never listened on
_HOSTS = ("", "localhost")
_PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))
_STAINLESS = (
    "Arch Async Custom-Poll-Interval Helper-Method Lang Os Package-Version Poll-Helper Retry-Count Runtime "
    "Runtime-Version Timeout"
)
_ASKED_HEADERS = (
    *("Authorization", "Content-Type", "User-Agent", "Accept", "X-Requested-With", "OpenAI-Beta"),
    *(f"X-Stainless-{name}" for name in _STAINLESS.split()),
)
_PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS"),
    (
        "Access-Control-Allow-Headers",
        ",".join(_ASKED_HEADERS),
    ),
    ("Access-Control-Max-Age", "43200"),
    ("Vary", "Origin"),
    ("Vary", "Access-Control-Request-Method"),
    ("Vary", "Access-Control-Request-Headers"),
)
_LOCAL_HOSTS = (".localhost", ".local", ".internal")


async def _root(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    daemon.note(request)
    return HttpReply(200, b"Ollama is running", "text/plain; charset=utf-8")


_ROUTES: dict[str, dict[str, Handler]] = {
    "/": {"GET": _root, "HEAD": _root},
    "/api/version": {"GET": listing.version, "HEAD": listing.version},
    "/api/tags": {"GET": listing.tags, "HEAD": listing.tags},
    "/api/ps": {"GET": listing.ps},
    "/api/show": {"POST": listing.show},
    "/api/pull": {"POST": listing.pull},
    "/api/create": {"POST": listing.create},
    "/api/copy": {"POST": listing.copy},
    "/api/delete": {"DELETE": listing.delete},
    "/api/chat": {"POST": answering.chat},
    "/api/generate": {"POST": answering.generate},
    "/api/embed": {"POST": embeds.embed},
    "/api/embeddings": {"POST": embeds.legacy},
    "/v1/chat/completions": {"POST": openai.chat},
    "/v1/completions": {"POST": openai.completions},
    "/v1/embeddings": {"POST": openai.embeddings},
    "/v1/models": {"GET": openai.list_models},
}
_MODEL: dict[str, Handler] = {"GET": openai.retrieve_model}
_BLOBS: dict[str, Handler] = {"HEAD": listing.blob, "POST": listing.blob}
_UNQUOTED = "/:@!$&'()*+,;=~"
_METHODS = ("HEAD", "GET", "POST", "DELETE")
_CONTROL: dict[str, dict[str, Handler]] = {
    "/_emulator/fault": {"GET": control.fault, "POST": control.fault, "DELETE": control.fault},
    "/_emulator/log": {"GET": control.log},
    "/_emulator/state": {"GET": control.state},
    "/_emulator/registry": {"GET": control.registry, "POST": control.registry},
}


def streams(method: str, path: str) -> bool:
    """Return whether the handler of a request reads the body itself, in pieces."""
    return method == "POST" and path.startswith("/api/blobs/")


async def handle(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Answer any request: call its handler, or refuse it."""
    path = unquote(request.path)
    methods = _find(daemon, path)
    moved = _redirect_cleaned(daemon, request, path)
    if moved is not None:
        daemon.note(request)
        return moved
    allowed = _check_origin(daemon, request)
    if isinstance(allowed, HttpReply):
        daemon.note(request)
        return replace(allowed, headers=(*_allow(methods), *allowed.headers)) if allowed.status == 204 else allowed
    handler = methods.get(request.method)
    try:
        if handler is None:
            daemon.note(request)
            answer: Answer = _unrouted_reply(methods)
        else:
            answer = await handler(daemon, request)
    except ApiError as fault:
        daemon.note(request)
        answer = refusal(fault)
    daemon.note(request)  # if the handler did not: every request is logged before its reply is sent
    request.entry["status"] = answer.status
    return replace(answer, headers=(*answer.headers, *allowed)) if allowed else answer


def _find(daemon: EmulatedDaemon, path: str) -> dict[str, Handler]:
    """Return the handlers of a path by HTTP method, {} for an unknown path."""
    if path.startswith(("/api/blobs/", "/v1/models/")) and path.count("/") == 3 and not path.endswith("/"):
        return _BLOBS if path.startswith("/api") else _MODEL
    if daemon.options.control and path in _CONTROL:
        return _CONTROL[path]
    return _ROUTES.get(path, {})


def _redirect_cleaned(daemon: EmulatedDaemon, request: HttpRequest, path: str) -> HttpReply | None:
    """Return the router's redirect to the path without needless dots and slashes, or None."""
    clean = posixpath.normpath("/" + path.lstrip("/")) if path else "/"
    if path.endswith("/") and clean != "/":
        clean += "/"
    if clean != path:
        return _redirect(request, clean, 301)
    bare = path.rstrip("/")
    if bare != path and bare and request.method in _find(daemon, bare):
        return _redirect(request, bare, 301 if request.method == "GET" else 307)
    return None


def _redirect(request: HttpRequest, path: str, status: int) -> HttpReply:
    """Return the redirect to a path, with Go's HTML for a GET."""
    where = (("Location", quote(path, safe=_UNQUOTED)),)
    if request.method not in ("GET", "HEAD"):
        return HttpReply(status, content_type="", headers=where)
    words = {301: "Moved Permanently", 307: "Temporary Redirect"}[status]
    text = f'<a href="{escape(quote(path, safe=_UNQUOTED))}">{words}</a>.\n\n' if request.method == "GET" else ""
    return HttpReply(status, text.encode(), "text/html; charset=utf-8", where)


def _unrouted_reply(methods: dict[str, Handler]) -> HttpReply:
    """Return 404 for an unknown path, or 405 for a path that takes other methods."""
    if not methods:
        return plain(404, "404 page not found")
    return plain(405, "405 method not allowed", *_allow(methods))


def _allow(methods: dict[str, Handler]) -> tuple[tuple[str, str], ...]:
    return (("Allow", ", ".join(sorted(methods, key=_METHODS.index))),) if methods else ()


def _check_origin(daemon: EmulatedDaemon, request: HttpRequest) -> HttpReply | tuple[tuple[str, str], ...]:
    """Return the headers of a reply to a page of another origin, or the refusal of the origin or the host."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    told: tuple[tuple[str, str], ...] = ()
    if origin and origin not in (f"http://{host}", f"https://{host}"):
        if not _is_default_origin(origin) and not _is_configured_origin(daemon, origin):
            return HttpReply(403, content_type="")
        if request.method == "OPTIONS":
            return HttpReply(204, content_type="", headers=(*_PREFLIGHT, ("Access-Control-Allow-Origin", origin)))
        told = (("Vary", "Origin"), ("Access-Control-Allow-Origin", origin))
    if not _is_loopback(daemon.options.host):
        return told
    numbered = _address(host)
    if numbered is not None and _is_local(numbered):
        return told
    if (
        _host_name(host) in _HOSTS
        or _host_name(host).endswith(_LOCAL_HOSTS)
        or _host_name(host) == socket.gethostname().lower()
    ):
        return HttpReply(204, content_type="", headers=told) if request.method == "OPTIONS" else told
    return HttpReply(403, content_type="", headers=told)


def _host_name(header: str) -> str:
    """Return the host in a Host header, without its port."""
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() and ":" in header else header
    return name.strip("[]").lower()


@short(64, 256)
def _address(header: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address in a Host header, None for a name."""
    try:
        return ip_address(_host_name(header))
    except ValueError:
        return None


def _is_local(address: IPv4Address | IPv6Address) -> bool:
    if address.is_loopback or address.is_unspecified:
        return True
    return any(address in network for network in _PRIVATE if network.version == address.version)


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_default_origin(origin: str) -> bool:
    """Test if an origin is allowed without OLLAMA_ORIGINS: a local host, or a scheme of an app."""
    scheme, _, rest = origin.partition("://")
    if scheme in ("http", "https"):
        return rest.partition(":")[0] in _LOCAL_NAMES
    return origin.startswith(_ORIGINS)


def _is_configured_origin(daemon: EmulatedDaemon, origin: str) -> bool:
    """Return whether OLLAMA_ORIGINS allows an origin; a `*` in a pattern stands for any text."""
    for pattern in (daemon.options.environ or {}).get("OLLAMA_ORIGINS", "").strip(" \"'").split(","):
        start, wild, end = pattern.strip().partition("*")
        if origin == pattern.strip() or (wild and origin.startswith(start) and origin.endswith(end)):
            return True
    return False

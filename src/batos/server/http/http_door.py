"""The HTTP door of a server: opened with it, guarded, and closed within seconds however many streams are open."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from batos.client.addresses import Address, parse_listening
from batos.client.keys import Keyring
from batos.config import Settings
from batos.protocol.errors import BatosError, Busy, ConfigError, InternalError
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.guests import guest_share
from batos.server.http import http_errors
from batos.server.http.client_missions import ClientMissions
from batos.server.http.connections import Connection, DoorLimits, Listener
from batos.server.http.guard import Guard, Knock, read_headers
from batos.server.http.histories import Histories
from batos.server.http.http_errors import LongHead, UnknownPath, WrongMethod
from batos.server.http.http_exchange import BodyMemory, Exchange, Left
from batos.server.http.mcp_endpoint import McpEndpoint
from batos.server.http.metrics import Metrics
from batos.server.http.ollama_chat import OllamaChat
from batos.server.http.ollama_lists import OllamaLists
from batos.server.http.openai_chat import OpenAI
from batos.server.http.openai_responses import Responses
from batos.terminal import logs

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

#: Seconds that streams have to end when the server stops.
_CLOSING: Final = 2.0
_MCP: Final = "/mcp"
#: Answers a request; the second kind is given the body as an object, the third the rest of the path.
Plain: TypeAlias = Callable[[Exchange], Awaitable[None]]
Bodied: TypeAlias = Callable[[Exchange, dict[str, Any]], Awaitable[None]]
Named: TypeAlias = Callable[[Exchange, str], Awaitable[None]]


class HttpDoor:
    """Serves one dispatcher over HTTP. Nothing that a client sends, or does not read, stops it or the others."""

    def __init__(
        self, dispatcher: Dispatcher, keyring: Keyring, settings: Settings, limits: DoorLimits | None = None
    ) -> None:
        self._dispatcher, self._settings, self._limits = dispatcher, settings, limits or DoorLimits()
        self._guard = Guard(keyring, _list(settings.http_hosts), _list(settings.http_origins))
        histories, beat = Histories(dispatcher.uvm.image), self._limits.beat
        self.asking = ClientMissions(dispatcher, settings, histories, beat, self._guard.is_person)
        self._room = BodyMemory(self._limits)
        self._listener = Listener(self._serve, self._limits, self._guard.admits)
        self._under_way: Counter[str] = Counter()
        self._is_closing = False
        #: Requests by their kind of client and their status, and when one was heard last, by the loop's clock.
        self.requests: Counter[tuple[str, int]] = Counter()
        self.heard = 0.0
        self._mcp = McpEndpoint(self.asking, self._limits.beat)
        self._gets, self._posts, self._get_rests = self._routes()

    @property
    def under_way(self) -> int:
        """Count the requests that are under way."""
        return self._under_way.total()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Listen until the block ends, and yield the address, as `http://127.0.0.1:7719`.

        Raises: ConfigError: it cannot listen where the settings say, or would be open beyond this machine.
        """
        where, tls = address_of(self._settings), tls_of(self._settings)
        try:
            port = await self._listener.listen(where.host, where.port, tls)
        except OSError as error:
            raise _taken_error(where, error) from error
        scheme = "http" if tls is None else "https"
        try:
            yield f"{scheme}://{where.at(port).near.removeprefix('tcp://')}"
        finally:
            self._is_closing = True
            self._listener.stop_accepting()
            self.asking.stop()
            self._mcp.stop()
            await self._listener.close(_CLOSING)
            await self.asking.settle()

    # -- one request

    async def _serve(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Serve one request, as an ASGI application."""
        if scope["type"] != "http":
            raise InternalError(f"the door was asked for {scope['type']!r} and serves HTTP")
        connection = cast("Connection", scope["state"]["connection"])
        connection.task = asyncio.current_task()
        self.heard = asyncio.get_running_loop().time()
        headers = tuple(scope["headers"])
        client, server = scope["client"], scope["server"]
        knock = Knock(
            scope["method"], scope["path"], scope["scheme"], headers,
            client[0] if client else "", _bracket(server[0]) if server else "",
        )  # fmt: skip
        base = f"{knock.scheme}://{knock.first(b'host')}"
        exchange = Exchange(knock.method, knock.path, read_headers(headers), "", base, connection, receive, send)
        try:
            await self._answer(exchange, knock)
        except (Left, asyncio.CancelledError):
            if exchange.leave is not None:
                exchange.leave()
            connection.transport.abort()
        except BatosError as error:
            await self._refuse(exchange, error)
        except Exception as error:  # a fault of ours is told as one, and harms nobody else
            logs.fault(error, loud=False)
            await self._refuse(exchange, InternalError(f"{type(error).__name__}: {error}"))
        finally:
            self.requests[http_errors.face_of(exchange.path), exchange.status or 499] += 1

    async def _answer(self, exchange: Exchange, knock: Knock) -> None:
        if sum(len(name) + len(value) for name, value in knock.headers) > self._limits.head:
            raise LongHead("the head of this request is too large", remedy="Send fewer headers.")
        admitted = await self._guard.admit(knock)
        exchange.admit(admitted.path, admitted.came_in, dict(admitted.cors))
        if knock.method == "OPTIONS" and admitted.cors:
            await exchange.reply(204, "text/plain", b"")
            return
        most = self._limits.requests
        if self._under_way[admitted.came_in] >= (guest_share(most) if "key" in admitted.came_in[:3] else most):
            raise Busy("too many requests of this client are under way", remedy="Wait for one of them, then ask again.")
        self._under_way[admitted.came_in] += 1
        try:
            await self._route(exchange)
        finally:
            self._under_way[admitted.came_in] -= 1
            if not self._under_way[admitted.came_in]:
                del self._under_way[admitted.came_in]

    async def _refuse(self, exchange: Exchange, error: BatosError) -> None:
        """Send an error in the form of the path's clients; where a reply has begun, its connection is cut."""
        if exchange.status:
            exchange.connection.transport.abort()
            return
        media, body = http_errors.body_of(http_errors.face_of(exchange.path), error)
        exchange.more.update(http_errors.headers_of(error, accepted=exchange.is_accepted))
        await exchange.reply(http_errors.status_of(error), media, body)

    # -- paths

    def _routes(self) -> tuple[Mapping[str, Plain], Mapping[str, Bodied], Mapping[str, Named]]:
        """Return what answers each path, by method; the last of them take the rest of a path as a name."""
        openai = OpenAI(self.asking)
        responses = Responses(self.asking)
        ollama, lists = OllamaChat(self.asking), OllamaLists(self.asking)
        gets: dict[str, Plain] = {
            "/": _greet, "/healthz": self._health, "/v1/models": openai.models,
            "/metrics": Metrics(self.asking, self.requests).show, "/api/version": lists.version,
            "/api/tags": lists.tags, "/api/ps": lists.ps,
        }  # fmt: skip
        posts: dict[str, Bodied] = {
            "/v1/chat/completions": openai.chat, "/v1/embeddings": openai.embeddings,
            "/v1/responses": responses.create, "/api/chat": ollama.chat,
            "/api/generate": ollama.generate, "/api/show": lists.show, "/api/embed": lists.embed,
            "/api/embeddings": lists.embeddings, "/api/pull": lists.pull, **lists.refusals(),
        }  # fmt: skip
        rests: dict[str, Named] = {
            "/v1/models/": openai.model, "/m/": self._mission, "/v1/responses/": responses.show,
        }  # fmt: skip
        self._cancel = responses.cancel
        return gets, posts, rests

    async def _route(self, exchange: Exchange) -> None:
        path, method = exchange.path, "GET" if exchange.method == "HEAD" else exchange.method
        method = "POST" if path == "/api/delete" and method == "DELETE" else method
        if method == "GET" and (plain := self._gets.get(path)) is not None:
            await plain(exchange)
        elif method == "POST" and (bodied := self._posts.get(path)) is not None:
            await bodied(exchange, await exchange.read_object(self._room))
        elif method == "POST" and path == _MCP:
            await self._mcp.post(exchange, self._room)
        elif path in self._gets or path in self._posts or path == _MCP:
            known = "GET" if path in self._gets else "POST"
            raise WrongMethod(f"{path} does not take {exchange.method}", remedy=f"Use {known}.")
        elif method == "POST" and path.startswith("/v1/responses/") and path.endswith("/cancel"):
            await self._cancel(exchange, path.removeprefix("/v1/responses/").removesuffix("/cancel"))
        elif method == "GET" and (found := next((each for each in self._get_rests if path.startswith(each)), None)):
            await self._get_rests[found](exchange, path.removeprefix(found))
        else:
            raise UnknownPath(f"there is nothing at {path[:200]}", remedy="See `batos help clients` for what there is.")

    async def _health(self, exchange: Exchange) -> None:
        status = 503 if self._is_closing else 200
        await exchange.reply_json({"ok": not self._is_closing}, status)

    async def _mission(self, exchange: Exchange, name: str) -> None:
        """Show a mission, at the address that annotations name."""
        await exchange.reply_json(await self.asking.call("show", {"mission": name[:64]}, exchange.came_in))


async def _greet(exchange: Exchange) -> None:
    """Answer as clients of Ollama look for a server."""
    await exchange.reply(200, "text/plain; charset=utf-8", b"Ollama is running")


def _list(given: str) -> list[str]:
    return [each for each in (part.strip() for part in given.split(",")) if each]


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def address_of(settings: Settings) -> Address:
    """Return where the door listens. Raises: ConfigError: it is no address, or open beyond this machine without TLS."""
    text = settings.http.removeprefix("http://").removeprefix("https://").rstrip("/")
    try:
        where = parse_listening(f"tcp://{text}", "http")
    except ConfigError as error:
        raise error.advise("Give it as ADDRESS:PORT, as 127.0.0.1:7719, or `off`.") from None
    if not (where.is_loopback or settings.http_cert or settings.http_proxy == "tls"):
        raise ConfigError(
            f"http is {text}: beyond loopback everybody on the way could read it", field="http",
            remedy="Name `http_cert` and `http_key`; or `http_proxy = \"tls\"` where only a proxy with TLS reaches it.",
        )  # fmt: skip
    return where


def tls_of(settings: Settings) -> ssl.SSLContext | None:
    """Return what encrypts the door's connections; None: nothing does. Raises: ConfigError: a file is of no use."""
    if not settings.http_cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(Path(settings.http_cert), Path(settings.http_key or settings.http_cert))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"http_cert: the certificate cannot be used: {error}", field="http_cert",
            remedy="Name the files of a certificate and its key in PEM.",
        ) from error  # fmt: skip
    return context


def _taken_error(where: Address, error: OSError) -> ConfigError:
    text = str(where).removeprefix("tcp://")
    return ConfigError(
        f"http: nothing can listen at {text}: {error.strerror or error}", field="http",
        remedy="Stop what listens there, or name another address: --http 127.0.0.1:PORT, or `http` in batos.toml.",
    )  # fmt: skip

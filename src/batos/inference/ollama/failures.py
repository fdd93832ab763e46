"""Converts every failure of the client, the transport or the daemon into our error tree, by the texts of refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
import pydantic

from batos.inference.ollama.client import MOST, ResponseError
from batos.protocol.errors import (
    AnswerError,
    AnswerUnreadable,
    BatosError,
    ContextOverflow,
    ModelLoadFailed,
    ModelMissing,
    ModelUnsuitable,
    OllamaBusy,
    OllamaError,
    OllamaTimeout,
    OllamaUnfit,
    OllamaUnreachable,
    PullFailed,
    RequestRejected,
    RunnerDied,
    StreamCut,
    UsageError,
    WireError,
)

DEFECT = "This request should never have been sent, or a proxy cut it: please report it with the log."
_SCHEMA = "This is a defect of the decision's schema: please report it."
_NAME = "Write the model's name as `ollama list` shows it: model:tag."
_KEEP = 'Write keep_alive as seconds (a number), or as a duration with its unit, such as "5m".'
_EMBEDDER = "Name an embedding model as `embedder` in mind.toml, such as all-minilm."
_TALKER = "Name a model that answers questions in the codex: this one only embeds."
_PROGRAM = "Install Ollama again: a part of it is missing."
_NO_TRUST = "The registry has no HTTPS that the daemon trusts: pull by hand, or name another one."
_ACCOUNT = "It asks for an account: `ollama signin` on the machine of the daemon, or name another model."
_ROOM = "Free space on the disk where the daemon keeps its models, then try again."


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """A part of what the daemon says, in lower case; "" for a remedy leaves that of the error's class."""

    sign: str
    kind: type[OllamaError]
    remedy: str = ""
    field: str | None = None


def _patterns(kind: type[OllamaError], *signs: str) -> tuple[ErrorPattern, ...]:
    return tuple(ErrorPattern(sign, kind) for sign in signs)


#: The first that occurs in a text decides.
SAYINGS: tuple[ErrorPattern, ...] = (
    *_patterns(ContextOverflow, "exceeds the available context size", "the input length exceeds the context length"),
    *_patterns(ContextOverflow, "the prompt is longer than the context length"),
    *_patterns(OllamaBusy, "server busy"),
    ErrorPattern("binary not found", OllamaUnfit, _PROGRAM),
    ErrorPattern("requires mlx support", OllamaUnfit, "Name another model in the codex: this one needs MLX."),
    ErrorPattern(
        "newer version of ollama", OllamaUnfit, "Install the newest Ollama, or name another model in the codex."
    ),
    *_patterns(ModelLoadFailed, "process has terminated", "reported out-of-memory during startup", "request canceled"),
    *_patterns(ModelLoadFailed, "timed out waiting for llama-server", "requires more system memory"),
    *_patterns(ModelLoadFailed, "error starting llama-server"),
    *_patterns(AnswerUnreadable, "output that does not match the expected"),
    *_patterns(RunnerDied, "an error was encountered while running the model", "has unexpectedly stopped"),
    *_patterns(RunnerDied, "process no longer running", "unexpected server status", "reading llama-server"),
    *_patterns(RunnerDied, "unmarshalling llama-server", "apply-template error", "health resp"),
    *_patterns(OllamaBusy, "no slots available"),
    *_patterns(ModelLoadFailed, "out-of-memory", "out of memory"),
    # Refusals because of the model's abilities.
    ErrorPattern(
        "does not support thinking",
        ModelUnsuitable,
        "Write `think = false` in the persona's options, or name a model that can think.",
        "think",
    ),
    ErrorPattern("does not support tools", ModelUnsuitable, "Name a model that can call tools in the codex.", "tools"),
    ErrorPattern("does not support multimodal", ModelUnsuitable, "Ask without images, or name a model that sees."),
    ErrorPattern("does not support embeddings", ModelUnsuitable, _EMBEDDER, "model"),
    ErrorPattern("does not support chat", ModelUnsuitable, _TALKER, "model"),
    ErrorPattern("does not support generate", ModelUnsuitable, _TALKER, "model"),
    ErrorPattern("does not support insert", ModelUnsuitable, "", "suffix"),
    ErrorPattern("raw mode does not support", RequestRejected, DEFECT),
    ErrorPattern("does not support", ModelUnsuitable, "", "model"),
    ErrorPattern("loras are not yet implemented", ModelUnsuitable, "Name a base that takes adapters.", "adapters"),
    # A pull.
    ErrorPattern(
        "pull model manifest: file does not exist", ModelMissing, "Correct the model's name in the codex.", "model"
    ),
    ErrorPattern("insecure protocol http", RequestRejected, _NO_TRUST, "model"),
    ErrorPattern("tls: ", RequestRejected, _NO_TRUST, "model"),
    ErrorPattern("x509: ", RequestRejected, _NO_TRUST, "model"),
    ErrorPattern("unauthorized", RequestRejected, _ACCOUNT, "model"),
    ErrorPattern("no space left on device", RequestRejected, _ROOM),
    ErrorPattern("file must be downloaded again", PullFailed, "The download was damaged and is discarded: pull again."),
    ErrorPattern(
        "max retries exceeded", PullFailed, "The registry does not answer: pull later; the pulled part is kept."
    ),
    *_patterns(PullFailed, "pull model manifest:", "dial tcp", "download stalled"),
    # Names, values and bodies.
    ErrorPattern(
        "cloud is disabled", RequestRejected, "Only local models are used: name another in the codex.", "model"
    ),
    ErrorPattern("not both:", RequestRejected, _NAME, "model"),
    ErrorPattern("invalid model name", RequestRejected, _NAME, "model"),
    ErrorPattern("model is required", RequestRejected, _NAME, "model"),
    ErrorPattern('" is invalid', RequestRejected, _NAME, "model"),
    ErrorPattern('option "', RequestRejected, "Correct that option in the codex.", "options"),
    ErrorPattern("time: ", RequestRejected, _KEEP, "keep_alive"),
    ErrorPattern("unsupported type: ", RequestRejected, _KEEP, "keep_alive"),
    ErrorPattern(
        "invalid think value", RequestRejected, "Write `think` as true or false in the persona's options.", "think"
    ),
    ErrorPattern("invalid format:", RequestRejected, _SCHEMA, "format"),
    ErrorPattern("json_schema", RequestRejected, _SCHEMA, "format"),
    ErrorPattern("grammar", RequestRejected, _SCHEMA, "format"),
    ErrorPattern("top_logprobs must be", RequestRejected, DEFECT, "top_logprobs"),
    ErrorPattern("invalid input type", RequestRejected, DEFECT, "input"),
    ErrorPattern("missing request body", RequestRejected, DEFECT),
    ErrorPattern("unexpected eof", RequestRejected, DEFECT),
    ErrorPattern("invalid character ", RequestRejected, DEFECT),
    ErrorPattern("json: cannot unmarshal", RequestRejected, DEFECT),
    ErrorPattern(" is too short - '", RequestRejected, DEFECT),
    # Making a model.
    ErrorPattern(
        "only one adapter is currently supported",
        RequestRejected,
        "Give one GGUF adapter: merge them into one before.",
        "adapters",
    ),
    ErrorPattern(
        "unsupported architecture",
        RequestRejected,
        "Only bases of the llama and gemma2 families take an adapter as safetensors: convert it to GGUF.",
        "adapters",
    ),
    ErrorPattern(
        "adapters are no longer supported",
        OllamaUnfit,
        "Merge the adapter into its base (PEFT: merge_and_unload), convert that to GGUF, and name it in the codex.",
        "adapters",
    ),
    ErrorPattern(
        "not in gguf format", RequestRejected, "The file is not GGUF, or was cut: convert or copy it again.", "adapters"
    ),
    ErrorPattern(
        "adapter_config.json: no such file",
        RequestRejected,
        "Put adapter_config.json beside the adapter's weights.",
        "adapters",
    ),
    ErrorPattern("unknown type", RequestRejected, "Give the adapter's files as .safetensors or .gguf.", "adapters"),
    ErrorPattern(
        "no such file or directory",
        RequestRejected,
        "The daemon lost a file of its store: run `batos genesis`, which sends and pulls missing files.",
    ),
    ErrorPattern("digest mismatch", RequestRejected, "The file changed while it was uploaded: try again.", "digest"),
    ErrorPattern("invalid digest format", RequestRejected, DEFECT, "digest"),
    ErrorPattern("file path must be relative", RequestRejected, DEFECT, "files"),
    ErrorPattern("neither 'from' or 'files'", RequestRejected, DEFECT, "from"),
    ErrorPattern("unsupported quantization type", RequestRejected, "Name one of those that it lists.", "quantize"),
    ErrorPattern("template error:", RequestRejected, "Correct the model's template.", "template"),
    ErrorPattern("template: ", RequestRejected, "Correct the model's template.", "template"),
)

_OPTION = re.compile(r'option "(\w+)" must be')
_GO_FIELD = re.compile(r"Go struct field \w+\.([\w.]+) of type")


def saying_in(text: str) -> ErrorPattern | None:
    """Return the known refusal that a text contains, or None."""
    low = text.lower()
    return next((saying for saying in SAYINGS if saying.sign in low), None)


def field_in(text: str) -> str | None:
    """Return the field of the request that the text itself names, in our spelling, or None.

    >>> field_in('option "num_ctx" must be of type integer')
    'options.num_ctx'
    """
    option = _OPTION.search(text)
    if option:
        return f"options.{option[1]}"
    field = _GO_FIELD.search(text)
    return field[1] if field else None


_TEXT_LIMIT = 600

_BY_STATUS: dict[int, type[OllamaError]] = {
    499: ModelLoadFailed,
    501: OllamaUnfit,
    502: OllamaUnreachable,
    503: OllamaBusy,
    504: OllamaUnreachable,
}

_NOT_OLLAMA = "Check that OLLAMA_HOST names an Ollama daemon, 0.30 or newer, and that there is no proxy between."
_TRUSTED = "Set SSL_CERT_FILE to the certificates that the daemon's is signed by, or use http:// in OLLAMA_HOST."
_PLAIN_HTTP = "Write http:// instead of https:// in OLLAMA_HOST: the server there does not use TLS."
_GOES_ON = "Run `batos genesis` again: the part that was pulled is kept, and the pull continues from there."
_OTHER_HOST = "Use the daemon's IP address in OLLAMA_HOST, or a name that it knows as its own."


@dataclass(frozen=True, slots=True)
class DaemonPeer:
    """The daemon of a call: its address, and the seconds that a connection to it may take."""

    url: str
    connect: float


def translate(raw: Exception, peer: DaemonPeer, *, model: str = "", began: bool = False) -> BatosError:
    """Convert an exception of the client library; `began` says that a line of the answer had been received.

    Anything unknown becomes WireError: the daemon, or a proxy before it, did not speak the protocol.
    """
    if isinstance(raw, BatosError):
        return raw
    if _is_of_request(raw):
        return UsageError(f"this cannot be sent to Ollama: {_fact(raw)}", remedy="Correct the request or its options.")
    if isinstance(raw, ResponseError):
        return refusal(raw.error, raw.status_code, model)
    if isinstance(raw, httpx.TimeoutException):
        return OllamaTimeout("connect", peer.connect)
    if isinstance(raw, httpx.RemoteProtocolError):
        return _broken_protocol(str(raw))
    if isinstance(raw, (httpx.ConnectError, httpx.NetworkError, ConnectionError)):
        return _connection_error(raw, peer, began)
    return WireError(f"Ollama sent what is not its protocol: {_fact(raw)}")


def progress_error(raw: Exception, peer: DaemonPeer, *, model: str, began: bool) -> BatosError:
    """Convert an exception of a pull or create, which can be resumed after a cut."""
    failed = translate(raw, peer, model=model, began=began)
    return failed.advise(_GOES_ON) if isinstance(failed, StreamCut) else failed


def refusal(error: object, status: int | None, model: str = "") -> OllamaError:
    """Return the error for a refusal. `error` is text or the client's dict; inside a stream the status is -1."""
    text, detail = unfold(error)
    code = None if status is None or status < 0 else status
    if detail.get("type") == "exceed_context_size_error" or "n_prompt_tokens" in detail:
        return ContextOverflow(_count(detail, "n_prompt_tokens"), _count(detail, "n_ctx"))
    saying = None if code in (502, 504) else saying_in(text)  # those are not the daemon's
    if saying is not None:
        return _pattern_error(saying, text, code, model)
    if code == 404 and "model" in text.lower() and "not found" in text.lower():
        return ModelMissing(model, text)
    if code in (404, 405):
        return OllamaUnfit(f"the address answers but lacks what is asked for: {text or code}", remedy=_NOT_OLLAMA)
    if code in _BY_STATUS:
        kind = _BY_STATUS[code]
        return kind(text or f"{(kind.__doc__ or kind.code).partition(chr(10))[0].rstrip('.')} ({code})")
    if code is not None and code < 400:
        return WireError(f"Ollama answered with the status {code}, which is not in its protocol")
    if code == 403 and not text:
        return RequestRejected("the daemon refuses this host name (403)", code, remedy=_OTHER_HOST)
    return RequestRejected(f"Ollama refused: {text or 'it gave no reason'}", code)


def unfold(error: object) -> tuple[str, Mapping[str, object]]:
    """Return text and details of the daemon's `error` value: errors of llama-server come as JSON text inside it.

    `'{"error":{"code":400,"message":"too long","n_ctx":256}}'` -> `("too long", {"code": 400, ...})`.
    """
    detail: Mapping[str, object] = {}
    for _ in range(4):
        if isinstance(error, str) and error.lstrip().startswith("{"):
            try:
                error = json.loads(error)
            except (ValueError, RecursionError):
                break
        if not isinstance(error, Mapping):
            break
        inner = error.get("error")
        if inner is None:
            detail = error
            inner = error.get("message", "")
            error = inner if isinstance(inner, str) and inner else _dump(dict(detail))
            break
        error = inner
    text = error if isinstance(error, str) else _dump(error)
    return _clip(text.strip()), detail


def unfinished_answer(text: str = "") -> AnswerError:
    """Return the error for a stream that ended without `done`, or a whole reply with `done: false`."""
    came = f" after {len(text)} characters" if text else ""
    return StreamCut(f"the answer ended{came} without the daemon saying that it was done")


def unfinished_pull(model: str, status: str) -> AnswerError:
    """Return the error for a pull or create that ended before its success; `status` is its last line, "" if none."""
    return StreamCut(f"the daemon stopped reporting on {model!r} at {status or 'nothing'!r}", remedy=_GOES_ON)


def _pattern_error(saying: ErrorPattern, text: str, code: int | None, model: str) -> OllamaError:
    """Return the error for a known text, with its remedy and the field it is about."""
    if saying.kind is ContextOverflow:
        return ContextOverflow(None, None, text)
    field = field_in(text) or saying.field
    if saying.kind is ModelMissing:
        return ModelMissing(model, f"the registry has no model {model!r}", remedy=saying.remedy)
    if saying.kind is RequestRejected:
        return RequestRejected(f"Ollama refused: {text}", code, remedy=saying.remedy, field=field)
    return saying.kind(text, remedy=saying.remedy, field=field)


def _is_of_request(raw: Exception) -> bool:
    """Test if the client refused to send the request: a value has the wrong type, or JSON cannot hold it."""
    if isinstance(raw, pydantic.ValidationError):
        return raw.title.endswith(("Request", "Message", "Options"))
    return isinstance(raw, TypeError) and "not JSON serializable" in str(raw)


def _broken_protocol(said: str) -> OllamaError:
    if "without sending complete message body" in said:
        return StreamCut("the connection closed in the middle of the answer")
    if "disconnected without sending a response" in said:
        return OllamaUnreachable("Ollama closed the connection without an answer")
    return WireError(f"the server does not speak HTTP: {_clip(said)}")


def _connection_error(raw: Exception, peer: DaemonPeer, began: bool) -> OllamaError:
    if began:
        return StreamCut("the connection was lost in the middle of the answer")
    # For whole calls the client hides httpx's error behind a builtin one of its own.
    inner = raw.__context__ if isinstance(raw.__context__, httpx.ConnectError) else raw
    if not isinstance(inner, httpx.ConnectError):
        return OllamaUnreachable(f"the connection to {peer.url} was lost before it answered")
    said = str(inner).lower()
    if "certificate" in said or "ssl" in said:
        remedy = _TRUSTED if "certificate" in said else _PLAIN_HTTP
        return OllamaUnreachable(f"no trusted connection to {peer.url}: {_clip(str(inner))}", remedy=remedy)
    if "name or service" in said or "nodename" in said or "name resolution" in said:
        return OllamaUnreachable(f"the host of {peer.url} cannot be resolved")
    return OllamaUnreachable(f"nothing listens at {peer.url}")


def _fact(raw: Exception) -> str:
    if isinstance(raw, pydantic.ValidationError):
        first = raw.errors(include_url=False, include_context=False)[0]
        given = first.get("input")
        if isinstance(given, Mapping) and "error" in given:
            return "an error without a text"
        return _clip(f"{raw.title}: {first['msg']} at {'.'.join(map(str, first['loc']))}")
    return _clip(f"{type(raw).__name__}: {raw}")


def _count(detail: Mapping[str, object], key: str) -> int | None:
    value = detail.get(key)
    return value if type(value) is int and 0 <= value <= MOST else None


def _clip(text: str) -> str:
    text = text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}..."
    if text.isprintable():
        return text
    # Characters that steer a terminal, or that no file can hold, are left out of messages.
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)


def _dump(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except (ValueError, RecursionError):
        return "an error without a text"

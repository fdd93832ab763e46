"""Texts of the daemon's refusals: each with the error that it means, its remedy, and the field that it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass

from batos.protocol.errors import (
    AnswerUnreadable,
    ContextOverflow,
    ModelLoadFailed,
    ModelMissing,
    ModelUnsuitable,
    OllamaBusy,
    OllamaError,
    OllamaUnfit,
    PullFailed,
    RequestRejected,
    RunnerDied,
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

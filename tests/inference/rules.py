"""What the bridge makes of each kind of recorded answer: one rule a kind, none for a single exchange."""

from __future__ import annotations

import re
from dataclasses import dataclass

from batos.protocol.errors import (
    BatosError,
    ContextOverflow,
    ModelLoadFailed,
    ModelMissing,
    ModelUnsuitable,
    OllamaBusy,
    OllamaTimeout,
    OllamaUnfit,
    PullFailed,
    RequestRejected,
    Runaway,
    RunnerDied,
    StreamCut,
    WireError,
)

_REPORT = "please report it"


@dataclass(frozen=True, slots=True)
class Rule:
    """Answers whose line `METHOD path -> status text` matches `said` are this error; with no `kind`, a value.

    `retry` is whether asking again unchanged may help, `remedy` a part of the advice, `field` what it names.
    """

    said: str
    kind: type[BatosError] | None = None
    retry: bool = False
    remedy: str = ""
    field: str | None = None


#: The first that matches holds.
RULES: tuple[Rule, ...] = (
    # No answer, or half of one.
    Rule(r"-> nothing", OllamaTimeout, True, "deadline"),
    Rule(r"pull -> 200 cut", StreamCut, True, "continues from there"),
    Rule(r"-> 200 cut", StreamCut, True, "Ask again"),
    Rule(r'"done":false,"_debug_info"', StreamCut, True, "Ask again"),
    # The runner and the queue.
    Rule(r"-> 503 .*server busy", OllamaBusy, True, "OLLAMA_MAX_QUEUE"),
    Rule(r"process has terminated: (exit status|signal)", ModelLoadFailed, True, "Free memory.*adapter.*log"),
    Rule(r"error was encountered while running the model", RunnerDied, True, "Ask again"),
    # The window.
    Rule(r"exceed_context_size_error", ContextOverflow, False, "Shorten the question.*num_ctx"),
    Rule(r"input length exceeds the context length", ContextOverflow, False, "Shorten"),
    # What a model is not for.
    Rule(r'-> 400 .*does not support thinking"', ModelUnsuitable, False, "think = false", "think"),
    Rule(r'-> 400 .*does not support tools"', ModelUnsuitable, False, "call tools", "tools"),
    Rule(r"-> 400 .*does not support multimodal", ModelUnsuitable, False, "without images"),
    Rule(r'-> 400 .*does not support (chat|generate)"', ModelUnsuitable, False, "only embeds", "model"),
    Rule(r'-> 400 .*does not support insert"', ModelUnsuitable, False, "ollama show", "suffix"),
    Rule(r"-> 501 .*does not support embeddings", ModelUnsuitable, False, "`embedder` in mind.toml", "model"),
    Rule(r"-> 400 .*raw mode does not support", RequestRejected, False, _REPORT),
    # Names.
    Rule(r"-> 404 .*model .* not found", ModelMissing, False, "batos genesis", "model"),
    Rule(
        r"-> 400 .*(model is required|invalid model name|\\\" is invalid)", RequestRejected, False, "model:tag", "model"
    ),
    Rule(r"-> 403 .*cloud is disabled", RequestRejected, False, "Only local models", "model"),
    # Pulls, and creates that pull.
    Rule(r"manifest: file does not exist", ModelMissing, False, "name in the codex", "model"),
    Rule(r"tls: first record", RequestRejected, False, "HTTPS", "model"),
    Rule(r"pull model manifest: .*dial tcp", PullFailed, True, "network"),
    # Values of the wrong kind.
    Rule(
        r'-> 500 .*option \\"(num_ctx|temperature|stop|use_mmap)\\" must be',
        RequestRejected,
        False,
        "option",
        "options.",
    ),
    Rule(r"-> 400 .*(time: |Unsupported type: )", RequestRejected, False, '"5m"', "keep_alive"),
    Rule(r"-> 400 .*invalid think value", RequestRejected, False, "true or false", "think"),
    Rule(
        r"-> (500 .*invalid format:|400 .*JSON schema conversion)", RequestRejected, False, "defect.*schema", "format"
    ),
    Rule(r"-> 400 .*top_logprobs", RequestRejected, False, _REPORT, "top_logprobs"),
    Rule(r"-> 400 .*invalid input type", RequestRejected, False, _REPORT, "input"),
    Rule(r"-> 400 .*Go struct field ChatRequest\.messages ", RequestRejected, False, _REPORT, "messages"),
    Rule(r"-> 400 .*Go struct field ChatRequest\.model ", RequestRejected, False, _REPORT, "model"),
    Rule(r"-> 400 .*Go struct field ChatRequest\.options ", RequestRejected, False, _REPORT, "options"),
    Rule(
        r"-> 400 .*(missing request body|unexpected EOF|invalid character|json: cannot unmarshal|is too short)",
        RequestRejected,
        False,
        _REPORT,
    ),
    # Making models.
    Rule(r"only one adapter", RequestRejected, False, "merge", "adapters"),
    Rule(r"unsupported architecture", RequestRejected, False, "convert it to GGUF", "adapters"),
    Rule(r"not in GGUF format", RequestRejected, False, "not GGUF", "adapters"),
    Rule(r"open adapter_config\.json", RequestRejected, False, "adapter_config.json beside", "adapters"),
    Rule(r"unknown type", RequestRejected, False, r"\.safetensors or \.gguf", "adapters"),
    Rule(r"blobs/sha256-0+: no such file", RequestRejected, False, "batos genesis"),
    Rule(r"digest mismatch, expected", RequestRejected, False, "changed while it was uploaded", "digest"),
    Rule(r"invalid digest format", RequestRejected, False, _REPORT, "digest"),
    Rule(r"file path must be relative", RequestRejected, False, _REPORT, "files"),
    Rule(r"neither 'from' or 'files'", RequestRejected, False, _REPORT, "from"),
    Rule(r"unsupported quantization", RequestRejected, False, "lists", "quantize"),
    Rule(r"-> (400|500) .*template: ", RequestRejected, False, "template", "template"),
    # What is no daemon, or not one's own.
    Rule(r"-> 404 404 page not found", OllamaUnfit, False, "OLLAMA_HOST"),
    Rule(r"-> 405 405 method not allowed", OllamaUnfit, False, "OLLAMA_HOST"),
    Rule(r"GET /api/tags -> 403 $", RequestRejected, False, "IP address"),
    Rule(r"HEAD /api/blobs/\S+ -> 400 $", RequestRejected, False, "batos doctor"),
    # An answer to another question than the bridge asks.
    Rule(r"GET / -> 200 Ollama is running", WireError, True, "OLLAMA_HOST"),
    Rule(r"POST /api/(generate|embeddings) -> 200", WireError, True, "proxy"),
    Rule(r"/v1/\S+ -> 200", WireError, True, "proxy"),
    # Four hundred times one token is no answer.
    Rule(r'"content":"[^"]*?((?:\\u[0-9a-f]{4}|[^"\\]){1,16})\1{30}"', Runaway, False, "other words"),
    # What is asked for.
    Rule(r"HEAD /api/blobs/sha256:[0-9a-f]{64} -> 404 $"),
    Rule(r"(GET|HEAD|DELETE) \S+ -> 200"),
    Rule(r"POST /api/blobs/\S+ -> 20[01] $"),
    Rule(r"POST /api/(chat|embed|show|pull|create|copy) -> 200"),
)


def rule_for(said: str) -> Rule:
    """The rule that holds for an answer; LookupError where none does."""
    for rule in RULES:
        if re.search(rule.said, said, re.DOTALL):
            return rule
    raise LookupError(f"no rule for {said[:300]}")

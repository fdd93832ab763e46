"""The chat formats that the daemon knows by name, and the choice of the one nearest to a model's Jinja template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

NEAR = 100  # edits: a template this far from every known one has no format

_MESSAGES = "{% for message in messages %}"
_END = "{% endfor %}"
_DEFAULTED = "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
_ALTERNATE = (
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
)
_SPLIT = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}"
)


def _answer_opening(opening: str) -> str:
    """Return the end of a Jinja chat template: the text that opens the answer, if one is asked for."""
    return "{% if add_generation_prompt %}{{ '" + opening + "' }}{% endif %}"


_CHATML_TURNS = (
    _MESSAGES
    + "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    + _END
    + _answer_opening("<|im_start|>assistant\n")
)


def _by_role(turns: dict[str, str], opening: str) -> str:
    """Return a Jinja template with a branch, on lines of its own, for each role of `turns`."""
    lines = [_MESSAGES]
    for at, (role, text) in enumerate(turns.items()):
        lines += ["{% " + ("elif" if at else "if") + " message['role'] == '" + role + "' %}", "{{ " + text + " }}"]
    lines += ["{% endif %}", "{% if loop.last and add_generation_prompt %}", "{{ '" + opening + "' }}", "{% endif %}"]
    return "\n".join([*lines, _END])


@dataclass(frozen=True, slots=True)
class Format:
    """A chat format: the daemon's name for it, its Go template, its stop sequences, and its Jinja templates."""

    name: str
    template: str
    stop: tuple[str, ...]
    texts: tuple[str, ...]


_CHATML = Format(
    "chatml",
    "{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n",
    ("<|im_start|>", "<|im_end|>"),
    (
        _CHATML_TURNS,
        "{{bos_token}}" + _CHATML_TURNS,
        _DEFAULTED + _CHATML_TURNS,
        _DEFAULTED + "{{ bos_token }}" + _CHATML_TURNS,
        _CHATML_TURNS.replace(
            _MESSAGES,
            _MESSAGES + "{% if loop.first and messages[0]['role'] != 'system' %}"
            "{{ '<|im_start|>system\nYou are a helpful assistant<|im_end|>\n' }}{% endif %}",
        ),
        _by_role(
            {
                role: f"'<|im_start|>{role}\n' + message['content'] + '<|im_end|>'"
                for role in ("user", "system", "assistant")
            },
            "<|im_start|>assistant",
        ),
    ),
)
_ZEPHYR = Format(
    "zephyr",
    "{{- range .Messages }}<|{{ .Role }}|>\n{{ .Content }}</s>\n{{ end }}<|assistant|>\n",
    ("<|system|>", "</s>", "<|user|>", "<|assistant|>"),
    (
        _by_role(
            {role: f"'<|{role}|>\n' + message['content'] + eos_token" for role in ("user", "system", "assistant")},
            "<|assistant|>",
        ),
        _by_role(
            {
                "user": "'<|user|>\n' + message['content']",
                "assistant": "'<|assistant|>\n'  + message['content'] + eos_token",
            },
            "<|assistant|>",
        ),
    ),
)
_OPENCHAT = Format(
    "openchat",
    "{{- range .Messages }}GPT4 Correct "
    '{{ if eq .Role "system" }}System{{ else if eq .Role "user" }}User{{ else }}Assistant{{ end }}: '
    "{{ .Content }}<|end_of_turn|>{{ end }}GPT4 Correct Assistant:",
    ("<|end_of_turn|>",),
    (
        "{{ bos_token }}"
        + _MESSAGES
        + "{{ 'GPT4 Correct ' + message['role'].title() + ': ' + message['content'] + '<|end_of_turn|>'}}"
        + _END
        + _answer_opening("GPT4 Correct Assistant:"),
    ),
)
_MISTRAL = Format(
    "mistral-instruct",
    '{{- range $at, $turn := .Messages }}{{ if eq .Role "assistant" }}{{ .Content }}</s>'
    '{{ else if eq .Role "user" }}[INST] {{ if and $.System (le $at 1) }}{{ $.System }}\n\n{{ end }}'
    "{{ .Content }}[/INST] {{ end }}{{ end }}",
    (),
    (
        "{{ bos_token }}"
        + _MESSAGES
        + _ALTERNATE
        + "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
        + "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
        + "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}"
        + _END,
    ),
)
_LLAMA2 = Format(
    "llama2-chat",
    '{{- range $at, $turn := .Messages }}{{ if eq .Role "assistant" }}{{ .Content }}</s>'
    '{{ else if eq .Role "user" }}[INST] {{ if and $.System (le $at 1) }}<<SYS>>\n{{ $.System }}\n<</SYS>>\n\n{{ end }}'
    "{{ .Content }} [/INST]{{ end }}{{ end }}",
    ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
    tuple(
        _SPLIT
        + _MESSAGES.replace("in messages", "in loop_messages")
        + _ALTERNATE
        + "{% if loop.index0 == 0 and system_message != false %}"
        + r"{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
        + "{% else %}{% set content = message['content'] %}{% endif %}"
        + "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content"
        + f"{strip} + ' [/INST]' }}}}"
        + "{% elif message['role'] == 'assistant' %}{{ ' '  + content"
        + f"{strip} + ' ' + eos_token }}}}"
        + "{% endif %}"
        + _END
        for strip in (" | trim", ".strip()")
    ),
)
_GEMMA = Format(
    "gemma-instruct",
    '{{- range $at, $turn := .Messages }}{{ if eq .Role "user" }}<start_of_turn>user\n'
    "{{ if and $.System (le $at 1) }}{{ $.System }}\n{{ end }}{{ .Content }}<end_of_turn>\n"
    '{{ else if eq .Role "assistant" }}<start_of_turn>model\n{{ .Content }}<end_of_turn>\n'
    "{{ end }}{{ end }}<start_of_turn>model\n",
    ("<start_of_turn>", "<end_of_turn>"),
    (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}"
        + _MESSAGES
        + _ALTERNATE
        + "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
        + "{% else %}{% set role = message['role'] %}{% endif %}"
        + "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
        + _END
        + "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
    ),
)
_LLAMA3 = Format(
    "llama3-instruct",
    "{{- range .Messages }}<|start_header_id|>{{ .Role }}<|end_header_id|>\n\n{{ .Content }}<|eot_id|>{{ end }}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    (
        "{% set loop_messages = messages %}"
        + _MESSAGES.replace("in messages", "in loop_messages")
        + "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
        + "+ message['content'] | trim + '<|eot_id|>' %}"
        + "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
        + _END
        + _answer_opening("<|start_header_id|>assistant<|end_header_id|>\n\n"),
    ),
)
_PHI3_TURNS = (
    _MESSAGES + "{% if (message['role'] == 'user') %}"
    "{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + '<|assistant|>' + '\n'}}"
    "{% elif (message['role'] == 'assistant') %}{{message['content'] + '<|end|>' + '\n'}}{% endif %}" + _END
)
_PHI3 = Format(
    "phi-3",
    "{{- range .Messages }}<|{{ .Role }}|>\n{{ .Content }}<|end|>\n{{ end }}<|assistant|>\n",
    ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>"),
    (_PHI3_TURNS, "{{ bos_token }}" + _PHI3_TURNS),
)
FORMATS = (_CHATML, _ZEPHYR, _OPENCHAT, _MISTRAL, _LLAMA2, _GEMMA, _LLAMA3, _PHI3)


@lru_cache(maxsize=64)
def nearest(text: str) -> Format | None:
    """Return the format one of whose Jinja templates is fewest edits from `text`; None from NEAR edits on."""
    found, least = None, NEAR
    for candidate in FORMATS:
        for known in candidate.texts:
            edits = distance(text, known, least)
            if edits < least:
                found, least = candidate, edits
    return found


def distance(one: str, two: str, limit: int) -> int:
    """Return the number of edits (a character added, dropped or changed) between two texts, at most `limit`."""
    if abs(len(one) - len(two)) >= limit:
        return limit
    before = [*range(len(two) + 1)]
    for row, letter in enumerate(one, 1):
        low, high = max(1, row - limit), min(len(two), row + limit)
        now = [limit] * (len(two) + 1)
        now[0] = row
        for at in range(low, high + 1):
            same = before[at - 1] + (letter != two[at - 1])
            now[at] = min(same, before[at] + 1, now[at - 1] + 1)
        if min(now) >= limit:
            return limit
        before = now
    return int(min(before[-1], limit))

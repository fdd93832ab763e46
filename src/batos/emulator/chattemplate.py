"""Chat templates of the weights themselves, in Jinja, rendered as the runner does, with bounds on work and size."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

#: What the runner takes where the weights have none.
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LONGEST = 1 << 20  # characters of a text, rendered or on the way
STEPS = 200_000  # turns of loops and calls
_METHODS = frozenset(
    "strip lstrip rstrip startswith endswith split rsplit splitlines upper lower title capitalize find rfind count "
    "index isdigit join replace removeprefix removesuffix".split()
)
_REMOVED = ("center", "format", "wordwrap", "xmlattr", "urlize", "pprint", "random", "slice", "batch", "filesizeformat")


class NotRendered(Exception):
    """Why a chat template gives no prompt, in the words of whoever found out."""


@dataclass(slots=True)
class _Budget:
    """What a rendering may still do."""

    steps: int = STEPS

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise NotRendered(f"the emulator renders no template of more than {STEPS} steps")

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.step()
            yield item


def _sized(length: int) -> None:
    if length > LONGEST:
        raise NotRendered(f"the emulator renders no more than {LONGEST} characters")


def _joined(*parts: Any) -> str:
    texts = [str(part) for part in parts]
    _sized(sum(map(len, texts)))
    return "".join(texts)


def _replaced(text: str, old: str, new: str, count: int | None = None) -> str:
    _sized(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return text.replace(old, new) if count is None else text.replace(old, new, count)


def _strung(items: Iterable[Any], between: str = "", attribute: Any = None) -> str:
    if attribute is not None:
        items = [
            item.get(attribute, "") if isinstance(item, Mapping) else getattr(item, attribute, "") for item in items
        ]
    texts = [str(item) for item in items]
    _sized(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _raise(text: str = "") -> None:
    raise NotRendered(text)


class _Bounds(NodeTransformer):
    """Makes loops count their turns and `~` look at lengths."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  # the visitor's name for it
        self.generic_visit(node)
        node.iter = nodes.Call(nodes.Name("_each", "load"), [node.iter], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:  # noqa: N802  # the visitor's name for it
        self.generic_visit(node)
        return nodes.Call(nodes.Name("_joined", "load"), node.nodes, [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        bounded: nodes.Template = _Bounds().visit(tree)
        return bounded

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or (operator == "%" and isinstance(left, str)):
            raise NotRendered(f"the emulator renders no {operator} of these")
        if operator == "+" and isinstance(left, str | list) and isinstance(right, str | list):
            _sized(len(left) + len(right))
        if operator == "*" and not (isinstance(left, int | float) and isinstance(right, int | float)):
            many, text = (left, right) if isinstance(left, int) else (right, left)
            _sized(len(text) * many if isinstance(text, str | list) and isinstance(many, int) else 0)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  # as the base has it
        __context["_budget"].step()
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str):
            if name not in _METHODS:
                raise NotRendered(f"the emulator calls no str.{name}")
            if name == "replace":
                return _replaced(owner, *args)
            if name == "join":
                return _strung(args[0], owner)
        return super().call(__context, __obj, *args, **kwargs)


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=min(indent, 8) if indent is not None else None)


def _indented(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    before = " " * min(width, 64) if isinstance(width, int) else width[:64]
    lines = str(text).split("\n")
    _sized(len(text) + len(lines) * len(before))
    return "\n".join(before + line if (at or first) and (line or blank) else line for at, line in enumerate(lines))


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    made = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    for name in _REMOVED:
        made.filters.pop(name, None)
    made.filters |= {"tojson": _tojson, "indent": _indented, "join": _strung, "replace": _replaced}
    made.globals |= {"raise_exception": _raise, "strftime_now": lambda form: time.strftime(str(form)[:64])}
    made.globals.pop("lipsum", None)
    return made


@lru_cache(maxsize=64)
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


def render(text: str, messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> str:
    """The prompt that a chat template makes of messages; NotRendered where it refuses, fails or is too much.

    `given` holds what else it may ask for: tools, bos_token, eos_token, enable_thinking and the like.
    """
    budget = _Budget()
    names: dict[str, Any] = {"messages": messages, "add_generation_prompt": True, **given}
    names |= {"_each": budget.each, "_joined": _joined, "_budget": budget}
    out: list[str] = []
    size = 0
    try:
        for part in _compiled(text).generate(names):
            size += len(part)
            _sized(size)
            out.append(part)
    except RecursionError:
        raise NotRendered("the template calls itself without end") from None
    except TemplateError as fault:
        raise NotRendered(fault.message or type(fault).__name__) from None
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError) as fault:
        raise NotRendered(str(fault)) from None
    return "".join(out)


def stripped(text: str, vocabulary_adds: tuple[bool, bool], bos: str, eos: str) -> str:
    """A prompt without the first and the last token that the tokenizer puts there itself."""
    if vocabulary_adds[0] and bos and text.startswith(bos):
        text = text[len(bos) :]
    return text[: -len(eos)] if vocabulary_adds[1] and eos and text.endswith(eos) else text

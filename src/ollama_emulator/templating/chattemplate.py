"""Render the Jinja chat template of a model's weights as the runner does, within limits on work and size."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from ollama_emulator.templating.bounding import (
    BUDGET,
    BoundedFunctions,
    BoundInserter,
    NotRendered,
    RenderBudget,
    budget_of,
    check_size,
    number,
)

#: The runner's template for weights that have none.
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LONGEST_TEMPLATE = 1 << 18  # characters
_LONGEST_ARGUMENT = 1 << 12  # longest text argument of a method, in characters
_METHODS = frozenset(
    "strip lstrip rstrip startswith endswith split rsplit splitlines upper lower title capitalize find rfind count "
    "index isdigit join replace removeprefix removesuffix".split()
)
#: Errors of a template while it is compiled or run.
_FAULTS = (
    *(TypeError, ValueError, LookupError, AttributeError, ArithmeticError),
    *(RuntimeError, NameError, SyntaxError),
)
_CALLERS = ("_loop_vars", "_block_vars")  # arguments that compiled templates add to calls
_REMOVED = (
    *("center", "format", "wordwrap", "xmlattr", "urlize", "pprint", "random", "slice", "batch", "filesizeformat"),
    *("round", "striptags"),
)


def _replace(text: str, old: str, new: str, count: int | None = None) -> str:
    """Compute `replace` after checking the length of the result."""
    check_size(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return text.replace(old, new) if count is None else text.replace(old, new, count)


def _join(items: Iterable[Any], between: str = "", attribute: Any = None) -> str:
    """Compute `join` after checking the length of the result."""
    if attribute is not None:
        items = [
            item.get(attribute, "") if isinstance(item, Mapping) else getattr(item, attribute, "") for item in items
        ]
    texts = [str(item) for item in items]
    check_size(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _raise(text: str = "") -> None:
    raise NotRendered(text)


class _Environment(BoundedFunctions, ImmutableSandboxedEnvironment):
    """A sandboxed Jinja environment in which every operation is counted and bounded."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        bounded: nodes.Template = BoundInserter().visit(tree)
        return bounded

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute a binary operator after checking the size of the result."""
        if operator == "**" or (operator == "%" and isinstance(left, str)):
            raise NotRendered(f"the emulator renders no {operator} of these")
        if operator == "+" and isinstance(left, str | list) and isinstance(right, str | list):
            check_size(len(left) + len(right))
        if operator == "*" and not (isinstance(left, int | float) and isinstance(right, int | float)):
            many, text = (left, right) if isinstance(left, int) else (right, left)
            check_size(len(text) * many if isinstance(text, str | list | tuple) and isinstance(many, int) else 0)
        return number(self.bound_deep(context, super().call_binop(context, operator, left, right)))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  # as the base has it
        """Call a function or method for a template, and take steps for it."""
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if owner is __self:
            return __obj(*args)
        budget_of(__context).step()
        if isinstance(owner, str):
            given = {key: value for key, value in kwargs.items() if key not in _CALLERS}
            return _call_method(__self.bound_deep(__context, owner), name, __obj, args, given)
        if name in ("format", "format_map"):
            raise NotRendered(f"the emulator calls no str.{name}")
        found = super().call(__context, __obj, *args, **kwargs)
        return found if isinstance(found, Namespace) else __self.bound_deep(__context, found)


def _call_method(
    text: str, name: str, method: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> Any:
    """Call a method of a text that a template calls.

    Raises: NotRendered: it is not allowed, or its result is too long.
    """
    if name not in _METHODS:
        raise NotRendered(f"the emulator calls no str.{name}")
    if name == "replace":
        return _replace(text, *args)
    if name == "join":
        return _join(args[0], text)
    if any(isinstance(arg, str) and len(arg) > _LONGEST_ARGUMENT for arg in (*args, *given.values())):
        raise NotRendered(f"the emulator gives str.{name} no more than {_LONGEST_ARGUMENT} characters")
    return method(*args, **given)


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    """Compute `tojson` with the runner's format, which does not escape letters."""
    return json.dumps(value, ensure_ascii=False, indent=min(indent, 8) if indent is not None else None)


def _indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Compute `indent` after checking the length of the result."""
    before = " " * min(width, 64) if isinstance(width, int) else width[:64]
    lines = str(text).split("\n")
    check_size(len(text) + len(lines) * len(before))
    return "\n".join(before + line if (at or first) and (line or blank) else line for at, line in enumerate(lines))


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    """Return the environment that templates run in, without filters that the runner lacks."""
    made = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    for name in _REMOVED:
        made.filters.pop(name, None)
    made.filters |= {"tojson": _tojson, "indent": _indent, "join": _join, "replace": _replace}
    made.globals |= {"raise_exception": _raise, "strftime_now": lambda form: time.strftime(str(form)[:64])}
    made.globals.pop("lipsum", None)
    return made


@lru_cache(maxsize=64)
def _compile(text: str) -> Template:
    """Compile a chat template. Raises: NotRendered: it is too long."""
    if len(text) > LONGEST_TEMPLATE:
        raise NotRendered(f"the emulator reads no template of more than {LONGEST_TEMPLATE} characters")
    return _environment().from_string(text)


def render(text: str, messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> str:
    """Return the prompt that a chat template makes of messages.

    `given` holds its other variables: tools, bos_token, eos_token, enable_thinking and the like. Raises: NotRendered:
    the template refuses or fails, or exceeds a limit.
    """
    names: dict[str, Any] = {"messages": messages, "add_generation_prompt": True, **given, BUDGET: RenderBudget()}
    out: list[str] = []
    size = 0
    try:
        for part in _compile(text).generate(names):
            size += len(part)
            check_size(size)
            out.append(part)
    except RecursionError:
        raise NotRendered("the template calls itself without end") from None
    except TemplateError as fault:
        raise NotRendered(fault.message or type(fault).__name__) from None
    except _FAULTS as fault:
        raise NotRendered(str(fault)) from None
    return "".join(out)


def strip_marks(text: str, vocabulary_adds: tuple[bool, bool], bos: str, eos: str) -> str:
    """Return a prompt without its bos and eos tokens, each if the tokenizer adds it anyway."""
    if vocabulary_adds[0] and bos and text.startswith(bos):
        text = text[len(bos) :]
    return text[: -len(eos)] if vocabulary_adds[1] and eos and text.endswith(eos) else text

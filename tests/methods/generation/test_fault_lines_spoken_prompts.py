"""The prompt of a facet that a small model wrote: what it left out is put in by rule, and what it has is left alone."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.generation.generation_setup import bench, wish

from batos.guardian.audit import Context, audit
from batos.methods.generation import lean_request
from batos.methods.generation.fault_lines import complete_prompt, missing_words
from batos.methods.generation.method_spec import Coder
from batos.methods.generation.written_source import WrittenSource

INTENT = "Warn like a harbour pilot of three\nhidden shoals."
WHOLE = "Warn like a harbour pilot of three hidden shoals."
SELECTOR, SIGNATURE = "pilot_facet_", "pilot_facet_(self, query)"
FACET = wish(
    coder=Coder("coder:1", "d" * 64, {"num_ctx": 2048, "temperature": 0.2}, form="lean"),
    kind="facet",
    selector=SELECTOR,
    signature=SIGNATURE,
    text=INTENT,
)
HEAD = f"async def {SIGNATURE}:\n"
GOOD = f'{HEAD}    prompt = f"{WHOLE}\\n\\n{{query}}"\n    return await self.infer_(prompt)\n'


def prompts(source: str, query: str = "Why?") -> list[str]:
    """The prompts that a method sends, computed from the expression in its message."""
    tree = ast.parse(source)
    method = tree.body[0]
    assert isinstance(method, ast.AsyncFunctionDef)
    values: dict[str, object] = {"query": query, "str": str}
    for each in method.body:
        if isinstance(each, ast.Assign):
            exec(compile(ast.Module([each], []), "method", "exec"), values)
    asked = [node.args[0] for node in ast.walk(method) if isinstance(node, ast.Call) and node.args
             and isinstance(node.func, ast.Attribute) and node.func.attr == "infer_"]  # fmt: skip
    return [str(eval(compile(ast.Expression(each), "prompt", "eval"), values)) for each in asked]


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ('    return await self.infer_(f"You are a pilot: {query}")\n', 1),
        ('    return await self.infer_("Warn like a harbour pilot of three hidden shoals.")\n', 1),
        ('    who = "You are a pilot."\n    return await self.infer_(\n        who +\n        " Answer."\n    )\n', 2),
        ('    return await self.infer_("Grüße vom Lotsen – " f"{query}")\n', 1),
        ('    """Warn like a harbour pilot of three hidden shoals."""\n    return await self.infer_(query)\n', 1),
        ('    text = await self.infer_("Warn of shoals", )\n    return text\n', 2),
        ('    a = await self.infer_("Warn.")\n    return await self.infer_(f"{a} {await self.infer_(str(1))}")\n', 2),
    ],
)
def test_what_a_prompt_lacks_is_put_in(body: str, changes: int) -> None:
    """The intent before it, the text that the method is sent behind it; the guardian takes the method as before."""
    before = WrittenSource(HEAD + body)
    after = complete_prompt(before, FACET)
    assert len(after.changes) == changes
    assert audit(after.source, Context(SELECTOR, SIGNATURE)).accepted
    assert complete_prompt(after, FACET) == after


def test_a_completed_prompt_says_both() -> None:
    """In the order in which a model reads them."""
    after = complete_prompt(WrittenSource(f'{HEAD}    return await self.infer_("You are kind.")\n'), FACET)
    assert prompts(after.source) == [f"{WHOLE}\n\nYou are kind.\n\nWhy?"]


@pytest.mark.parametrize(
    "source",
    [
        GOOD,
        f"{HEAD}    return 'Because.'\n",
        "def pilot(:",
        "",
    ],
)
def test_what_needs_nothing_is_left_alone(source: str) -> None:
    """So is a method that asks nothing, and what is no Python."""
    assert complete_prompt(WrittenSource(source), FACET) == WrittenSource(source)


def test_a_tool_is_left_alone() -> None:
    """Its result is computed, and what it may ask is no voice."""
    tool = wish(kind="tool", selector="size_", signature="size_(self, text)", text="Return the size.")
    written = WrittenSource('def size_(self, text):\n    return self.infer_("x")\n')
    assert complete_prompt(written, tool) == written


def test_a_number_is_never_missing() -> None:
    """A form in numbers is lost with one word."""
    intent = "Comfort the asker like a patient old grandmother who has seen far worse storms, in two lines."
    said = intent.replace("two", "many")
    assert missing_words(intent, said) == ["two"]
    assert missing_words(intent, intent.replace("patient", "quiet")) == []
    assert missing_words("Answer in 12 words.", "Answer in words.") == ["12"]


@given(text=st.text(max_size=60), intent=st.text(max_size=60))
def test_any_prompt_and_intent_become_python(text: str, intent: str) -> None:
    """Whatever signs they have, the method is still one."""
    wanted = wish(kind="facet", selector=SELECTOR, signature=SIGNATURE, text=intent)
    after = complete_prompt(WrittenSource(f"{HEAD}    return await self.infer_({text!r})\n"), wanted)
    (said,) = prompts(after.source)
    assert text in said
    assert "Why?" in said


async def test_a_facet_that_forgot_the_question_is_made_at_the_first_try() -> None:
    """No call is paid to mend it, and its record says what a rule put in."""
    forgot = f'{HEAD}    return await self.infer_("You are a harbour pilot.")\n'
    async with bench(lean_request.fence(forgot)) as found:
        candidate = await found.make(FACET)
        assert len(found.asked) == 1
    assert prompts(candidate.source) == [f"{WHOLE}\n\nYou are a harbour pilot.\n\nWhy?"]
    assert any("`query` was put behind its prompt" in each for each in candidate.provenance["written"])

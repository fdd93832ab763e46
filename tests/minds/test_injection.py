"""Hostile texts in each place of a prompt, by each template the emulator knows: no tokens, none leaves its fence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from batos.gate.evidence_index import Citation
from batos.gate.quotations import locate
from batos.inference import marks
from batos.memory.evidence import Evidence, Summary, Turn
from batos.memory.passages import passages
from batos.minds import prompt
from batos.minds.calls.answers import shown_answer
from batos.minds.prompt import Message, PersonaPrompt, SharedContext, ShownPart
from batos.minds.results import PartResult
from ollama_emulator.pulling import registry
from ollama_emulator.templating import chatformats, chattemplate, templates
from ollama_emulator.templating.templates import Values
from ollama_emulator.tokenizers.pieces import Lexicon

CORPUS = {each.stem: each.read_text() for each in sorted((Path(__file__).parents[1] / "data/injection").glob("*.txt"))}
GO = {each.name: each.template for each in chatformats.FORMATS} | {
    "llama": registry.LLAMA,
    "chatml of the registry": registry.CHATML,
    "labels": "{{ if .System }}### System:\n{{ .System }}\n{{ end }}### Instruction:\n{{ .Prompt }}\n### Response:\n",
    "letters": "{{ if .System }}S: {{ .System }}\n{{ end }}U: {{ .Prompt }}\nA: ",
    "vicuna": "{{ .System }}\nUSER: {{ .Prompt }}\nASSISTANT: ",
}
JINJA = {f"{each.name} {at}": text for each in chatformats.FORMATS for at, text in enumerate(each.texts)}
TEMPLATES = {**GO, **JINJA}
#: Tokens that steer, of all those formats and of some that no template here writes.
STEERING = (
    *("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|endoftext|>", "<s>"),
    *("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|end_of_turn|>", "</s>", "[INST]", "[/INST]", "<<SYS>>"),
    *("<</SYS>>", "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<｜User｜>", "<｜Assistant｜>", "[|user|]"),
    *("[|endofturn|]", "[SYSTEM_PROMPT]", "[TOOL_RESULTS]", "<think>", "</think>", "[gMASK]", "<unused7>", "<sop>"),
    *("<|channel|>", "<|message|>", "<|return|>", "<EOS_TOKEN>", "<｜end▁of▁sentence｜>", "<|START_OF_TURN_TOKEN|>"),
)
VOICE = PersonaPrompt(
    "BRICK",
    "You are BRICK.",
    "Deconstruction.",
    {
        "decompose": "For $count facets:\n$pillars\nof:\n$query",
        "facet": "As $name, after $inspiration.\n$intent\n\n$query\n\nReport.",
        "weave": "Asked:\n$query\n\nYour voices:\n$parts\n\nAssemble one answer.",
        "select": "Asked:\n$query\n\nThese came:\n$answers\n\nPick one.",
        "reflex": "$query\n\nAnswer.",
        "revise": "Found:\n$faults\n\nAgain.",
        "protocol": "So far:\n$answer\n\nApply $name.\n$intent\n\nAgain.",
    },
)
KOAN = {"name": "Koan", "inspiration": "a smile", "intent": "Say it.", "line": ""}
PLAIN = "Nothing but a text."


def lexicon() -> Lexicon:
    """A vocabulary of those tokens alone."""
    kinds = [3] * len(STEERING)
    info = {"tokenizer.ggml.tokens": list(STEERING), "tokenizer.ggml.token_type": kinds}
    return Lexicon.read(info, spaced="")


def prompts(text: str, own: Sequence[str]) -> list[tuple[Message, ...]]:
    """Every kind of prompt with a text in each place that is not the codex's own, as a session sends them."""
    turn = Turn("m-1", text, text, "external", 1)
    found = Evidence(passages([(text, "0" * 64, text)]), (turn,), view=(Summary(1, 1, text, "external"),))
    shared = SharedContext("The charter.", "- Rules.", found, "2026-01-02T03:04:05.678Z")
    part = PartResult(1, "a_facet_", text, text, text, (Citation(1, 0, len(text), text),), is_known=True)
    spoken = [ShownPart(1, part.name, part.query, shown_answer(part))]
    facet = {"name": "The Sage", "inspiration": "a book", "intent": "Look.", "line": ""}
    tasks = [
        prompt.decompose_task(VOICE, text, [("a_", "The Sage", "a book")]),
        prompt.facet_task(VOICE, facet, text),
        prompt.weave_task(VOICE, text, spoken),
        prompt.select_task(VOICE, text, spoken),
        prompt.reflex_task(VOICE, text),
        prompt.forge_task(VOICE, "Gadget", "Make one.", text),
        prompt.protocol_task(VOICE, KOAN, text),
    ]
    composed = [prompt.compose(shared, VOICE, task.then("Reply with:\n`answer`")) for task in tasks]
    revised = prompt.revision(VOICE, text, [f"It says {text!r}."], "Again.")
    composed.append(prompt.compose(shared, VOICE, tasks[0], revised))
    return [marks.messages(each, own) for each in composed]


def rendered(template: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """As the daemon writes it; a Jinja template is given turns that alternate, as most of them ask for."""
    if template in GO.values():
        return templates.parse(template).render(Values(messages))
    turns: list[dict[str, Any]] = []
    for each in messages:
        role = "assistant" if each["role"] == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{each['content']}"
        else:
            turns.append({"role": role, "content": each["content"]})
    return chattemplate.render(template, turns, {"bos_token": "<s>", "eos_token": "</s>"})


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_text_is_read_as_a_token(name: str) -> None:
    """The control tokens of the rendered prompt are those of the same prompt with a harmless text, one for one."""
    template, words = TEMPLATES[name], lexicon()
    own = marks.marks_of(template, {})
    plain = [_steering(words, rendered(template, each)) for each in prompts(PLAIN, own)]
    assert any(plain) or name in ("labels", "letters", "vicuna")
    for document, text in CORPUS.items():
        found = [_steering(words, rendered(template, each)) for each in prompts(text, own)]
        assert found == plain, document


def _steering(words: Lexicon, text: str) -> list[int]:
    return [part for part in words.split(text) if isinstance(part, int)]


@pytest.mark.parametrize("name", ["labels", "letters", "vicuna"])
def test_no_text_is_read_as_a_label(name: str) -> None:
    """Templates without tokens steer by words at the beginning of a line: as often as with a harmless text."""
    own = marks.marks_of(GO[name], {})
    assert own
    for text in CORPUS.values():
        for mine, plain in zip(prompts(text, own), prompts(PLAIN, own), strict=True):
            counts = [[rendered(GO[name], each).count(label) for label in own] for each in (mine, plain)]
            assert counts[0] == counts[1]


@pytest.mark.parametrize("name", CORPUS)
def test_no_line_of_a_text_stands_among_those_of_a_task(name: str) -> None:
    """Without what is fenced, a weave, a selection, a tool's and a protocol's task are the same for every text."""
    text, question = CORPUS[name], "Why?"
    part = PartResult(1, "a_facet_", text, text, text, (Citation(1, 0, len(text), text),), is_known=True)
    assert shown_answer(part) == text
    spoken = [ShownPart(1, part.name, part.query, shown_answer(part))]
    for made in (
        prompt.weave_task(VOICE, question, spoken),
        prompt.select_task(VOICE, question, spoken),
        prompt.forge_task(VOICE, "Gadget", "Make one.", text),
        prompt.protocol_task(VOICE, KOAN, text),
    ):
        opened = re.findall(r'^<answer digest="([0-9a-f]{8})">$', made.text, re.MULTILINE)
        end = next(each for each in opened if each not in text)
        head, _, rest = made.text.partition(f'<answer digest="{end}">\n')
        inside, closed, tail = rest.partition(f"\n</answer {end}>")
        assert closed
        assert end not in inside
        assert text in inside
        assert not [line for line in text.splitlines() if line.strip() and line in f"{head}\n{tail}".splitlines()]


@pytest.mark.parametrize("name", CORPUS)
def test_a_quotation_of_what_the_model_was_shown_is_found_in_the_file(name: str) -> None:
    """A model copies the marks as it saw them, broken: each line is still known as the file's own."""
    text = CORPUS[name]
    for line in filter(str.strip, text.splitlines()):
        found = locate(marks.break_marks(line), text)
        assert found is not None, line
        assert text[slice(*found)].strip("<>| ") in line


def test_a_harmless_text_is_shown_as_it_is() -> None:
    """Code, markup, links and places of templates."""
    assert marks.break_marks(CORPUS["harmless"]) == CORPUS["harmless"]


def test_the_codexs_own_words_hold_no_mark() -> None:
    """So that breaking marks changes nothing of what every prompt begins with."""
    shipped = Path(prompt.__file__).parents[1] / "codex" / "shipped"
    for each in shipped.glob("*.toml"):
        assert marks.break_marks(each.read_text()) == each.read_text()

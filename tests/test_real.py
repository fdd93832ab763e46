"""A mission answered by a real and very small model, from the command line: the lean form, its text and citations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.processes import User
from tests.ollama_emulator.voices.conformance import emulator_process

pytestmark = [
    pytest.mark.real,
    pytest.mark.blocks_loop(reason="the command runs in this process, and the model on the same cores"),
]
HARBOUR = Path(__file__).resolve().parents[1] / "examples" / "harbour.txt"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """Somebody whose Ollama has SmolLM2-135M under every name, after genesis."""
    with emulator_process("--gguf", "smollm2") as url:
        found = User(tmp_path_factory.mktemp("real"), url)
        ran = found.run("genesis")
        assert ran.code == 0, ran.err
        yield found


def test_a_question_with_a_file(user: User) -> None:
    """One call in lean form, of the file and little beside it; the answer is cited, made by rule, or doubted."""
    ran = user.run("ask", "--effort", "reflex", "--json", "--file", str(HARBOUR), "How many boats did it hold in 1888?")
    assert ran.code == 0, ran.err
    shown, told = ran.document["data"], {each.get("event") for each in ran.documents}
    assert [each["state"] for each in shown["states"]][-2:] == ["COMPLETE", "IDLE"]
    assert set(shown["provenance"]["forms"].values()) == {"lean"}
    assert shown["answer"].strip()
    text, quotes = HARBOUR.read_text(encoding="utf-8"), shown["provenance"]["citations"]
    # English has some four characters a token; of three a prompt would hold the file and many lines of orders.
    assert shown["cost"]["prompt_tokens"] < len(text) / 3 * shown["cost"]["calls"]
    assert all(each["quote"] in text for each in quotes)
    assert quotes or "mission.rule" in told or shown["provenance"]["gate"]["faults"]

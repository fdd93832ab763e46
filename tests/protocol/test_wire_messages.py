"""The messages of the wire: what is read, what is refused and how, and errors that come back as what they were."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import HANG

from batos.protocol import errors, wire_messages
from batos.protocol.errors import BatosError, BudgetExceeded, ProtocolError

GOOD = {"v": 1, "id": "1", "verb": "hello", "args": {}}


def test_a_request_is_read() -> None:
    """Version, id, verb and arguments; the arguments may be left out."""
    assert wire_messages.read_request(GOOD).verb == "hello"
    assert wire_messages.read_request({"v": 1, "id": "x", "verb": "status"}).args == {}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"v": 2}, "v"),
        ({"v": True}, "v"),
        ({"v": "1"}, "v"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"id": "x" * 129}, "id"),
        ({"verb": None}, "verb"),
        ({"args": []}, "args"),
        ({"more": 1}, "more"),
    ],
)
def test_what_is_no_request_names_the_field(change: dict[str, Any], field: str) -> None:
    """Each part that is wrong is named, with what to do."""
    with pytest.raises(ProtocolError) as refused:
        wire_messages.read_request({**GOOD, **change})
    assert refused.value.field == field
    assert refused.value.remedy


@pytest.mark.parametrize("value", [None, 1, "x", [], [GOOD]])
def test_a_request_is_an_object(value: Any) -> None:
    """JSON that is no object is refused, and has no id."""
    assert wire_messages.request_id(value) is None
    with pytest.raises(ProtocolError):
        wire_messages.read_request(value)


def test_the_id_of_a_wrong_request_is_found() -> None:
    """Whoever sent something wrong is told under the id that it had, if that was one."""
    assert wire_messages.request_id({"id": "a", "v": 9}) == "a"
    assert wire_messages.request_id({"id": ["a"]}) is None
    assert wire_messages.request_id({"id": "a" * 129}) is None


# -- limits


def test_a_message_of_the_limit_is_read_and_one_byte_more_is_not() -> None:
    """1 MiB is the limit, and it is a limit of bytes."""
    filler = wire_messages.MESSAGE_BYTES - 2
    assert len(wire_messages.parse(b'"' + b"x" * filler + b'"')) == filler
    with pytest.raises(ProtocolError, match="bytes"):
        wire_messages.parse(b'"' + b"x" * (filler + 1) + b'"')


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_a_message_nests_to_the_limit(opening: bytes, closing: bytes) -> None:
    """Depth 32 is read, 33 is not, and 100,000 is no crash."""
    for depth in (wire_messages.DEPTH, wire_messages.DEPTH + 1, 150, 250, 100_000):
        data = opening * depth + b"1" + closing * depth
        if depth == wire_messages.DEPTH:
            wire_messages.parse(data)
        else:
            with pytest.raises(ProtocolError, match=r"deeper|values"):
                wire_messages.parse(data)


def test_a_message_of_very_many_values_is_refused_before_it_is_read() -> None:
    """Half a million values would keep the loop busy; signs inside texts are none."""
    with pytest.raises(ProtocolError, match="values"):
        wire_messages.parse(b"[" + b"[]," * 300_000 + b"[]]")
    text = json.dumps({"text": '[{,"\\' * 20_000}).encode()
    assert wire_messages.parse(text)["text"].startswith("[{,")


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff", b"{", b'{"a":1}x', b"[NaN]", b"[Infinity]", b"[1e999]", b'["\\ud800"]', b"9" * 5000]
)
def test_what_is_no_json_is_said_so(data: bytes) -> None:
    """Broken, foreign or endless: one kind of error."""
    with pytest.raises(ProtocolError):
        wire_messages.parse(data)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=30,
)


@given(json_values)
def test_what_is_encoded_is_parsed_again(value: Any) -> None:
    """Any JSON within the limits survives the way there and back."""
    data = wire_messages.encode({"value": value})
    try:
        assert wire_messages.parse(data) == json.loads(data)
    except ProtocolError as error:
        assert "deeper" in error.message


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Nothing else can come of bytes than a value or a ProtocolError."""
    try:
        wire_messages.parse(data)
    except ProtocolError:
        pass


def test_text_that_is_none_goes_out_as_question_marks() -> None:
    """Half a surrogate pair of a model's text breaks no reply."""
    assert wire_messages.encode({"text": "a\ud800b"}) == b'{"text":"a?b"}'


# -- errors

KINDS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, BatosError)]
MADE: dict[str, BatosError] = {
    "codex": errors.CodexError("bad", file="a.toml", line=3),
    "old_format": errors.OldFormat(1, 4),
    "new_format": errors.NewFormat("image", 5, 4, "9.9"),
    "adapter": errors.AdapterError("bad"),
    "ollama_timeout": errors.OllamaTimeout("load", 3.0),
    "model_missing": errors.ModelMissing("m"),
    "context_overflow": errors.ContextOverflow(9, 8),
    "request_rejected": errors.RequestRejected("no", 500),
    "answer_cut": errors.AnswerCut(700, 324, 1024, 512),
    "runaway": errors.Runaway("blanks", 9),
    "approval_needed": errors.ApprovalNeeded("waits", "a-1", others=("a-2",)),
    "budget_exceeded": BudgetExceeded("too large", {"rows": []}, 512),
    "covenant_violation": errors.CovenantViolation("refused"),
    "cell_killed": errors.CellKilled("too much", "memory"),
    "image_busy": errors.ImageBusy("a.fs", "process 1"),
    "message_not_understood": errors.MessageNotUnderstood("a", "b"),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_what_it_was(kind: type[BatosError]) -> None:
    """Code, exit code, message, remedy, field and what else it said survive the wire."""
    error = MADE[kind.code] if kind.code in MADE else kind("what happened", remedy="what to do", field="f")
    error.also = ("further",)
    told = wire_messages.error_of(json.loads(json.dumps(error.as_dict())))
    assert type(told) is kind
    assert told.as_dict() == error.as_dict()
    assert told.exit_code == error.exit_code
    assert (told.message, str(told)) == (error.message, str(error))


def test_an_error_of_another_version_keeps_its_code() -> None:
    """What this version does not know is shown as it was told."""
    told = wire_messages.error_of({"code": "moonstruck", "message": "howl", "remedy": "wait", "retry": True})
    assert told.as_dict() == {"code": "moonstruck", "message": "howl", "remedy": "wait", "retry": True}
    assert BatosError("plain").code == "error"
    assert wire_messages.error_of({}).code == "error"


def test_the_client_needs_neither_database_nor_model_nor_arrays() -> None:
    """A program that imports the client gets no ZODB, no Ollama client and no numpy with it."""
    asked = (
        "import sys; from batos import AsyncClient, Client; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "zmq" in loaded
    assert not loaded & {"ZODB", "persistent", "BTrees", "transaction", "ollama", "httpx", "numpy"}

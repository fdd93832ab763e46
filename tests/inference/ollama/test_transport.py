"""The daemon's address, the splice into requests, the guard over lines, and the import of the client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos import config
from batos.inference.ollama.transport import LineGuard, ask_for_overflow, daemon_url
from batos.protocol.errors import ConfigError


@pytest.mark.parametrize(
    "host", ["ftp://x", "http://x:port", "x:99999", "http://[::1", "user:pass@host", "two words", "a;b", "http://x?y=1"]
)
def test_addresses_that_are_none(host: str) -> None:
    """What cannot be an address is a setting's error that names the setting."""
    with pytest.raises(ConfigError) as wrong:
        daemon_url(host)
    assert wrong.value.field == "ollama_host"


@given(host=st.text(max_size=30))
def test_an_address_is_usable_or_refused(host: str) -> None:
    """Whatever is given becomes a URL that httpx accepts, or ConfigError."""
    try:
        url = daemon_url(host)
    except ConfigError:
        return
    assert httpx.URL(url).scheme in ("http", "https")


def _sent(path: str, body: bytes, method: str = "POST") -> httpx.Request:
    request = httpx.Request(method, f"http://x{path}", content=body, headers={"Content-Length": str(len(body))})
    ask_for_overflow(request)
    return request


async def _body(request: httpx.Request) -> bytes:
    assert isinstance(request.stream, httpx.AsyncByteStream)
    return b"".join([part async for part in request.stream])


@given(body=st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.lists(st.integers(), max_size=3)))
async def test_the_splice_changes_nothing_else(body: dict[str, object]) -> None:
    """Every field of the body stays, the two are added, and the length says so."""
    request = _sent("/api/chat", json.dumps(body).encode())
    sent = await _body(request)
    assert json.loads(sent) == {**body, "truncate": False, "shift": False}
    assert request.headers.get_list("content-length") == [str(len(sent))]


async def test_only_what_runs_a_prompt_is_edited() -> None:
    """chat and generate get both fields, embed one; other paths, behind a prefix too, and bodies that are no object
    stay as they are; the last of two equal fields is ours."""
    assert (await _body(_sent("/api/generate", b'{"a":1}'))) == b'{"a":1,"truncate":false,"shift":false}'
    assert (await _body(_sent("/proxy/api/embed", b'{"truncate":true}'))) == b'{"truncate":true,"truncate":false}'
    for path, body in (("/api/show", b'{"a":1}'), ("/api/chat", b"[]"), ("/api/chats", b"{}")):
        assert (await _body(_sent(path, body))) == body
    assert (await _body(_sent("/api/chat", b'{"a":1}', "PUT"))) == b'{"a":1}'


TEXTS = st.text(st.sampled_from("a\u0085\u2028\u2029\u00c2\u00e2\u20ac\u2030é漢😀"), max_size=12)


@given(text=TEXTS, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_the_guard_keeps_lines_whole(text: str, cuts: list[int]) -> None:
    """However the bytes are cut, a JSON line passes with the same meaning and nothing that splits lines."""
    raw = json.dumps({"content": text}, ensure_ascii=False).encode()
    places = sorted({min(cut, len(raw)) for cut in cuts})
    guard = LineGuard()
    parts = [raw[start:end] for start, end in zip([0, *places], [*places, len(raw)], strict=True)]
    passed = b"".join(guard.pass_on(part) for part in parts) + guard.rest()
    assert json.loads(passed) == {"content": text}
    assert len(passed.decode().splitlines()) == 1


@given(raw=st.binary(max_size=60), size=st.integers(1, 5))
def test_the_guard_loses_no_byte(raw: bytes, size: int) -> None:
    """Bytes that hold no separator pass unchanged, whether they are UTF-8 or not."""
    guard = LineGuard()
    passed = b"".join(guard.pass_on(raw[at : at + size]) for at in range(0, len(raw), size)) + guard.rest()
    expected = raw.replace(b"\xc2\x85", b"\\u0085")
    assert passed == expected.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")


def test_a_desktops_environment_does_not_break_the_import() -> None:
    """`import ollama` alone fails with a SOCKS proxy or a mistyped OLLAMA_HOST; importing the bridge does not, and the
    variables are as before."""
    program = "import os, batos.inference.ollama.bridge; print(os.environ['ALL_PROXY'], os.environ['OLLAMA_HOST'])"
    environment = {**os.environ, "ALL_PROXY": "socks5://127.0.0.1:1", "OLLAMA_HOST": "foo:bar"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["socks5://127.0.0.1:1", "foo:bar"], ran.stderr


@pytest.mark.parametrize(
    "host",
    ["http://user:s3cret@host", "user:s3cret@host:1", "ftp://user:s3cret@x", "http://user:s3cret@h:port", "s3cret＠h"],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(host: str, tmp_path: Path) -> None:
    """Neither the bridge nor the settings take it, and no word of their errors, causes included, holds it."""
    for use in (lambda: daemon_url(host), lambda: config.load({"BATOS_HOME": str(tmp_path), "OLLAMA_HOST": host})):
        with pytest.raises(ConfigError, match="password") as refused:
            use()
        assert "s3cret" not in "".join(traceback.format_exception(refused.value))
        assert "s3cret" not in json.dumps(refused.value.as_dict())

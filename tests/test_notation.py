"""Addresses and sizes as people write them, and URIs shown without their passwords."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.notation import MOST_BYTES, bytes_of, daemon_url, mask_passwords


@pytest.mark.parametrize(
    ("given_", "normal"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("", "http://127.0.0.1:11434"),
        ("localhost", "http://localhost:11434"),
        ("box", "http://box:11434"),
        ("box:8080", "http://box:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("  box  ", "http://box:11434"),
        ("http://box", "http://box:80"),
        ("https://box", "https://box:443"),
        ("HTTPS://Box:9/", "https://box:9"),
        ("https://box/ollama/", "https://box:443/ollama"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("10.0.0.0:1", "http://10.0.0.0:1"),
        ("::1", "http://[::1]:11434"),
        ("::", "http://localhost:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[::]:8080", "http://localhost:8080"),
        ("[0:0:0:0:0:0:0:0]", "http://localhost:11434"),
        ("http://[fe80::1]", "http://[fe80::1]:80"),
    ],
)
def test_the_daemons_address(given_: str, normal: str) -> None:
    """Every form that the daemon's own tools read; what a daemon binds everywhere is reached on the loopback."""
    assert daemon_url(given_) == normal
    assert daemon_url(normal) == normal


@pytest.mark.parametrize(
    "given_",
    ["ftp://x", "http://", "http://x:port", "x:99999", "http://[::1", "[box]", "ada:secret@box", "two words", "a;b",
     "http://x?y=1", "http://x#y", "bücher.example", "a..b", "x" * 64],
)  # fmt: skip
def test_what_is_no_address(given_: str) -> None:
    """It is refused, in words that never repeat what may be a password."""
    with pytest.raises(ValueError, match=r"^(where an Ollama daemon listens|an Ollama address without)") as raised:
        daemon_url(given_)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "uri",
    [
        "postgres://ada:secret@box/image",
        "postgresql://ada:secret@box:5432/image?sslmode=require",
        "postgres://:secret@box/image",
        "postgres://ada:se@secret@box/image",
        "postgres://ada:se/secret@box/image",
        "postgres://ada:se?secret@box/image",
        "postgres://ada:se#secret@box/image",
        "postgres://box/image?user=ada&password=secret",
        "postgres://box/image?sslpassword=secret&user=ada",
        "postgres://?dsn=dbname%3Dimage%20password%3Dsecret",
        "postgres://?dsn=dbname='image'+password='secret'",
        "zeo://box:9001?storage=1&username=ada&password=secret",
        "zeo://box:9001?PASSWORD=secret",
    ],
)
def test_no_password_is_shown(uri: str) -> None:
    """Wherever a URI holds it, before the host or among the keywords."""
    shown = mask_passwords(uri)
    assert "secret" not in shown
    assert "***" in shown
    assert shown.startswith(uri.partition("://")[0])


@pytest.mark.parametrize(
    "uri",
    ["", "memory://image", "file:///home/ada/live_image.fs?blobstorage_dir=/home/ada/blobs", "zeo://box:9001?storage=1",
     "postgres://ada@box/image", "file:///with@sign/a:b.fs"],
)  # fmt: skip
def test_what_holds_none_is_shown_as_it_is(uri: str) -> None:
    """Nothing else is hidden."""
    assert mask_passwords(uri) == uri


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8", 8 << 30),
        ("8GiB", 8 << 30),
        ("8 gib", 8 << 30),
        (" 6.5G ", 13 << 29),
        ("6500MiB", 6500 << 20),
        ("6500m", 6500 << 20),
        ("8GB", 8 * 10**9),
        ("500MB", 500 * 10**6),
        ("0", 0),
    ],
)
def test_sizes(text: str, size: int) -> None:
    """A bare number counts GiB; units are those that cards and tools are sold with."""
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-8", "8 8", "8TiB", "eight", "8GiB!", "nan", "1e3", "٨", "9" * 9, "8KiB"])
def test_what_is_no_size(text: str) -> None:
    """It is refused, and the error says what a size looks like."""
    with pytest.raises(ValueError, match="a size such as 8, 8GiB or 6500MiB"):
        bytes_of(text)


@given(text=st.text(max_size=12) | st.from_regex(r"\A\d{0,10}\.?\d{0,10} ?[A-Za-z]{0,4}\Z"))
def test_any_text_is_a_size_or_none(text: str) -> None:
    """Nothing but a bounded number of bytes or a ValueError comes of it."""
    try:
        size = bytes_of(text)
    except ValueError:
        return
    assert 0 <= size <= MOST_BYTES

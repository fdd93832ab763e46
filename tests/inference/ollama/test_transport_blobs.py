"""Files on their way to the daemon."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.inference.conftest import MakeBridge
from tests.inference.raw_server import recorded, serving

from batos.inference.ollama import transport
from batos.protocol.errors import RequestRejected, UsageError

MIB = 1 << 20


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of two and a half mebibytes."""
    path = tmp_path / "adapter.gguf"
    path.write_bytes(b"GGUF" * (5 * MIB // 8))
    return path


def test_a_known_digest_is_not_computed_again(file: Path) -> None:
    """The size is today's, the digest as given, in the daemon's form or refused."""
    given = "sha256:" + "0" * 64
    assert transport.measure_file(file, given) == transport.MeasuredFile(file, given, 5 * MIB // 2)
    assert transport.measure_file(file).digest == digest_of(file.read_bytes())
    with pytest.raises(UsageError):
        transport.measure_file(file, "sha256-" + "0" * 64)


async def test_every_piece_is_told(bridge_to: MakeBridge, file: Path) -> None:
    """Bytes are heard of before each mebibyte and at the end; a blob that is there already is not sent or heard of."""
    heard: list[tuple[int, int]] = []
    async with serving(recorded(111), recorded(112), recorded(113)) as server:
        bridge = bridge_to(server.url)
        for _ in range(2):
            digest = await bridge.upload_blob(file, on_bytes=lambda sent, size: heard.append((sent, size)))
    whole = 5 * MIB // 2
    assert heard == [(0, whole), (MIB, whole), (2 * MIB, whole), (whole, whole)]
    assert digest == digest_of(server.asked[1].body)
    assert [asked.method for asked in server.asked] == ["HEAD", "POST", "HEAD"]
    assert server.asked[1].headers["content-length"] == str(whole)


async def test_a_file_that_shrinks_on_the_way_is_told(bridge_to: MakeBridge, file: Path) -> None:
    """It cannot become what was announced: the upload ends with the file's name."""

    def cut(sent: int, _: int) -> None:
        if sent == MIB:
            file.write_bytes(b"short")

    async with serving(recorded(111), recorded(112)) as server:
        with pytest.raises(UsageError, match="changed while it was sent") as told:
            await bridge_to(server.url).upload_blob(file, on_bytes=cut)
    assert str(file) in told.value.message


async def test_a_file_that_grows_on_the_way_is_sent_as_it_was(file: Path) -> None:
    """No more bytes go than were announced; whether they are the right ones is the digest's to say."""
    measured = transport.measure_file(file)
    with file.open("ab") as end:
        end.write(b"more")
    sent = b"".join([chunk async for chunk in transport.chunks(measured, lambda _: None)])
    assert digest_of(sent) == measured.digest


async def test_a_file_that_is_another_is_the_daemons_to_find(bridge_to: MakeBridge, file: Path) -> None:
    """Under a digest that it has no more, it is refused with what to do."""
    async with serving(recorded(111), recorded(115)) as server:
        with pytest.raises(RequestRejected, match="digest mismatch") as told:
            await bridge_to(server.url).upload_blob(file, "sha256:" + "0" * 64)
    assert told.value.field == "digest"
    assert "changed" in told.value.remedy


async def test_an_empty_file_is_sent_too(bridge_to: MakeBridge, tmp_path: Path) -> None:
    """Its length is 0, and its end is told once."""
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    heard: list[int] = []
    async with serving(recorded(111), recorded(112)) as server:
        await bridge_to(server.url).upload_blob(empty, on_bytes=lambda sent, _: heard.append(sent))
    assert heard == [0]
    assert server.asked[1].body == b""

"""Where a server may listen and be reached, and which of those places are this machine's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.client.addresses import parse_listening, parse_reachable
from batos.protocol.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "bound", "loopback", "near"),
    [
        ("tcp://127.0.0.1:7717", "tcp://127.0.0.1:7717", True, "tcp://127.0.0.1:7717"),
        ("tcp://127.9.8.7:7717", "tcp://127.9.8.7:7717", True, "tcp://127.9.8.7:7717"),
        ("tcp://localhost:7717", "tcp://127.0.0.1:7717", True, "tcp://127.0.0.1:7717"),
        ("tcp://[::1]:7717", "tcp://[::1]:7717", True, "tcp://[::1]:7717"),
        ("tcp://[0:0:0:0:0:0:0:1]:7717", "tcp://[::1]:7717", True, "tcp://[::1]:7717"),
        ("tcp://*:7717", "tcp://0.0.0.0:7717", False, "tcp://127.0.0.1:7717"),
        ("tcp://0.0.0.0:7717", "tcp://0.0.0.0:7717", False, "tcp://127.0.0.1:7717"),
        ("tcp://[::]:7717", "tcp://[::]:7717", False, "tcp://[::1]:7717"),
        ("tcp://192.168.1.9:7717", "tcp://192.168.1.9:7717", False, "tcp://192.168.1.9:7717"),
        ("tcp://[fd00::9]:7717", "tcp://[fd00::9]:7717", False, "tcp://[fd00::9]:7717"),
        ("tcp://[::ffff:127.0.0.1]:7717", "tcp://[::ffff:127.0.0.1]:7717", None, None),
    ],
)
def test_where_a_server_listens(text: str, bound: str, loopback: bool | None, near: str | None) -> None:
    """Only what no other machine can reach is loopback; `near` is how this machine reaches it."""
    address = parse_listening(text, "bind")
    if loopback is not None:
        assert (str(address), address.is_loopback, address.near) == (bound, loopback, near)


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:*", "tcp://127.0.0.1:0"])
def test_any_free_port_may_be_taken(text: str) -> None:
    """A star or zero is whatever port is free; the address with the port that it got is another."""
    address = parse_listening(text, "bind")
    assert str(address) == "tcp://127.0.0.1:*"
    assert str(address.at(5)) == "tcp://127.0.0.1:5"


@pytest.mark.parametrize(
    "text",
    [
        "", "7717", "127.0.0.1:7717", "tcp://127.0.0.1", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:-1",
        "tcp://127.0.0.1:٣", "tcp://:7717", "tcp://::1:7717", "tcp://eth0:7717", "tcp://box:7717",
        "tcp://[fe80::1%eth0]:7717", "tcp://0177.0.0.1:7717", "tcp://127.1:7717", "ipc:///tmp/batos", "inproc://x",
        "http://127.0.0.1:7717", "tcp://127.0.0.1:7717/", "tcp://eth0;127.0.0.1:7717", "tcp://127.0.0.1:7717\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["bind", "events"])
def test_what_is_no_place_to_listen_names_the_setting(text: str, field: str) -> None:
    """Names, interfaces, zones, other transports and what is no address: refused, with how to write it."""
    with pytest.raises(ConfigError) as refused:
        parse_listening(text, field)
    assert refused.value.field == field
    assert "tcp://" in refused.value.remedy


def test_a_server_is_reached_by_name_too() -> None:
    """A client may name a host; what stands for every address cannot be reached."""
    assert str(parse_reachable("tcp://box.local:7717", "server")) == "tcp://box.local:7717"
    assert not parse_reachable("tcp://box.local:7717", "server").is_loopback
    assert parse_reachable("tcp://localhost:7717", "server").is_loopback
    for text in ("tcp://*:7717", "tcp://0.0.0.0:7717", "tcp://[::]:7717", "tcp://a b:1", "tcp://-x:1", "tcp://box:*"):
        with pytest.raises(ConfigError):
            parse_reachable(text, "server")


@given(st.text(max_size=40) | st.from_regex(r"tcp://[^/]{0,20}:[0-9*]{1,6}", fullmatch=True))
def test_any_text_is_an_address_or_a_wrong_setting(text: str) -> None:
    """Nothing else can come of it, and what is one is written the same again."""
    try:
        address = parse_listening(text, "bind")
    except ConfigError:
        return
    assert parse_listening(str(address), "bind") == address

"""The token and keys of a home: made once, for their owner alone, told apart from what is none."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from zmq.utils import z85

from batos.client.keys import Keyring, read_key_file, setting_address
from batos.protocol.errors import ConfigError, NotFound, UsageError


def test_a_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    """The first who asks makes it; it stays, until another is asked for."""
    ring = Keyring(tmp_path)
    token = ring.token()
    assert len(token) >= 32
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert Keyring(tmp_path).token() == token
    assert ring.is_token(token.encode())
    assert not ring.is_token(token.encode()[:-1])
    assert ring.renew_token() != token
    assert not ring.is_token(token.encode())


def test_many_who_ask_at_once_get_one_token_and_one_key(tmp_path: Path) -> None:
    """A first start of several processes makes one of each."""
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: (Keyring(tmp_path).token(), Keyring(tmp_path).server()), range(16)))
    assert len(set(made)) == 1


def test_an_empty_token_is_made_anew_and_a_strange_one_is_not(tmp_path: Path) -> None:
    """A file that somebody emptied asks for another; one that holds something else is left and told."""
    (tmp_path / "token").write_text("", encoding="utf-8")
    assert Keyring(tmp_path).token()
    (tmp_path / "token").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="holds no token"):
        Keyring(tmp_path).token()


def test_a_key_file_holds_what_its_client_needs(tmp_path: Path) -> None:
    """It is read back as it was made, and the server knows its client by it."""
    ring = Keyring(tmp_path)
    key = ring.new("laptop", "tcp://10.0.0.1:7717")
    file = tmp_path / "laptop.json"
    file.write_text(key.text(), encoding="utf-8")
    assert read_key_file(file) == key
    assert [(each.name, each.public) for each in ring.clients()] == [("laptop", key.public)]
    assert ring.owner(z85.decode(key.public)) == "laptop"
    assert ring.owner(z85.decode(ring.own().public)) == "home"
    assert ring.owner(b"\0" * 32) is None
    secrets = [path for path in tmp_path.rglob("*") if path.is_file() and key.secret in path.read_text("utf-8")]
    assert secrets == [file]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "keys").rglob("*"))
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0
    ring.revoke("laptop")
    assert ring.owner(z85.decode(key.public)) is None
    with pytest.raises(NotFound):
        ring.revoke("laptop")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "home", "-x", "a b", "x" * 65, "ü"])
def test_a_name_that_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    """A key's name is a file's name, and the home's own is taken."""
    with pytest.raises(UsageError) as refused:
        Keyring(tmp_path).new(name, "")
    assert refused.value.field == "name"
    with pytest.raises(NotFound):
        Keyring(tmp_path).revoke(name)


def test_a_name_has_one_key(tmp_path: Path) -> None:
    """A second one of the name would leave the first one's owner in."""
    Keyring(tmp_path).new("laptop", "")
    with pytest.raises(UsageError, match="already"):
        Keyring(tmp_path).new("laptop", "")


def test_a_broken_pair_is_told(tmp_path: Path) -> None:
    """A server's key file that is none, or whose halves do not fit: what to do is said."""
    ring = Keyring(tmp_path)
    good, other = ring.server(), ring.own()
    for text in ("{", "[]", "{}", json.dumps({"public": other.public, "secret": good.secret})):
        (tmp_path / "keys" / "server.json").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match="holds no key") as refused:
            ring.server()
        assert "Remove" in refused.value.remedy


@pytest.mark.parametrize("change", [{"v": 2}, {"batos": "x"}, {"more": 1}, {"server": "short"}, {"public": 3}])
def test_what_is_no_key_file_names_the_setting(tmp_path: Path, change: dict[str, object]) -> None:
    """A file that no server made is refused with what to give instead."""
    file = tmp_path / "key.json"
    key = json.loads(Keyring(tmp_path).new("x", "tcp://10.0.0.1:1").text())
    file.write_text(json.dumps({**key, **change}), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        setting_address(str(file), tmp_path)
    assert refused.value.field == "server"


def test_the_token_goes_to_no_other_machine(tmp_path: Path) -> None:
    """An address beyond loopback needs a key file: PLAIN would send the token readable."""
    with pytest.raises(ConfigError, match="another machine") as refused:
        setting_address("tcp://10.0.0.1:7717", tmp_path)
    assert "keys new" in refused.value.remedy
    assert setting_address("tcp://localhost:7717", tmp_path).credentials.token == Keyring(tmp_path).token()
    with pytest.raises(ConfigError):
        setting_address(str(tmp_path / "none"), tmp_path)

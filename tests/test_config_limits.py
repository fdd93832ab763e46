"""Settings that no machine can mean, and files that no editor writes, are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from batos import config
from batos.config import CONFIG_FILE, Settings
from batos.protocol.errors import ConfigError

NUMBERS = [name for name, field in Settings.model_fields.items() if field.annotation in (int, float)]
DEEP = "a = " + "[" * 50_000


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["1e300", "inf", "nan", "-1", str(2**63), "9" * 5_000])
def test_every_number_has_bounds(tmp_path: Path, name: str, value: str) -> None:
    """No number is infinite, none at all, or beyond what it can sensibly be; the error names setting and source."""
    variable = f"BATOS_{name.upper()}"
    with pytest.raises(ConfigError) as raised:
        config.load({"BATOS_HOME": str(tmp_path), variable: value})
    assert raised.value.field == name
    assert variable in raised.value.message
    assert len(raised.value.message) < 500


def test_the_greatest_attachment(tmp_path: Path) -> None:
    """An attachment may have 1 GiB, and not a byte more."""
    assert Settings(home=tmp_path, attachment_bytes=2**30).attachment_bytes == 2**30
    with pytest.raises(ValueError, match="less than or equal to 1073741824"):
        Settings(home=tmp_path, attachment_bytes=2**30 + 1)


@pytest.mark.parametrize("name", [*NUMBERS, "user"])
@pytest.mark.parametrize("value", [f"0x{'f' * 5_000}", f"'{'x' * 100_000}'", "[[[[1]]]]"])
def test_values_of_any_size_are_refused_shortly(tmp_path: Path, name: str, value: str) -> None:
    """What cannot be written whole into an error is cut there; a text is what a user may be."""
    (tmp_path / CONFIG_FILE).write_text(f"{name} = {value}\n", encoding="utf-8")
    if name == "user" and value.startswith("'"):
        assert config.load({"BATOS_HOME": str(tmp_path)}).settings.user
        return
    with pytest.raises(ConfigError) as raised:
        config.load({"BATOS_HOME": str(tmp_path)})
    assert raised.value.field == name
    assert len(raised.value.message) < 600


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (DEEP.encode(), "nested too deep"),
        (b"a = " + b"{a = " * 50_000, "nested too deep"),
        (b"missions = " + b"9" * 5_000, "too many digits"),
    ],
    ids=["bytes", "lists", "tables", "digits"],
)
def test_a_file_that_no_editor_writes(tmp_path: Path, data: bytes, said: str) -> None:
    """The error names the file and what is wrong with it."""
    (tmp_path / CONFIG_FILE).write_bytes(data)
    with pytest.raises(ConfigError, match=said) as raised:
        config.load({"BATOS_HOME": str(tmp_path)})
    assert str(tmp_path / CONFIG_FILE) in raised.value.message
    assert str(tmp_path / CONFIG_FILE) in raised.value.remedy

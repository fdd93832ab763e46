"""Settings: which source wins, what is refused and how it is said, which homes and daemons can be named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from batos import config, notation
from batos.config import CONFIG_FILE, Settings
from batos.image.image import LivingImage, Opening
from batos.inference.ollama.transport import daemon_url
from batos.protocol.errors import ConfigError


def at(home: Path, **environ: str) -> dict[str, str]:
    """An environment with a home."""
    return {"BATOS_HOME": str(home), **environ}


def filed(home: Path, text: str | bytes) -> None:
    """A home whose settings file says this."""
    home.mkdir(parents=True, exist_ok=True)
    (home / CONFIG_FILE).write_bytes(text if isinstance(text, bytes) else text.encode())


def refusal(home: Path, environ: Mapping[str, str] | None = None, **flags: object) -> ConfigError:
    """What loading is refused with."""
    with pytest.raises(ConfigError) as raised:
        config.load({**at(home), **(environ or {})}, flags)
    return raised.value


def test_the_later_source_wins(tmp_path: Path) -> None:
    """Defaults give way to batos.toml, that to the environment, that to flags; each value knows where it came from."""
    filed(tmp_path, 'missions = 3\nuser = "file"\nprofile = "file"\nlog_level = "info"\n')
    environ = at(tmp_path, BATOS_USER="environment", BATOS_PROFILE="environment", BATOS_LOG_LEVEL="error")
    loaded = config.load(environ, {"profile": "flag", "log_level": None})
    found = loaded.settings
    assert (found.load_seconds, found.missions, found.user, found.profile) == (300.0, 3, "environment", "flag")
    rows = {row.name: row.source for row in loaded.rows()}
    assert rows["load_seconds"] == "default"
    assert rows["missions"] == str(tmp_path / CONFIG_FILE)
    assert rows["user"] == "BATOS_USER"
    assert rows["profile"] == "flag"
    # A flag that was not given does not count.
    assert rows["log_level"] == "BATOS_LOG_LEVEL"
    assert rows["home"] == "BATOS_HOME"


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name not in {"home", "ollama_host"}])
def test_every_setting_has_its_variable(tmp_path: Path, name: str) -> None:
    """BATOS_<NAME> sets the setting, and an empty one is as good as none."""
    variable = f"BATOS_{name.upper()}"
    default = config.load(at(tmp_path)).settings
    others = {"log_level": "debug", "log_format": "json", "kv_type": "q8_0", "install": "ask", "interpret": "never"}
    others |= {"effort": "cycle", "genesis": "auto", "http_proxy": "tls", "http_answers": "checked"}
    others |= {"on_disconnect": "finish", "chores": "refuse", "client_tools": "ignore"}
    others["second_voice_margin"] = "0.5"
    value = others.get(name, "7")
    loaded = config.load(at(tmp_path, **{variable: value}))
    assert str(getattr(loaded.settings, name)) in {value, f"{value}.0"}
    assert loaded.sources[name] == variable
    assert config.load(at(tmp_path, **{variable: ""})).settings == default


def test_our_variable_of_the_daemon_wins_over_its_own(tmp_path: Path) -> None:
    """OLLAMA_HOST names the daemon for everyone; BATOS_OLLAMA_HOST for BAT OS alone."""
    loaded = config.load(at(tmp_path, OLLAMA_HOST="theirs", BATOS_OLLAMA_HOST="ours"))
    assert loaded.settings.ollama_host == "http://ours:11434"
    assert loaded.sources["ollama_host"] == "BATOS_OLLAMA_HOST"


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("missions = 300", "missions", "at most 256, not 300"),
        ("missions = 0", "missions", "at least 1, not 0"),
        ("missions = 1.5", "missions", "a whole number, not 1.5"),
        ('missions = "many"', "missions", "a whole number, not 'many'"),
        ('connect_seconds = "soon"', "connect_seconds", "a number, not 'soon'"),
        ("connect_seconds = 0", "connect_seconds", "more than 0"),
        ("connect_seconds = inf", "connect_seconds", "a finite number, not inf"),
        ("connect_seconds = nan", "connect_seconds", "not nan"),
        ("user = 5", "user", "text, not 5"),
        ('log_level = "loud"', "log_level", "'debug', 'info', 'warning' or 'error', not 'loud'"),
        ('ollama_host = "ftp://x"', "ollama_host", "host:port"),
    ],
)
def test_a_bad_value_names_field_source_and_remedy(tmp_path: Path, text: str, field: str, said: str) -> None:
    """What it must be, what it is, and where that stands; none of it in a library's words."""
    filed(tmp_path, text)
    error = refusal(tmp_path)
    assert error.field == field
    assert error.message.startswith(f"{field} (from {tmp_path / CONFIG_FILE}) must be ")
    assert said in error.message
    assert error.remedy == f"Correct it in {tmp_path / CONFIG_FILE}."
    assert "Input should" not in error.message


def test_a_bad_value_names_the_variable_or_the_flag(tmp_path: Path) -> None:
    """The source is the variable's name, or that it was a flag."""
    error = refusal(tmp_path, {"BATOS_MISSIONS": "x"})
    assert (error.message, error.remedy) == (
        "missions (from BATOS_MISSIONS) must be a whole number, not 'x'",
        "Correct it in BATOS_MISSIONS.",
    )
    assert refusal(tmp_path, missions=-1).message == "missions (from flag) must be at least 1, not -1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mission = 3", "there is no setting 'mission'; did you mean 'missions'?"),
        ("colour = 3", "there is no setting 'colour'"),
        ("[image]\nuri = 3", "image"),
        ("missions = true", "cannot be true"),
        ('home = "x"', "the home cannot be set in a file that is in it"),
        ("missions = ", "is not valid TOML"),
        (b"user = '\xff'", "byte 8 is not UTF-8"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str | bytes, said: str) -> None:
    """Unknown names, wrong kinds of value and what is not TOML are refused with the file's path and a remedy."""
    filed(tmp_path, text)
    error = refusal(tmp_path)
    assert said in error.message
    assert str(tmp_path / CONFIG_FILE) in error.message
    assert str(tmp_path / CONFIG_FILE) in error.remedy or "--home" in error.remedy


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder in the place of the file is no file."""
    (tmp_path / CONFIG_FILE).mkdir()
    assert "cannot be read: Is a directory" in refusal(tmp_path).message


HOSTS = st.one_of(
    st.text(),
    st.text("ab.:/[]@?#%0129 \t\x7fé", max_size=20),
    st.from_regex(r"\A(https?://)?[a-z0-9.:\[\]]{0,12}(:\d{0,6})?/?\Z"),
)


@given(host=HOSTS)
@example("http://a b")
@example("http://[::1")
@example("x:99999")
@example("http://user:secret@box")
@example("http://")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_text_is_an_address_or_an_error_of_ours(tmp_path: Path, host: str) -> None:
    """Nothing but a ConfigError comes of it; what is accepted is accepted again unchanged, and the client takes it."""
    try:
        accepted = config.load(at(tmp_path), {"ollama_host": host}).settings.ollama_host
    except ConfigError as error:
        assert error.field == "ollama_host"
        return
    assert notation.daemon_url(accepted) == accepted
    try:
        assert httpx.URL(daemon_url(accepted)).host
    except ConfigError:
        pass  # the client knows more of names than this does


SETTINGS = st.dictionaries(
    st.sampled_from([f"BATOS_{name.upper()}" for name in Settings.model_fields if name != "home"]),
    st.text(st.characters(exclude_characters="\0")) | st.integers().map(str) | st.floats().map(str),
)


@given(environ=SETTINGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_environment_loads_or_is_refused_by_name(tmp_path: Path, environ: dict[str, str]) -> None:
    """No text in a variable is anything but a setting or a ConfigError that names it."""
    try:
        loaded = config.load({**at(tmp_path), **environ})
    except ConfigError as error:
        assert f"BATOS_{str(error.field).upper()}" in error.message
        assert error.remedy
        return
    assert len(loaded.rows()) == len(Settings.model_fields)


@given(text=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_file_loads_or_is_refused(tmp_path: Path, text: bytes) -> None:
    """No bytes in batos.toml are anything but settings or a ConfigError."""
    filed(tmp_path, text)
    try:
        config.load(at(tmp_path))
    except ConfigError as error:
        assert str(tmp_path) in error.message


@pytest.mark.parametrize("name", ["with blanks", "ünï-çødé", "100%25", "a&b=c", "c#d", "e+f", "a;b", "日本"])
def test_a_home_may_have_any_ordinary_name(tmp_path: Path, name: str) -> None:
    """The image opens in it, and image, journal and blobs lie there and nowhere else."""
    home = tmp_path / name
    found = config.load(at(home)).settings
    image = LivingImage(Opening(found.image_uri, found.journal))
    try:
        asyncio.run(image.prepare())
    finally:
        image.close()
    assert {"live_image.fs", "journal.fs", "blobs"} <= {path.name for path in home.iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("name", "said"), [("what?", "without a question mark"), ("\udcff", "in UTF-8")])
def test_a_home_that_no_uri_can_name_is_refused(tmp_path: Path, name: str, said: str) -> None:
    """A storage URI has no way to write these."""
    error = refusal(tmp_path / name)
    assert error.field == "home"
    assert said in error.message


def test_a_home_of_a_stranger_is_refused() -> None:
    """`~name` of nobody is an error with a remedy."""
    with pytest.raises(ConfigError, match="no-such-person") as raised:
        config.load({"BATOS_HOME": "~no-such-person/x"})
    assert "--home" in raised.value.remedy


def test_rows_show_what_is_in_effect(tmp_path: Path) -> None:
    """Where image and user are not set, the rows show the image's URI and the login name that are used."""
    rows = {row.name: row for row in config.load(at(tmp_path, LOGNAME="unused")).rows()}
    assert list(rows) == list(Settings.model_fields)
    assert rows["image"].value == f"file://{tmp_path}/live_image.fs?blobstorage_dir={tmp_path}/blobs"
    assert rows["user"].value == Settings(home=tmp_path).asker
    assert (rows["image"].source, rows["user"].source) == ("default", "default")
    named = {row.name: row.value for row in config.load(at(tmp_path, BATOS_USER="Ada")).rows()}
    assert named["user"] == "Ada"


def test_rows_show_no_password(tmp_path: Path) -> None:
    """The settings have the URIs as they were given; what is shown of them has no password."""
    environ = at(tmp_path, BATOS_IMAGE="postgres://ada:secret@box/x", BATOS_JOURNAL="zeo://box?password=secret")
    loaded = config.load(environ)
    shown = {row.name: row.value for row in loaded.rows()}
    assert shown["image"] == "postgres://ada:***@box/x"
    assert shown["journal"] == "zeo://box?password=***"
    assert loaded.settings.image_uri == "postgres://ada:secret@box/x"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("vram", "eight", "a size such as 8, 8GiB or 6500MiB, not 'eight'"),
        ("usable", "8TiB", "a size such as"),
        ("reserve", " ", "a size such as"),
        ("parallel", "65", "at most 64"),
        ("kv_type", "q5_0", "'f16', 'q8_0' or 'q4_0'"),
    ],
)
def test_the_budgets_settings(tmp_path: Path, name: str, value: str, said: str) -> None:
    """What is no size, no count and no cache type is refused, wherever it was said; a flag by its own name."""
    for error in (refusal(tmp_path, {f"BATOS_{name.upper()}": value}), refusal(tmp_path, None, **{name: value})):
        assert error.field == name
        assert said in error.message
    assert error.remedy == f"Correct --{name.replace('_', '-')}."


def test_sizes_in_the_file_may_be_numbers(tmp_path: Path) -> None:
    """`vram = 8` and `vram = "8GiB"` are the same."""
    filed(tmp_path, 'vram = 8\nusable = 6.5\nreserve = "500MiB"\n')
    found = config.load(at(tmp_path)).settings
    assert (found.vram, found.usable, found.reserve) == ("8", "6.5", "500MiB")
    filed(tmp_path, "vram = [8]\n")
    assert "must be text" in refusal(tmp_path).message


def test_a_user_without_a_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a container runs as somebody whom no list knows, the asker is named by the number."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    asker = Settings(home=tmp_path).asker
    assert asker
    assert not asker.startswith("uid") or asker == f"uid{os.getuid()}"


def test_settings_do_not_change(tmp_path: Path) -> None:
    """They are read once: no part of the system can change them for another."""
    found = config.load(at(tmp_path)).settings
    with pytest.raises(ValueError, match="frozen"):
        found.missions = 9


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("BATOS_VRMA", ("BATOS_VRMA is not a setting and is not read; did you mean BATOS_VRAM?",)),
        ("BATOS_XYZZY", ("BATOS_XYZZY is not a setting and is not read",)),
        ("BATOS_VRAM", ()),
        ("BATOS_DEBUG_LOOP", ()),
        ("VRMA", ()),
    ],
)
def test_a_variable_that_nobody_reads_is_told(tmp_path: Path, variable: str, told: tuple[str, ...]) -> None:
    """It changes nothing, and the setting that was meant is named; other people's variables are none of ours."""
    loaded = config.load(at(tmp_path, **{variable: "6"}))
    assert loaded.unread == told

"""Settings as one frozen value, read once: defaults, then batos.toml, then the environment, then flags."""

from __future__ import annotations

import difflib
import getpass
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from batos.door_settings import DoorSettings
from batos.home_folder import PACKAGE, check_own, checkout_folder, find_home
from batos.notation import bytes_of, daemon_url, has_userinfo, mask_passwords
from batos.protocol.errors import ConfigError

CONFIG_FILE = "batos.toml"

#: Seconds of a day: no single wait is longer.
DAY = 86_400.0

#: Variables with our prefix that are no settings: of tests, of compose, of the shell's completion, for looking closer.
BESIDE = frozenset(
    "HOME DEBUG_LOOP DEBUG_EVENTS COMPLETE LIVE_OLLAMA LIVE_MODEL CORPUS HYPOTHESIS UID GID PORT EVENTS_PORT DATA "
    "MEMORY HOST_OLLAMA TRUST_HOME HTTP_PORT WEBUI_PORT WEBUI_KEY".split()
)


class Settings(DoorSettings):
    """Every setting with its default; times in seconds, sizes as named."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    home: Path = Field(description="The folder that holds everything; BATOS_HOME.")
    image: str = Field(default="", description="Image URI; empty means live_image.fs in the home.")
    journal: str = Field(default="", description="Journal URI; empty means derived from the image's.")
    ollama_host: str = Field(default="http://127.0.0.1:11434", description="The address of Ollama; OLLAMA_HOST.")
    user: str = Field(default="", description="User of a brief that names none; empty means the login name.")
    look_up_contact: str = Field(
        default="", max_length=200, description="An address or a page of yours that sites are told with each look-up."
    )
    profile: str = Field(default="default", description="The codex's profile that names the models.")
    missions: int = Field(default=8, ge=1, le=256, description="Most missions that run at once.")
    queue: int = Field(default=1_000, ge=1, le=1_000_000, description="Most missions that may wait; others get: busy.")
    genesis: Literal["asked", "auto"] = Field(
        default="asked",
        description="A person (`batos genesis`) or the server begins the first genesis, which pulls the models.",
    )
    bind: str = Field(default="tcp://127.0.0.1:7717", description="Address for requests to `batos serve` (ROUTER).")
    events: str = Field(default="tcp://127.0.0.1:7718", description="Address for events of `batos serve` (PUB).")
    server: str = Field(
        default="",
        description="The server that verbs ask: the home's, started if there is none (`auto`, and empty outside of "
        "containers and CI) or asked only where it runs (`never`), none (`here`), or one at an address.",
    )
    idle_seconds: float = Field(
        default=900.0, gt=0, le=30 * DAY, description="Idle time after which a server that a verb started ends."
    )
    busy_seconds: float = Field(
        default=5.0, ge=0, le=DAY, description="Longest wait of a verb for an image that another process has open."
    )
    connect_seconds: float = Field(default=5.0, gt=0, le=DAY, description="Deadline for connecting to Ollama.")
    load_seconds: float = Field(default=300.0, gt=0, le=DAY, description="Deadline for loading a model.")
    first_token_seconds: float = Field(
        default=120.0, gt=0, le=DAY, description="Deadline for a first token; long prompts have more."
    )
    between_tokens_seconds: float = Field(default=30.0, gt=0, le=DAY, description="Longest silence inside an answer.")
    progress_seconds: float = Field(
        default=300.0, gt=0, le=DAY, description="Longest standstill of a pull, an upload or a model being made."
    )
    mission_calls: int = Field(
        default=40, ge=1, le=10_000, description="Most model calls one mission may spend, in all its runs."
    )
    mission_tokens: int = Field(default=160_000, ge=1, le=10**9, description="Most tokens of one mission, in and out.")
    mission_seconds: float = Field(
        default=3_600.0, gt=0, le=30 * DAY, description="Longest time one mission may take, in all its runs."
    )
    effort: Literal["auto", "reflex", "cycle", "council"] = Field(
        default="auto",
        description="Effort of a question that names none: one call, a cycle, a council; auto: the router's choice.",
    )
    install: Literal["auto", "now", "ask", "never"] = Field(
        default="auto",
        description="A declared intent becomes a method after the answer, before the answer (now), when a person "
        "approves it, or never.",
    )
    learn_seconds: float = Field(
        default=5.0,
        ge=0,
        le=DAY,
        description="Longest time that a process without a server makes methods after its answer.",
    )
    lean_parameters: float = Field(
        default=0.3, ge=0, le=1e6, description="A model of fewer billions of parameters gets prompts in the lean form."
    )
    lean_window: int = Field(default=4_096, ge=0, le=2**30, description="A model with a smaller window gets them too.")
    second_voice_margin: float = Field(default=0.2, ge=0, le=1, description="Two voices answer if scores are nearer.")
    interpret: Literal["allow", "never"] = Field(
        default="allow", description="An intent without a method is answered by interpretation, or never."
    )
    approval_days: float = Field(
        default=7.0, gt=0, le=365, description="Days that a method waits for an answer, and that a rejection holds."
    )
    generation_calls: int = Field(
        default=4, ge=1, le=16, description="Most model calls of a generation: one, and its repairs; lean, twice that."
    )
    generation_tokens: int = Field(
        default=24_000, ge=1, le=10**9, description="Most tokens that one generation may spend, in and out."
    )
    generation_seconds: float = Field(default=600.0, gt=0, le=DAY, description="Longest time of one generation.")
    generation_again: float = Field(
        default=3_600.0, ge=0, le=30 * DAY, description="Time until a failed generation is tried again."
    )
    mission_generations: int = Field(default=16, ge=0, le=1_000, description="Most generations one mission may begin.")
    hour_generations: int = Field(default=60, ge=0, le=100_000, description="Most generations that begin in an hour.")
    cell_workers: int = Field(default=2, ge=1, le=64, description="Processes that generated methods run in.")
    method_control: int = Field(
        default=10, ge=0, le=10**6, description="Uses of a method until one is interpreted as its control; 0: none."
    )
    method_active: int = Field(default=16, ge=1, le=10_000, description="Most active methods that one object has.")
    method_uses: int = Field(default=5, ge=1, le=10**6, description="Uses of a method before it is judged.")
    attachment_bytes: int = Field(default=16 * 2**20, ge=1, le=2**30, description="Largest attachment, in bytes.")
    cold_days: float = Field(default=30.0, ge=0, le=36_500, description="Days without a recall until a memory is cold.")
    heartbeat_seconds: float = Field(
        default=1_200.0, ge=0, le=DAY, description="Seconds of a day that the heartbeat may work."
    )
    heartbeat_calls: int = Field(default=300, ge=0, le=10**6, description="Model calls of a day's heartbeats, at most.")
    heartbeat_tokens: int = Field(default=100_000, ge=0, le=10**9, description="Tokens of a day's heartbeats, at most.")
    audit_every: float = Field(default=DAY, ge=1, le=30 * DAY, description="Longest time between two heartbeats.")
    lease: float = Field(default=10.0, ge=0.5, le=600, description="Seconds until a silent node's work is taken over.")
    history_days: float = Field(default=90.0, ge=0, le=36_500, description="Days of past states that stay; 0: all.")
    journal_days: float = Field(default=0.0, ge=0, le=36_500, description="Days that words of calls stay; 0: always.")
    cpu_threads: int = Field(default=0, ge=0, le=4096, description="Threads of a CPU runner; 0: half of the cores.")
    vram: str = Field(default="8GiB", description="The card's memory: `8`, `8GiB`, `6500MiB`; a bare number is GiB.")
    usable: str = Field(
        default="", description="Part of the card for models; empty means vram less 1.5 GiB (runner and desktop)."
    )
    reserve: str = Field(default="0", description="Part of the usable memory that other programs take.")
    kv_type: Literal["f16", "q8_0", "q4_0"] = Field(
        default="f16", description="The daemon's OLLAMA_KV_CACHE_TYPE, for the budget."
    )
    parallel: int = Field(
        default=1,
        ge=1,
        le=64,
        description="The daemon's OLLAMA_NUM_PARALLEL: for the budget, and so many calls of a runner at once.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="Least severe line on stderr."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="Format of log lines; auto is console on a terminal, else JSON."
    )

    @field_validator("home")
    @classmethod
    def _home(cls, value: Path) -> Path:
        # The home becomes part of storage URIs, which cannot hold a question mark.
        if "?" in str(value):
            raise ValueError("a path without a question mark")
        if any("\ud800" <= character <= "\udfff" for character in str(value)):
            raise ValueError("a path in UTF-8")
        return value

    @field_validator("ollama_host")
    @classmethod
    def _host(cls, value: str) -> str:
        return daemon_url(value)

    @field_validator("vram", "usable", "reserve", mode="before")
    @classmethod
    def _size(cls, value: object, info: ValidationInfo) -> object:
        given = str(value).strip() if isinstance(value, int | float) else value
        if isinstance(given, str) and (given or info.field_name != "usable"):
            bytes_of(given)
        return given

    @property
    def image_uri(self) -> str:
        """Return the image's URI, with the default filled in."""
        return self.image or f"file://{self.home / 'live_image.fs'}?blobstorage_dir={quote(str(self.home / 'blobs'))}"

    @property
    def place(self) -> Path:
        """Return the folder of `adapters/` and `modelfiles/`: the checkout that the home is in, else the home."""
        return checkout_folder(self.home) or self.home

    @property
    def digests(self) -> Path:
        """Return the file that stores the digests of adapters' files; deleting it costs only time."""
        return self.home / "adapters.json"

    @property
    def named_server(self) -> str:
        """Return the address, or the key file, of a server elsewhere; empty where the home's is meant."""
        return "" if self.server in ("auto", "never", "here") else self.server

    @property
    def asker(self) -> str:
        """Return the user of a brief that names none."""
        if self.user:
            return self.user
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a container may run as a user who has no name
            return f"uid{os.getuid()}"


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A setting's value and where it came from."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings and, for each, its source; `unread` has what is wrong with variables that are no setting."""

    settings: Settings
    sources: Mapping[str, str]
    unread: tuple[str, ...] = ()

    def rows(self) -> list[SourcedValue]:
        """Return a row for each setting, in the order of `Settings`; passwords in URIs are hidden."""
        settings = self.settings
        filled = {
            "image": mask_passwords(settings.image_uri),
            "journal": mask_passwords(settings.journal),
            "user": settings.asker,
        }
        values = settings.model_dump(mode="json") | filled
        return [SourcedValue(name, values[name], self.sources.get(name, "default")) for name in Settings.model_fields]


def load(
    environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None, package: Path = PACKAGE
) -> LoadedSettings:
    """Read the settings of the package in the folder `package`; raises ConfigError naming the setting and its source.

    Nothing is read from a home that another user may have written.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def take(found: Mapping[str, object], source: Mapping[str, str]) -> None:
        values.update(found)
        sources.update({name: source[name] for name in found})

    given = {name: value for name, value in (flags or {}).items() if value is not None}
    home, home_source = find_home(environ, given.get("home"), package)
    check_own(home, environ)
    filed = _from_file(home / CONFIG_FILE)
    take(filed, dict.fromkeys(filed, str(home / CONFIG_FILE)))
    named = _from_environment(environ)
    take({name: value for name, (value, _) in named.items()}, {name: var for name, (_, var) in named.items()})
    take(given, dict.fromkeys(given, "flag"))
    take({"home": home}, {"home": home_source})
    try:
        return LoadedSettings(Settings(**values), sources, tuple(_unread_notes(environ)))
    except ValidationError as error:
        raise _readable(error, sources) from error


def _from_file(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {_no_toml(error)}", remedy=f"Correct {path}.") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"{path} cannot be read: {why}", remedy="Check the path and its permissions.") from error
    for name, value in found.items():
        _check_known(path, name)
        if isinstance(value, bool):
            # Else true would be the number 1.
            shown = str(value).lower()
            raise ConfigError(
                f"{name} (from {path}) cannot be {shown}: no setting can", field=name, remedy=f"Correct it in {path}."
            )
    return found


def _no_toml(error: ValueError | RecursionError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, RecursionError):
        return "brackets are nested too deep"
    # Any other is what Python says of whole numbers of thousands of digits.
    return str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"


def _check_known(path: Path, name: str) -> None:
    if name == "home":
        raise ConfigError(
            f"{path}: the home cannot be set in a file that is in it",
            field=name,
            remedy="Remove it; use --home or BATOS_HOME.",
        )
    if name not in Settings.model_fields:
        near = difflib.get_close_matches(name, Settings.model_fields, 1)
        raise ConfigError(
            f"{path}: there is no setting {name!r}{f'; did you mean {near[0]!r}?' if near else ''}",
            field=name,
            remedy=f"Remove it from {path}, or correct its name.",
        )


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    found = {}
    if environ.get("OLLAMA_HOST"):
        found["ollama_host"] = (environ["OLLAMA_HOST"], "OLLAMA_HOST")
    for name in Settings.model_fields:
        variable = f"BATOS_{name.upper()}"
        if name != "home" and environ.get(variable):
            found[name] = (environ[variable], variable)
    return found


def _unread_notes(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a note on each variable with our prefix that is not a setting: mostly one that is misspelt."""
    for variable in sorted(environ):
        name = variable.removeprefix("BATOS_")
        if name == variable or name in BESIDE or name.lower() in Settings.model_fields:
            continue
        near = difflib.get_close_matches(name.lower(), Settings.model_fields, 1)
        meant = f"; did you mean BATOS_{near[0].upper()}?" if near else ""
        yield f"{variable} is not a setting and is not read{meant}"


#: The permitted form of a value, by pydantic's name of the fault.
_MUST_BE = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "text in UTF-8",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "value_error": "{error}",
}


def _readable(error: ValidationError, sources: Mapping[str, str]) -> ConfigError:
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "settings"
    where = sources.get(name, "default")
    needed = _MUST_BE.get(first["type"], "something else").format_map(first.get("ctx", {}))
    remedy = f"Correct --{name.replace('_', '-')}." if where == "flag" else f"Correct it in {where}."
    given = first["input"]
    secret = name == "ollama_host" and isinstance(given, str) and has_userinfo(given)
    shown = "one with a user or password (not shown)" if secret else _describe(given)
    return ConfigError(f"{name} (from {where}) must be {needed}, not {shown}", field=name, remedy=remedy)


def _describe(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not write whole numbers of thousands of digits
        return "a number of that many digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


#: Characters of a refused value that its error repeats.
_LONGEST = 200

"""Model names as the daemon reads them, `[host/][namespace/]model[:tag]`, compared without case."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import quote

HOST = "registry.ollama.ai"
NAMESPACE = "library"
TAG = "latest"
INVALID = "invalid model name"
REQUIRED = "model is required"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}\Z", re.ASCII)
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}\Z", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z", re.ASCII)
NO_CLOUD = "ollama cloud is disabled: remote model {} unavailable"
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_CLOUD = "-cloud"


@dataclass(frozen=True, slots=True)
class Name:
    """A model's name with its defaults filled in; `scheme` is the one before the host, such as `http`, or ""."""

    host: str
    namespace: str
    model: str
    tag: str
    scheme: str = ""

    @property
    def display(self) -> str:
        """Return the name without a default host and namespace, always with its tag."""
        rest = f"{self.model}:{self.tag}"
        if self.host.lower() != HOST:
            return f"{self.host}/{self.namespace}/{rest}"
        return rest if self.namespace.lower() == NAMESPACE else f"{self.namespace}/{rest}"

    @property
    def full(self) -> str:
        """Return the name with host, namespace and tag."""
        return f"{self.host}/{self.namespace}/{self.model}:{self.tag}"

    @property
    def key(self) -> str:
        """Return the full name in small letters, the same for all spellings."""
        return self.full.lower()

    def with_spelling(self, known: dict[str, str]) -> Name:
        """Return the name with its parts spelled as in `known`, which maps a part in small letters to its spelling."""
        parts = {part: known.get(f"{part} {text.lower()}", text) for part, text in self.parts()}
        return replace(self, **parts)

    def parts(self) -> tuple[tuple[str, str], ...]:
        """Return each part of the name with its label, from host to tag."""
        return (("host", self.host), ("namespace", self.namespace), ("model", self.model), ("tag", self.tag))


def parse(raw: str) -> Name | None:
    """Parse a name; return None for an invalid one."""
    rest, tag = raw, TAG
    if raw.rfind(":") > raw.rfind("/"):
        rest, _, tag = raw.rpartition(":")
    head, slash, model = rest.rpartition("/")
    address, between, namespace = head.rpartition("/")
    if (slash and not head) or (between and not address):
        return None
    scheme, separator, host = address.partition("://")
    if not separator:
        scheme, host = "", address
    name = Name(host if between else HOST, namespace if slash else NAMESPACE, model, tag, scheme)
    valid = (
        _HOST.match(name.host)
        and _NAMESPACE.match(name.namespace)
        and _PART.match(name.model)
        and _PART.match(name.tag)
    )
    return name if valid else None


@dataclass(frozen=True, slots=True)
class Reference:
    """A request's reference to a model: a name, and its suffix `local` or `cloud` (also written `-cloud`), or ""."""

    base: str
    source: str

    @property
    def name(self) -> Name:
        """Return the parsed name. Raises: ApiError: 400, it is invalid."""
        found = parse(self.base)
        if found is None:
            raise ApiError(400, INVALID)
        return found


def refer(raw: str) -> Reference:
    """Split a reference into name and suffix. Raises: ApiError: 400, it is empty or has two suffixes."""
    text = raw.strip(_BLANKS)
    if not text:
        raise ApiError(400, REQUIRED)
    found = _parse_suffix(text)
    if found is None:
        return Reference(text, "")
    if _parse_suffix(found.base) is not None:
        raise ApiError(400, f"use either :local or :cloud, not both: {quote(text)}")
    return found


def _parse_suffix(text: str) -> Reference | None:
    """Parse `:cloud`, `:local` or `-cloud` at the end of a name; return None if there is none."""
    base, colon, last = text.rpartition(":")
    suffix = last.strip(_BLANKS)
    if not colon:
        return None
    if suffix.lower() in ("cloud", "local"):
        return Reference(base, suffix.lower())
    if "/" not in suffix and suffix.lower().endswith(_CLOUD):
        return Reference(f"{base}:{suffix[: -len(_CLOUD)]}", "cloud")
    return None


def select(raw: str, cloud: str = "is") -> Name:
    """Return the name of the local model that a request refers to; `cloud` is the verb in the refusal of a cloud model.

    Raises: ApiError: 400, the name is invalid; 403, it refers to a cloud model.
    """
    found = refer(raw)
    name = found.name
    if found.source == "cloud":
        raise ApiError(403, NO_CLOUD.format(cloud))
    return name


def stored_name(raw: str) -> Name:
    """Return the name under which `pull` and `delete` find a model; a cloud model's stub has the suffix in its tag."""
    found = refer(raw)
    if found.source != "cloud":
        return found.name
    tagged = found.base.rfind(":") > found.base.rfind("/")
    return Reference(found.base + (_CLOUD if tagged else ":cloud"), "").name

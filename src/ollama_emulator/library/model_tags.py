"""Model names as the daemon reads them: `[host/][namespace/]model[:tag]`, matched without case."""

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
    """A model name with its defaults filled in; `scheme` is the part before the host, or ""."""

    host: str
    namespace: str
    model: str
    tag: str
    scheme: str = ""

    @property
    def display(self) -> str:
        """Return the shortest form, always with its tag."""
        rest = f"{self.model}:{self.tag}"
        if self.host.lower() != HOST:
            return f"{self.host}/{self.namespace}/{rest}"
        return rest if self.namespace.lower() == NAMESPACE else f"{self.namespace}/{rest}"

    @property
    def full(self) -> str:
        """Return the form with host and namespace spelled out."""
        return f"{self.host}/{self.namespace}/{self.model}:{self.tag}"

    @property
    def key(self) -> str:
        """Return the key that all spellings of a name share."""
        return self.full.lower()

    def spelled(self, known: dict[str, str]) -> Name:
        """Return the name with each part spelled as in `known`, which maps small letters to a spelling."""
        parts = {part: known.get(f"{part} {text.lower()}", text) for part, text in self.parts()}
        return replace(self, **parts)

    def parts(self) -> tuple[tuple[str, str], ...]:
        """Return the label and the text of each part."""
        return (("host", self.host), ("namespace", self.namespace), ("model", self.model), ("tag", self.tag))


def parse(raw: str) -> Name | None:
    """Return the name, None for a text that is none."""
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
    """A request's reference to a model: a name without the suffix `:local`, `:cloud` or `-cloud`, and that suffix."""

    base: str
    source: str

    @property
    def name(self) -> Name:
        """Return the name. Raises: ApiError: 400, the text is no name."""
        found = parse(self.base)
        if found is None:
            raise ApiError(400, INVALID)
        return found


def refer(raw: str) -> Reference:
    """Return a reference in its parts. Raises: ApiError: 400, the text is empty or has two suffixes that contradict."""
    text = raw.strip(_BLANKS)
    if not text:
        raise ApiError(400, REQUIRED)
    found = _suffixed(text)
    if found is None:
        return Reference(text, "")
    if _suffixed(found.base) is not None:
        raise ApiError(400, f"use either :local or :cloud, not both: {quote(text)}")
    return found


def _suffixed(text: str) -> Reference | None:
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
    """Return the local model that a request for `raw` means.

    Raises: ApiError: 400, the text is no name; 403, a cloud model, in whose text `cloud` is the verb.
    """
    found = refer(raw)
    name = found.name
    if found.source == "cloud":
        raise ApiError(403, NO_CLOUD.format(cloud))
    return name


def stored(raw: str) -> Name:
    """Return the model that pull and delete mean: a cloud model has a stub of its own, with the suffix in its tag."""
    found = refer(raw)
    if found.source != "cloud":
        return found.name
    tagged = found.base.rfind(":") > found.base.rfind("/")
    return Reference(found.base + (_CLOUD if tagged else ":cloud"), "").name

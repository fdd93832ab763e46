"""Model names as the daemon reads them: `[host/][namespace/]model[:tag]`, matched without case."""

from __future__ import annotations

import re
from dataclasses import dataclass

from batos.emulator.gojson import quote
from batos.emulator.replies import ApiError

HOST = "registry.ollama.ai"
NAMESPACE = "library"
TAG = "latest"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}\Z", re.ASCII)
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}\Z", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z", re.ASCII)
_NO_CLOUD = "ollama cloud is disabled: remote model {} unavailable"


@dataclass(frozen=True, slots=True)
class Name:
    """One model name with its defaults filled in; `scheme` is what a pull was told to speak."""

    host: str
    namespace: str
    model: str
    tag: str
    scheme: str = "https"

    @property
    def display(self) -> str:
        """The shortest form, always with its tag."""
        rest = f"{self.model}:{self.tag}"
        if self.host != HOST:
            return f"{self.host}/{self.namespace}/{rest}"
        return rest if self.namespace == NAMESPACE else f"{self.namespace}/{rest}"

    @property
    def full(self) -> str:
        """The form with host and namespace spelled out."""
        return f"{self.host}/{self.namespace}/{self.model}:{self.tag}"

    @property
    def key(self) -> str:
        """What two spellings of one name have in common."""
        return self.full.lower()


def parse(raw: str) -> Name | None:
    """The name, or None where it is not one."""
    scheme, separator, rest = raw.partition("://")
    if not separator:
        scheme, rest = "https", raw
    head, slash, last = rest.rpartition("/")
    model, colon, tag = last.partition(":")
    host, between, namespace = head.rpartition("/")
    if not between:
        host = ""
    if (colon and not tag) or (slash and not namespace) or (between and not host):
        return None
    name = Name(host or HOST, namespace or NAMESPACE, model, tag or TAG, scheme)
    valid = (
        _HOST.match(name.host)
        and _NAMESPACE.match(name.namespace)
        and _PART.match(name.model)
        and _PART.match(name.tag)
    )
    return name if valid else None


def select(raw: str, cloud: str = "is") -> Name:
    """The local model that a request for `raw` means; the source suffixes `:local` and `:cloud` are selectors.

    Raises ApiError 400 for what is no name and 403 for a cloud model, in whose text `cloud` is the verb.
    """
    base, _, last = raw.rpartition(":")
    suffix = last.lower()
    if base and base.rpartition("/")[2].count(":") == 1 and base.rpartition(":")[2].lower() in ("local", "cloud"):
        raise ApiError(400, f"use either :local or :cloud, not both: {quote(raw)}")
    if base and suffix == "local":
        raw = base
    name = parse(raw)
    if name is None:
        raise ApiError(400, "invalid model name")
    if base and (suffix == "cloud" or suffix.endswith("-cloud")):
        raise ApiError(403, _NO_CLOUD.format(cloud))
    return name

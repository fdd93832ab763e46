"""A verb of the wire as a value: its name, the model of its arguments, and the type of its reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from batos.protocol.strict_model import StrictModel

Args = TypeVar("Args", bound=StrictModel)
Reply = TypeVar("Reply", bound=Mapping[str, object])


@dataclass(frozen=True)
class WireVerb(Generic[Args, Reply]):
    """A verb. mypy holds who answers it and who asks it against its arguments and its reply."""

    name: str
    args: type[Args]

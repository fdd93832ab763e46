"""Binds the arguments of a method's message to the parameters of a primitive."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from batos.protocol.errors import ObjectError


def bind_arguments(shape: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Bind the arguments to the parameters of `shape`. Raises: ObjectError: they do not fit."""
    signature = inspect.signature(shape)
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        taken = ", ".join(str(each).partition(":")[0].partition("=")[0] for each in signature.parameters.values())
        raise ObjectError(f"`{name}` takes ({taken}): {error}") from None

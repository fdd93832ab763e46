"""Arguments as a primitive's parameters: by place or by name, and an error that lists what it takes."""

from __future__ import annotations

from typing import Any

import pytest

from batos.methods.execution.primitives import bind_arguments
from batos.protocol.errors import ObjectError


def shape(title: Any, room: Any = 7) -> None:
    """Take a title and a room."""


def test_arguments_are_bound_by_place_or_name() -> None:
    """What is not given is left out, and the primitive has its own default."""
    assert bind_arguments(shape, "keep_", ["a"], {}) == {"title": "a"}
    assert bind_arguments(shape, "keep_", [], {"room": 1, "title": "a"}) == {"title": "a", "room": 1}


@pytest.mark.parametrize(("args", "kwargs"), [([], {}), (["a", 1, 2], {}), (["a"], {"title": "b"}), ([], {"x": 1})])
def test_others_are_refused_with_what_it_takes(args: list[Any], kwargs: dict[str, Any]) -> None:
    """By the primitive's name."""
    with pytest.raises(ObjectError, match=r"`keep_` takes \(title, room\)"):
        bind_arguments(shape, "keep_", args, kwargs)

"""Databases of a PostgreSQL server for the rooms whose tests need one; no other room's tests import it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.image.servers import ask_postgres, postgres_server

#: Numbers for databases.
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """What the addresses of a PostgreSQL server begin with; tests that look at the server itself start their own."""
    with postgres_server() as address:
        yield address


@pytest.fixture
def databases(postgres: str) -> tuple[str, str]:
    """Two empty databases, for an image and a journal."""
    number = next(_numbers)
    names = [f"{name}_{number}" for name in ("image", "journal")]
    ask_postgres(postgres, *(f"CREATE DATABASE {name}" for name in names))
    return postgres + names[0], postgres + names[1]

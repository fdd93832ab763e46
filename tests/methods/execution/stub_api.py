"""A stub service for tests of described APIs: what it was asked, and what it answers by path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote, urlsplit

from agency_stub_side import send_json, serving_replies
from batos.agency.records import api_records, look_up_records
from batos.agency.records.look_up_records import GrantTerms
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.uvm import UVM

DESCRIPTION = """Fares of the island ferries, at http://ferries.example/v1

GET /fares/{island}

What a crossing costs. It gives

{"island": "Holmey", "adult": 12.5, "car": 38.0}

An unknown island has status 404 and {"error": "no such island"}.
"""


@dataclass
class StubService:
    """A service: `replies` are status and body by path."""

    replies: dict[str, tuple[int, object]]
    asked: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    address: str = ""

    async def grant(self, uvm: UVM, name: str = "ferries", terms: GrantTerms | None = None, header: str = "") -> None:
        """Grant it to the asker of a mind, under a name, by DESCRIPTION."""

        def change(root: Root) -> None:
            told = uvm.settings.asker, iso(uvm.clock())
            made = look_up_records.add_look_up(root, name, "api", self.address, terms or GrantTerms(), told)
            roots.connection_of(root).add(made)
            api_records.describe_grant(root, made, DESCRIPTION, header)

        await uvm.image.shared.apply(change)


@contextmanager
def serving(replies: dict[str, tuple[int, object]]) -> Iterator[StubService]:
    """Serve replies on a free port of this machine."""
    stub = StubService(replies)

    def reply(handler: BaseHTTPRequestHandler) -> None:
        stub.asked.append(handler.path)
        stub.headers.append(dict(handler.headers.items()))
        status, body = stub.replies.get(unquote(urlsplit(handler.path).path), (404, {"error": "no such island"}))
        send_json(handler, status, body if isinstance(body, str) else json.dumps(body), {})

    with serving_replies(reply) as stub.address:
        yield stub

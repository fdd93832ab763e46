"""The laws of look-ups, which the tests of every one inherit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from batos.agency.look_ups.look_up import MOST_SNIPPET, LookUp
from batos.agency.look_ups.web_documents import Document, find_in_page
from batos.protocol.errors import LookUpFailed, Refused

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


class LookUpLaws:
    """What a mission relies on. A class of tests gives the fixture `look_up`, in which something is about tides."""

    #: An address that is of another source.
    foreign = "https://elsewhere.example/secret"
    quote = "tide rises twice a day"

    @pytest.fixture
    def look_up(self) -> AsyncIterator[LookUp]:
        """The look-up."""
        raise NotImplementedError

    async def test_what_is_found_can_be_fetched(self, look_up: LookUp) -> None:
        """Each hit has a title and an address; its document has text, a time, and the digest of what was fetched."""
        hits = await look_up.search("tide", 5)
        assert hits
        for hit in hits:
            assert hit.title
            assert len(hit.snippet) <= MOST_SNIPPET
            assert json.loads(json.dumps(hit.as_dict())) == hit.as_dict()
        document = await look_up.fetch(hits[0].address)
        assert self.quote in " ".join(document.text.split())
        assert document.title
        assert document.at == "2026-11-30T09:00:00.000Z"
        assert Document.from_dict(json.loads(json.dumps(document.as_dict()))) == document

    async def test_a_quote_stands_in_the_page_as_it_was(self, look_up: LookUp) -> None:
        """Where the page is kept: a span of it, found by the quote of the text."""
        document = await look_up.fetch((await look_up.search("tide", 5))[0].address)
        if document.page:
            assert document.digest
            span = find_in_page(document.page, self.quote)
            assert span is not None
            assert "tide" in document.page[slice(*span)]
            assert find_in_page(document.page, "tide rises thrice") is None

    async def test_nothing_is_no_error(self, look_up: LookUp) -> None:
        """A search without a hit."""
        assert list(await look_up.search("zzyzx", 5)) == []

    async def test_a_limit_is_kept(self, look_up: LookUp) -> None:
        """One hit where one is asked for."""
        assert len(await look_up.search("tide", 1)) == 1

    async def test_another_sources_address_is_not_fetched(self, look_up: LookUp) -> None:
        """It is refused, or not there."""
        with pytest.raises((Refused, LookUpFailed)) as told:
            await look_up.fetch(self.foreign)
        assert told.value.remedy


def sha256(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()

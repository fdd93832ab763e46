"""The doctor tries a look-up of each kind that is granted, and tells what keeps it from going well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.agency.look_ups import sites
from tests.agency.look_ups.sites import KIWIX, SEARXNG
from tests.agency.look_ups.stub_web import StubWeb, reply, stub_web
from tests.history.test_as_of_past_questions import Door
from tests.methods.execution.stub_api import serving

from batos.cli.doctor import look_up_checks
from batos.config import Settings
from batos.testing import scripted_uvm

BROKEN = {
    "refuses JSON": reply("no", status="403 Forbidden"),
    "engines failed": reply(
        json.dumps({"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]}), "application/json"
    ),
    "in the place of JSON": reply("<html>", "text/html"),
}


async def granted(place: Path) -> Settings:
    """A home with grants of every kind."""
    home, folder = place / "home", place / "papers"
    folder.mkdir()
    (folder / "a.md").write_text("Tides.")
    async with scripted_uvm(home, memory=False) as uvm:
        ask = Door(uvm)
        for kind, target, terms in (
            ("kiwix", KIWIX, {}), ("searxng", SEARXNG, {}), ("fetch", "any", {}),
            ("fetch", "http://harbour.example/", {}), ("search", "memory", {}), ("folder", str(folder), {}),
            ("wikipedia", "http://en.wikipedia.org/", {"until": "2026-01-01T00:00:00Z"}),
        ):  # fmt: skip
            await ask("grants_add", kind=kind, target=target, user="tester", **terms)
    return Settings(home=home)


async def test_one_request_of_each_kind_is_made(tmp_path: Path) -> None:
    """None by a grant that has ended, none of memory; what a page says is told."""
    settings = await granted(tmp_path)
    web_sites = {"127.0.0.1:8090": sites.kiwix(), "127.0.0.1:8888": sites.searxng, "harbour.example": sites.page()}
    async with stub_web(web_sites) as web:
        found = {each.id: each for each in await look_up_checks.findings(settings, web.fetcher())}
        assert all(each.ok for each in found.values())
        assert found["look_ups.fetch"].what.endswith("reads 'Tides'")
        assert "was not tried: it ended at" in found["look_ups.wikipedia"].what
        assert set(found) == {f"look_ups.{each}" for each in ("kiwix", "searxng", "fetch", "folder", "wikipedia")}
        assert len(web.asked) == 4  # the rules of the site too


API = "# Fares\n\n`GET /fares?island=Holmey` gives the fare to an island:\n\n" + json.dumps(
    {"island": "Holmey", "adult": 9}
)


@pytest.mark.parametrize(
    ("described", "status", "is_well", "said"),
    [
        (API, 200, True, "the grant ferries (api) answers /fares?island=Holmey"),
        (API, 404, False, "/fares?island=Holmey answers 404"),
        ("GET /fares/{island} gives a fare.", 200, True, "its description shows no request with all its arguments"),
    ],
)
async def test_a_described_api_is_asked_what_its_description_shows(
    tmp_path: Path, described: str, status: int, is_well: bool, said: str
) -> None:
    """Nothing is made up: a request whose arguments have no example is not tried."""
    (tmp_path / "ferries.md").write_text(described)
    with serving({"/fares": (status, {"island": "Holmey", "adult": 9})}) as service:
        async with scripted_uvm(tmp_path / "home", memory=False) as uvm:
            more = {"name": "ferries", "description": str(tmp_path / "ferries.md"), "user": "tester"}
            await Door(uvm)("grants_add", kind="api", target=service.address, **more)
        (found,) = await look_up_checks.findings(Settings(home=tmp_path / "home"))
        assert (found.id, found.ok, said in found.what) == ("look_ups.api", is_well, True)
        assert len(service.asked) == ("was not tried" not in found.what)


@pytest.mark.parametrize("said", BROKEN)
async def test_the_three_failures_of_searxng_are_told_apart(tmp_path: Path, said: str) -> None:
    """Each with its remedy; what is not reached is told as that."""
    settings = await granted(tmp_path)
    async with stub_web({"127.0.0.1:8888": lambda *_: BROKEN[said]}) as web:
        found = {each.id: each for each in await look_up_checks.findings(settings, web.fetcher())}
        assert (found["look_ups.searxng"].ok, said in found["look_ups.searxng"].what) == (False, True)
        assert found["look_ups.searxng"].remedy
        assert not found["look_ups.kiwix"].ok


async def test_without_an_image_or_grants_there_is_nothing_to_try(tmp_path: Path) -> None:
    """And no finding about it."""
    assert await look_up_checks.findings(Settings(home=tmp_path), StubWeb().fetcher()) == []

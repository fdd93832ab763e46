"""The metrics: as Prometheus reads them, and as the example dashboard and alert rules name them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.server.http.conftest import ASKED, OpenDoor

from batos.server.http.metrics import Family, Sample, write

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "monitoring"
NAME = re.compile(r"\b(?:batos|process)_[a-z_]+")
LINE = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? (-?[0-9.e+-]+|\+Inf)')


def scrape(door: OpenDoor) -> httpx.Response:
    with door.client() as client:
        return client.get("/metrics")


def test_what_happened_is_counted(door: OpenDoor) -> None:
    """Missions, tokens, times, requests; by the media type of the text format, and no name of a mission in it."""
    mission = door.chat(ASKED).headers["x-batos-mission"]
    reply = scrape(door)
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    told = dict(line.rsplit(" ", 1) for line in reply.text.splitlines() if not line.startswith("#"))
    assert float(told["batos_accepted_total"]) >= 1
    assert float(told['batos_tokens_total{kind="answer"}']) > 0
    assert float(told['batos_http_requests_total{door="openai",code="200"}']) >= 1
    assert float(told["batos_mission_seconds_count"]) == float(told['batos_mission_seconds_bucket{le="+Inf"}']) >= 1
    assert float(told["batos_queue_wait_seconds_count"]) >= 1
    assert float(told["batos_commit_seconds_count"]) >= 2
    assert mission not in reply.text
    assert "tester" not in reply.text


def test_every_line_is_of_the_format(door: OpenDoor) -> None:
    """Each sample follows the type of its family; buckets do not fall."""
    kinds: dict[str, str] = {}
    for line in scrape(door).text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            found = LINE.fullmatch(line)
            assert found, line
            assert re.sub("_(bucket|sum|count)$", "", found[1]) in kinds or found[1] in kinds
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())


def test_prometheus_own_parser_reads_it(door: OpenDoor) -> None:
    """With its Python client, where that is installed."""
    parser = pytest.importorskip("prometheus_client.parser", reason="needs prometheus-client: pip install batos[dev]")
    door.chat(ASKED)
    families = {each.name: each for each in parser.text_string_to_metric_families(scrape(door).text)}
    assert families["batos_first_token_seconds"].type == "histogram"
    assert families["batos_missions_stored"].samples


def test_the_examples_name_what_there_is(door: OpenDoor) -> None:
    """Every name in the dashboard and the rules is a metric, but for parts that only a fault makes."""
    door.chat(ASKED)
    text = scrape(door).text
    there = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    made_by_faults = {"batos_failures_total", "batos_vram_bytes"}
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text())
    rules = yaml.safe_load((EXAMPLES / "alerts.yml").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    names = {re.sub("_(bucket|sum|count)$", "", name) for each in asked for name in NAME.findall(each)}
    assert names - made_by_faults <= there
    assert len(names) >= 12


@given(st.text())
def test_a_label_may_be_any_text(text: str) -> None:
    """Quotes, lines and backslashes in it end nothing."""
    written = write([Family("a", "gauge", "All.", [Sample(1.5, {"of": text})])]).split("\n", 2)[2]
    value = re.fullmatch(r'a\{of="((?:[^"\\\n]|\\.)*)"\} 1\.5\n', written)
    assert value is not None
    read = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], value[1])
    assert read == text

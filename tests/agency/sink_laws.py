"""The laws of sinks, which every sink's own tests inherit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batos.agency.records.effect_records import EffectData
from batos.agency.sinks import EffectDelayed, Sink, class_of


class SinkLaws:
    """What a releaser relies on. A class of tests gives the fixture `sink`, an `effect`, and how often it `count`s."""

    @pytest.fixture
    def sink(self) -> Sink:
        """The sink."""
        raise NotImplementedError

    def effect(self) -> EffectData:
        """An effect for it."""
        raise NotImplementedError

    def count(self, tmp_path: Path) -> int:
        """How often the effect happened."""
        raise NotImplementedError

    def test_it_happens_once_with_each_release_and_not_before(self, sink: Sink, tmp_path: Path) -> None:
        """To prepare changes nothing; a keyed sink does one key once."""
        effect = self.effect()
        effect["before"] = json.loads(json.dumps(sink.prepare(effect)))
        assert self.count(tmp_path) == 0
        outcome = sink.release(effect)
        assert self.count(tmp_path) == 1
        assert json.loads(json.dumps(outcome)) == outcome
        if class_of(sink) == "keyed":
            sink.release(effect)
            assert self.count(tmp_path) == 1

    def test_it_does_not_happen_where_the_check_right_before_it_fails(self, sink: Sink, tmp_path: Path) -> None:
        """The check is the last thing before the effect: nothing of it is done, and a later release does it."""

        def refuse() -> None:
            raise EffectDelayed("another node does it")

        effect = self.effect()
        effect["before"] = sink.prepare(effect)
        with pytest.raises(EffectDelayed, match="another node"):
            sink.release(effect, refuse)
        assert self.count(tmp_path) == 0
        sink.release(effect)
        assert self.count(tmp_path) == 1

    def test_a_queryable_sink_finds_what_happened_and_nothing_else(self, sink: Sink, tmp_path: Path) -> None:
        """So that nothing is done twice after a crash, and nothing is left out."""
        if class_of(sink) != "queryable":
            return
        effect = self.effect()
        effect["before"] = sink.prepare(effect)
        assert sink.find(effect) is None
        sink.release(effect)
        assert sink.find(effect) is not None
        assert self.count(tmp_path) == 1

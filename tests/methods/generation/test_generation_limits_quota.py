"""What generation may cost: by the hour, by mission, and by a clock that is an argument."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from batos.methods.generation.generation_limits import GenerationLimits, GenerationQuota

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def test_an_hour_has_so_many() -> None:
    """As many begin within an hour as may; each makes room again an hour after it began."""
    clock = Clock()
    quota = GenerationQuota(GenerationLimits(hour=2), clock)
    for _ in range(2):
        assert quota.refusal(0) == ""
        quota.take()
        clock.now += timedelta(minutes=20)
    assert "hour_generations" in quota.refusal(0)
    clock.now = START + timedelta(hours=1)
    assert quota.refusal(0) == ""
    quota.take()
    assert "hour_generations" in quota.refusal(0)


def test_what_cost_nothing_is_given_back() -> None:
    """A coder that is away for an hour does not use up the hour that it is back in."""
    quota = GenerationQuota(GenerationLimits(hour=1), Clock())
    quota.take()
    quota.give_back()
    assert quota.refusal(0) == ""
    quota.give_back()
    quota.take()
    assert "hour_generations" in quota.refusal(0)


def test_a_mission_has_so_many() -> None:
    """A mission that has begun as many as it may begins no more, whatever the hour has left."""
    quota = GenerationQuota(GenerationLimits(mission=3), Clock())
    assert quota.refusal(2) == ""
    assert "mission_generations" in quota.refusal(3)


def test_none_may_be_allowed() -> None:
    """With 0 nothing is ever begun."""
    assert GenerationQuota(GenerationLimits(mission=0), Clock()).refusal(0)
    assert GenerationQuota(GenerationLimits(hour=0), Clock()).refusal(0)

"""What a mind works with: only the mind is ever replaced, a brief may install less than is configured, never more."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.minds.conftest import Mind as OpenMind
from tests.minds.scripted import stepping, submit

from batos.memory.evidence import Evidence
from batos.minds.context import ALLOWS, MethodRuntime, MindPolicy
from batos.minds.parts import delegate
from batos.minds.results import Synthesis
from batos.protocol.brief import Install, Interpret, MissionBrief, parse
from batos.protocol.errors import InternalError

INSTALLS: st.SearchStrategy[Install] = st.sampled_from(get_args(Install))
INTERPRETS: st.SearchStrategy[Interpret] = st.sampled_from(get_args(Interpret))


def brief(**policy: object) -> MissionBrief:
    given_ = {name: value for name, value in policy.items() if value is not None}
    return parse({"text": "Why?", "user": "ada", **({"policy": given_} if given_ else {})})


@given(asked=st.none() | INSTALLS, told=st.none() | INTERPRETS, install=INSTALLS, interpret=INTERPRETS)
def test_a_brief_never_installs_more_than_is_configured(
    asked: Install | None, told: Interpret | None, install: Install, interpret: Interpret
) -> None:
    """What it does not say is as configured; of what it says the stricter holds for installing."""
    configured = MethodRuntime(install=install, interpret=interpret)
    policy = MindPolicy.from_brief(brief(install=asked, interpret=told), configured)
    assert ALLOWS[policy.install] == min(ALLOWS[configured.install], ALLOWS[asked or install])
    assert policy.interpret == (told or interpret)
    assert MindPolicy.from_brief(brief(), configured) == MindPolicy("auto", configured.install, configured.interpret)


async def test_a_context_that_is_derived_shares_all_but_the_mind(mind: OpenMind) -> None:
    """Whatever one of them does is noted in the one trace of the mission."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        whole = opened.context
        for derived in (whole.strict(), whole.asking("Why not?"), whole.with_mind(name="other")):
            assert (derived.mission, derived.io, derived.trace) == (whole.mission, whole.io, whole.trace)
            assert derived.trace is whole.trace
        assert whole.strict().mind.policy.interpret == "never"
        assert whole.asking("Why not?").mind.question == "Why not?"
        assert whole.mind.question == whole.mission.brief.text


async def test_a_mind_within_another_dooms_nothing_and_learns_no_ratio(mind: OpenMind) -> None:
    """Whether the thought is doomed, and what a byte costs, is for the mission's own mind to say."""
    async with stepping(mind.uvm, await submit(mind.uvm, effort="council")) as opened:
        whole = opened.context
        inner = delegate.council_mind(whole, "robin", "Why?", Evidence())
        before = dict(whole.trace.ratios)
        whole.io.session.measured[whole.mind.thinking.model] = (1_000, 900)
        inner.doom()
        inner.learn_ratio()
        assert (inner.mind.inner, inner.mind.is_council, whole.mind.is_council) == (True, False, True)
        assert dict(whole.trace.ratios) == before
        assert not opened.transaction.doomed
        whole.learn_ratio()
        assert whole.ratio == pytest.approx(1.1 * 0.9)
        whole.doom()
        assert opened.transaction.doomed


def test_a_synthesis_without_an_answer_has_none_that_stands() -> None:
    """Whoever writes an answer needs one that the gate has judged."""
    with pytest.raises(InternalError, match="not judged"):
        _ = Synthesis().standing

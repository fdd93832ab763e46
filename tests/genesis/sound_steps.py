"""Strategies for steps that are sound: any required and optional ones, in any permitted order, with any bounds."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from batos.genesis.state_steps import TABLE, KernelStep, Steps


@st.composite
def sound_steps(draw: Any, state: str) -> Steps:
    """Sound steps of a state."""
    chosen = [each for each in TABLE[state] if each.is_required or draw(st.booleans())]
    waiting, taken = list(draw(st.permutations(chosen))), list[KernelStep]()
    while waiting:
        names = {each.name for each in waiting}
        taken.append(next(each for each in waiting if names.isdisjoint(each.after)))
        waiting.remove(taken[-1])
    return tuple(
        (step.name, tuple((bound.name, draw(st.sampled_from(bound.allowed))) for bound in step.bounds))
        for step in taken
    )


def behaviours() -> st.SearchStrategy[dict[str, Steps]]:
    """Sound steps of every working state."""
    return st.fixed_dictionaries({state: sound_steps(state) for state in TABLE})

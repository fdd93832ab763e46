"""Lists the small words of five languages: they begin sentences, stand in most texts, and name nothing."""

from __future__ import annotations

from typing import Final

from batos.memory.terms import stems

#: English, German, French, Spanish and Italian, folded.
COMMON: Final = frozenset(
    "the a an it he she they we you i this that these those there in on at by for from as after before when while if"
    " but and or however although since because his her its their our my your some many most all each no not is was"
    " are were what who which where how why did do does whom whose one two three new first of with to"
    " der die das ein eine er sie es wir ihr im am in bei nach vor als wenn aber und doch dieser diese dieses wer was"
    " wo wie le la les un une il elle on ils elles ce cette ces dans après avant mais et de du des qui que quoi où"
    " comment el los las una en después pero y este esta lo del al quien qué dónde cómo gli uno nel dopo ma questo"
    " questa chi".split()
)
#: The terms of these as indexes hold them.
COMMON_STEMS: Final = frozenset(stem for word in COMMON for stem in stems(word))

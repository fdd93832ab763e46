"""Lists small words by language: they begin sentences, ask, point, stand in most texts, and name nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from batos.memory.terms import stems, words

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
#: Words of each language that ask, help another verb or point.
ASKING: Final[Mapping[str, str]] = {
    "English": "what who whom whose which when where why how many much did does do was were is are be been being has"
    " have had having can could will would shall should may might must any that this these those it its he she they we"
    " them their his her hers him us than then also only other others such there here one s t d ll re ve m if but so"
    " because into about out up very just some each both own",
    "German": "wer wen wem wessen welche welcher welches welchen welchem wann wo warum wieso weshalb wie viel viele war"
    " waren wurde wurden wird werden worden sein seine seinen seiner ihr ihre ihren ihrer haben hatte hatten kann"
    " können konnte muss müssen soll er sie es wir man diese dieser dieses diesen einer einem eines als auch nur so"
    " dass denn"
    " aber durch über um unter vom beim ins noch schon sehr dann da hier welch",
    "French": "qui que quoi quel quelle quels quelles quand où pourquoi comment combien étaient était été être sont ont"
    " avait avoir fut furent peut ce cet cette ces ils elles on nous se sa son ses leur leurs lui y en par l d n s qu c"
    " j m t mais si aussi très tout tous plus comme lequel laquelle du à",
    "Spanish": "quién quiénes cuándo dónde cuánto cuánta cuántos cuántas cuáles fue fueron era eran ser ha han había"
    " puede este esta estos estas ese esa eso ellos ellas nos le les sin sobre entre también ya porque donde cuando a"
    " o",
    "Italian": "chi che quando dove perché quanto quanta quanti quante quali fu furono era erano essere ha hanno aveva"
    " può questo questa questi queste loro suo sua suoi l d s un' dell all nell sull ma se o a",
    "Portuguese": "quem quando onde porque quanto quanta quantos quantas quais foram era eram ser há tem têm tinha pode"
    " este esta estes estas isso eles elas seu sua seus suas também mas ou pelo pela",
    "Dutch": "wie welke welk wanneer waar waarom hoeveel was waren werd werden worden zijn heeft hebben had kan kunnen"
    " moet deze dit hij zij we ze hun haar als dan maar of uit door over nog",
}
_ASKING: Final = {language: frozenset(said.split()) | COMMON for language, said in ASKING.items()}


def asking_stems(text: str) -> frozenset[str]:
    """Return the stems of those words of a question that only ask, help or point in its language.

    The language is that of which it has most of them.

    >>> sorted(asking_stems("When did the war end?"))
    ['did', 'the', 'when']
    """
    said = [frozenset(words(text)) & each for each in _ASKING.values()]
    most = max(map(len, said))
    return frozenset(stem for each in said if len(each) == most for word in each for stem in stems(word))

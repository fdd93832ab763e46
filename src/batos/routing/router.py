"""The router: decides on the CPU, by a question's words and meaning, the leading persona and the effort."""

from __future__ import annotations

import math
import re
import time
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import structlog

from batos.genesis.provision import OnProgress, StepProgress
from batos.image.image import LivingImage
from batos.inference.embedder import Embedder, KnownVectors, Unembedded
from batos.memory.segmentation import words
from batos.protocol.mission_documents import RouteDocument
from batos.routing.lexical import HEAD, ORDINARY, Lesson, Triggers, looked_at
from batos.routing.question_vectors import JournaledVectors
from batos.routing.training import Classifier, LearntLessons, find_or_learn, learn_words

#: A question of up to so many words, without files, is short: its words alone decide, since a vector of them is not
#: worth the wait. With no score as high as this it is a plain one; and the persona it goes to.
SHORT_WORDS, SURE, NEUTRAL = 6, 2 / 3, "BABS"
#: The multiple of an even share above which a score counts for a persona.
UNDECIDED = 1.6
#: A question of so many words or fewer leans to the persona that led the turn before: of one word, this many times,
#: and less by the square of its words.
FOLLOWING_WORDS, LEANING = 6, 200.0
#: Seconds that a question's vector may take, a small model's loading included; and those for which a failed embedder
#: is left alone.
EMBED_SECONDS, LEFT_ALONE = 10.0, 60.0
#: The reason of a route whose persona was named.
CHOSEN = "the asker chose"
#: The slots of the protocols that act, by persona; where none are told, those that the codex has not on the shelf do.
ActingProtocols: TypeAlias = Mapping[str, Collection[str]]
#: The step that `genesis.step` tells of.
LEARNING = "learn the router"

_log = structlog.get_logger("batos.router")


class RoutingState(NamedTuple):
    """The state of the mind that a route depends on.

    `before` is the persona of the turn before, `cycle_from` the words from which a text takes a cycle (0: none does).
    """

    before: str | None = None
    cycle_from: int = 0
    acting: ActingProtocols | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """The personas of a mission and its effort; the `scores` of all personas sum to 1."""

    personas: tuple[str, ...]
    effort: str
    confidence: float
    reason: str
    scores: Mapping[str, float]
    #: Texts that were embedded for it.
    embeds: int = 0
    #: The key protocols that the question is meant for, by persona, each with its share, the highest first.
    protocols: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Route:
        """Return the route that `as_dict` stored, with nothing embedded for it now."""
        names = ("personas", "effort", "confidence", "reason", "scores")
        personas, *others = (value[name] for name in names)
        return replace(cls(tuple(personas), *others), protocols=value.get("protocols", {}))

    @property
    def has_two_voices(self) -> bool:
        """Test if two personas think at effort cycle."""
        return self.effort == "cycle" and len(self.personas) == 2

    def override(self, persona: str | None, effort: str | None, margin: float = 0.0) -> Route:
        """Return the route with the asker's choice, which wins. A council has all personas, whoever leads it.

        A persona that was asked for thinks alone; at effort cycle two do if their scores are within the margin.
        """
        effort = effort or self.effort
        if persona is None and effort == self.effort:
            return self
        if persona is not None:
            personas = _thinking_personas(self.scores, persona, effort)
            return replace(self, personas=personas, effort=effort, confidence=1.0, reason=CHOSEN)
        return replace(self, personas=_thinking_personas(self.scores, self.personas[0], effort, margin), effort=effort)

    def as_dict(self) -> RouteDocument:
        """Return CONTRACT's `route`."""
        shown: RouteDocument = {
            "personas": list(self.personas),
            "effort": self.effort,
            "confidence": round(self.confidence, 3),
            "reason": self.reason,
            "scores": _round_scores(self.scores),
        }
        if self.protocols:
            shown["protocols"] = {persona: _round_scores(meant) for persona, meant in self.protocols.items()}
        return shown


@dataclass(frozen=True, slots=True)
class _PersonaScores:
    """The scores of a text by its words and, if there is a vector, by its meaning; `embeds` were paid for it."""

    scores: Mapping[str, float]
    vector: Sequence[float] | None = None
    embeds: int = 0
    #: The reason why only words were scored, in words for people; None if that is as it should be.
    without: str | None = None

    @property
    def leader(self) -> str:
        return max(self.scores, key=lambda name: self.scores[name])


class Router:
    """Decides by what was learnt of the codex; made anew when the codex or its embedder changes.

    `embedder` gives a question its vector where `learnt` has a meaning; without it the words alone decide. The persona
    with the second score thinks too where it is less than `margin` behind the first. `clock` gives seconds that only
    ever grow.
    """

    def __init__(
        self,
        lessons: Sequence[Lesson],
        learnt: LearntLessons | None = None,
        embedder: Embedder | None = None,
        *,
        margin: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.margin = margin
        self.learnt = learnt or learn_words(lessons)
        self._words = self.learnt.personas.words
        self._names = self._words.labels
        self._triggers = Triggers(lessons)
        self._protocols = ProtocolChoice(lessons, self.learnt.protocols)
        self._made_for = embedder.identity if embedder is not None else None
        self._embedder = embedder if self.learnt.has_meaning else None
        self._clock = clock
        self._left_alone_until = -math.inf
        #: Vectors of sentences that missions were given.
        self.known = KnownVectors()

    async def route(
        self,
        text: str,
        *,
        files: int = 0,
        persona: str | None = None,
        effort: str | None = None,
        vectors: JournaledVectors | None = None,
        state: RoutingState | None = None,
    ) -> Route:
        """Decide a mission's route: the same text gets the same decision. The asker's `persona` and `effort` win.

        A single call answers unless the text asks for several points of view or is long (`state`), or the asker wants
        more. A short question is scored by its words alone. A text that is too short to tell stays with the persona of
        the turn before. If both are given nothing is embedded. `vectors` has the paid vectors, and keeps those that are
        paid for. Never fails because of the embedder.
        """
        asked, state = asks_for_everybody(text), state or RoutingState()
        before, cycle_from = state.before, state.cycle_from
        is_long = 0 < cycle_from <= size_of(text)
        found = effort or ("council" if asked is not None else "cycle" if is_long else "reflex")
        short = not files and size_of(text) <= SHORT_WORDS
        worth_it = persona is None and effort != "reflex" and (found != "reflex" or not short)
        heard = await self._score(text, vectors, worth_it=worth_it)
        scores = _lean(heard.scores, text, before)
        leader = max(scores, key=lambda name: scores[name])
        stays = leader == before and leader != heard.leader
        said, margin = self._reason(text, leader, scores[leader], stays=stays), self.margin
        if short and before is None and self._plain(text, leader, scores[leader]):
            leader, said, margin = NEUTRAL, f"a plain question, for no persona in particular: {NEUTRAL}'s", 0.0
        personas = _thinking_personas(scores, leader, found, margin)
        route = Route(personas, found, scores[leader], said, scores, heard.embeds)
        near = f"{personas[1]} is as near" if route.has_two_voices else None
        why = f"it asks for several views ({asked!r})" if asked is not None and effort is None else None
        long = f"it has {cycle_from} words or more" if is_long and asked is None and effort is None else None
        reasons = (route.reason, near, why, long, heard.without)
        route = replace(route, reason="; ".join(reason for reason in reasons if reason))
        route = route.override(persona, None, margin)
        return replace(route, protocols=self._protocols.find(text, route.personas, heard.vector, state.acting))

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder that meaning was learnt with, or None."""
        return self._embedder

    @property
    def may_embed(self) -> bool:
        """Test if the embedder did not fail just now."""
        return self._clock() >= self._left_alone_until

    def leave_alone(self) -> None:
        """Ask the embedder nothing for a while, because it failed."""
        self._left_alone_until = self._clock() + LEFT_ALONE

    def serves(self, embedder: Embedder | None) -> bool:
        """Test if the router was made for this embedder; a missing one changes nothing, as it may come back."""
        return embedder is None or embedder.identity == self._made_for

    def scores(self, text: str, vector: Sequence[float] | None = None) -> dict[str, float]:
        """Score each persona by a text's words, and its vector if there is one; the scores sum to 1."""
        return self.learnt.personas.shares(text, vector)

    async def _score(self, text: str, vectors: JournaledVectors | None, *, worth_it: bool) -> _PersonaScores:
        """Score a question by words and meaning; no vector is paid for if the asker chose the persona."""
        if not worth_it or not text.strip():
            return _PersonaScores(self.scores(text))
        if self._embedder is None:
            without = self.learnt.without
            return _PersonaScores(self.scores(text), without=without and f"by words alone ({without})")
        known = vectors.find(self._embedder, text) if vectors is not None else None
        if known is None and not self.may_embed:
            return _PersonaScores(self.scores(text), without=f"by words alone ({self._embedder.model} failed just now)")
        try:
            if known is not None:
                return _PersonaScores(self.scores(text, known), known)
            paying = self._embedder.vector if vectors is None else partial(vectors.pay, self._embedder)
            vector = await paying(text, EMBED_SECONDS)
            return _PersonaScores(self.scores(text, vector), vector, embeds=1)
        except (Unembedded, ValueError) as error:
            self.leave_alone()
            _log.warning("router.words_alone", model=self._embedder.model, reason=str(error))
            return _PersonaScores(self.scores(text), without=f"by words alone ({self._embedder.model}: {error})")

    def _plain(self, text: str, leader: str, score: float) -> bool:
        """Test if a short text speaks for nobody surely, and says no word that calls for its leader."""
        return NEUTRAL in self._names and score < SURE and not self._triggers.find(text, leader)

    def _reason(self, text: str, leader: str, score: float, *, stays: bool) -> str:
        if stays:
            return f"too short to tell: it stays with {leader}, who answered before"
        said = self._triggers.find(text, leader)
        if said:
            return f"it says {', '.join(map(repr, said[:3]))}"
        if score * len(self._names) < UNDECIDED:
            return "its words indicate no persona"
        telling = self._words.telling(text, leader)
        if telling:
            return f"{', '.join(map(repr, telling))} {'speaks' if len(telling) == 1 else 'speak'} for {leader}"
        return f"it is worded like the exemplars of {leader}"


async def make_router(
    image: LivingImage, lessons: Sequence[Lesson], embedder: Embedder | None, tell: OnProgress, margin: float = 0.0
) -> Router:
    """Return the router of these lessons: from the image, else learnt in a thread and stored there.

    If the embedder takes long for the exemplars, `tell` gets the progress every few seconds. Two personas think where
    their scores are within `margin`.
    """
    told: list[int] = []

    def report_progress(done: int, total: int) -> None:
        told.append(done)
        tell(StepProgress(LEARNING, f"{done} of {total} exemplars"))

    learnt = await find_or_learn(image, lessons, embedder, report_progress)
    if told:
        status = "success" if learnt.has_meaning else f"by words alone: {learnt.without}"
        tell(StepProgress(LEARNING, status))
    return Router(lessons, learnt, embedder, margin=margin)


def _lean(scores: Mapping[str, float], text: str, before: str | None) -> dict[str, float]:
    """Return the scores of a follow-up: the shorter it is, the more the last persona's score is raised."""
    size = size_of(text)
    if before not in scores or size > FOLLOWING_WORDS:
        return dict(scores)
    times = LEANING / max(size, 1.0) ** 2
    leaning = {name: score * (times if name == before else 1.0) for name, score in scores.items()}
    whole = sum(leaning.values())
    return {name: score / whole for name, score in leaning.items()}


def _thinking_personas(scores: Mapping[str, float], leader: str, effort: str, margin: float = 0.0) -> tuple[str, ...]:
    """Name who thinks: the leader, at a cycle whoever is within the margin behind it too, at a council everybody."""
    others = sorted((name for name in scores if name != leader), key=lambda name: -scores[name])
    if effort == "council":
        return (leader, *others)
    if effort == "reflex":
        return (leader,)
    return (leader, *(name for name in others[:1] if 0 <= scores[leader] - scores[name] < margin))


def _round_scores(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: round(score, 3) for name, score in scores.items()}


# -- effort by a question's words: one call, or a council where several points of view are asked for


_CHARACTER = re.compile(r"[^\W\d_a-zA-Z\u00c0-\u2fff]")

_READ = tomllib.loads(files(__package__).joinpath("router.toml").read_text(encoding="utf-8"))
_COUNCIL = re.compile("|".join(rf"(?:{each})" for each in _READ["everybody"]), re.IGNORECASE)


def asks_for_everybody(text: str) -> str | None:
    """Return the words by which a text asks for all personas or for several points of view, or None."""
    found = _COUNCIL.search(looked_at(text))
    return found[0].strip() if found else None


def size_of(text: str) -> float:
    """Count the words at the head of a text; in a script without blanks two characters count as a word."""
    characters = len(_CHARACTER.findall(text[:HEAD]))
    return characters / 2 if characters else len(words(text[:HEAD]))


# -- chooses among a persona's key protocols by the meaning of the question, without a call


#: A protocol is meant if it has more than this share of the question: clearly more than the persona's ordinary
#: questions and its other protocols together (docs/decisions/0012-router.md).
MEANT = 0.6


class ProtocolChoice:
    """Finds the protocols that a question is meant for, by what was learnt of their exemplars and by their triggers."""

    def __init__(self, lessons: Sequence[Lesson], learnt: Mapping[str, Classifier]) -> None:
        self._learnt = learnt
        self._triggers = {each.label: (each.protocols, Triggers(each.protocols)) for each in lessons if each.protocols}
        self._declared = {each.label: {one.label for one in each.protocols if not one.shelved} for each in lessons}

    def find(
        self,
        text: str,
        personas: Sequence[str],
        vector: Sequence[float] | None = None,
        acting: ActingProtocols | None = None,
    ) -> dict[str, dict[str, float]]:
        """Return the share of each acting protocol that is meant, by persona, the highest first; a trigger gives 1."""
        known = acting if acting is not None else self._declared
        found = {
            persona: self._find(persona, text, vector, known.get(persona, ()))
            for persona in personas
            if persona in self._triggers
        }
        return {persona: meant for persona, meant in found.items() if meant}

    def _find(
        self, persona: str, text: str, vector: Sequence[float] | None, acting: Collection[str]
    ) -> dict[str, float]:
        protocols, triggers = self._triggers[persona]
        learnt = self._learnt[persona].shares(text, vector)
        shares = {label: share for label, share in learnt.items() if label == ORDINARY or label in acting}
        whole = sum(shares.values()) or 1.0  # what does not act takes nothing from the others
        shares = {label: share / whole for label, share in shares.items()}
        shares |= {each.label: 1.0 for each in protocols if each.label in acting and triggers.find(text, each.label)}
        meant = [slot for slot, share in shares.items() if share > MEANT and slot != ORDINARY]
        return {slot: shares[slot] for slot in sorted(meant, key=lambda slot: -shares[slot])}

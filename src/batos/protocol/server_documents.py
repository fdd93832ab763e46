"""The documents of a server, of genesis, and of the image's care, key by key."""

from __future__ import annotations

from typing import NotRequired, TypedDict, final

from batos.protocol.image_documents import BackgroundGenesisDocument, NodeLine, ScreenDocument
from batos.protocol.mission_documents import ErrorDocument, LoadedModel
from batos.protocol.motion_documents import HeartbeatDocument, RatesDocument


class FindingDocument(TypedDict):
    """A result of the audit; `remedy` is empty if all is well."""

    id: str
    ok: bool
    what: str
    remedy: str


class StepDocument(TypedDict):
    """A step of a plan; `size` in bytes, None if unknown."""

    kind: str
    name: str | None
    label: str
    reason: str
    size: int | None
    persona: str | None
    adapter: str | None
    optional: bool


class RecipeDocument(TypedDict):
    """The parts that a persona's model is made of; `recipe` is their digest."""

    persona: str
    base: str
    adapter: str | None
    recipe: str


class PlanDocument(TypedDict):
    """A plan; `stale` are models of our kind that nobody wants, `ours` those of them that this image made."""

    profile: str
    ollama: str
    codex: str
    satisfied: bool
    needs_pull: bool
    steps: list[StepDocument]
    models: dict[str, str]
    recipes: dict[str, RecipeDocument]
    stale: list[str]
    ours: list[str]


@final
class GenesisDocument(TypedDict):
    """The report of a genesis: the plan at its beginning, the steps done, faults found before, the audit after."""

    plan: PlanDocument
    done: list[StepDocument]
    changes: list[str]
    found: list[FindingDocument]
    audit: list[FindingDocument]
    audited_at: str


class ServerDocument(TypedDict, total=False):
    """A running server: its addresses, its process, and the moment of its start; without one it is empty."""

    bind: str
    events: str
    http: str
    pid: int
    started: str
    home: str
    user: str


class LimitsDocument(TypedDict):
    """The limits of a request, in bytes, and the depth to which it may nest."""

    message_bytes: int
    depth: int
    piece_bytes: int
    attachment_bytes: int


class HelloDocument(ServerDocument):
    """The version of a server, its verbs, and its limits."""

    batos: str
    verbs: list[str]
    limits: LimitsDocument


class MakingLine(TypedDict):
    """A method that is being made, and the moment since when."""

    object: str
    selector: str
    since: str


class LearningStatus(TypedDict):
    """The number of methods that are still to be made, and the one that is being made."""

    waiting: int
    making: MakingLine | None


class DaemonDocument(TypedDict):
    """The daemon by its address; the other keys as in a `StandingDocument`, once it was asked."""

    host: str
    answers: NotRequired[bool]
    version: NotRequired[str | None]
    loaded: NotRequired[list[LoadedModel]]
    missing: NotRequired[list[str]]
    error: NotRequired[ErrorDocument | None]


class StoredSizes(TypedDict):
    """The bytes of both databases, and of the blobs beside them."""

    bytes: int
    journal_bytes: int
    blob_bytes: int


class StoredImageDocument(TypedDict):
    """The image by its address, why it cannot be read, and else its sizes as `StoredSizes`."""

    uri: str
    error: ErrorDocument | None
    bytes: NotRequired[int]
    journal_bytes: NotRequired[int]
    blob_bytes: NotRequired[int]


class JobLine(TypedDict):
    """A background job: its state, and the moments of its last and next runs where they are known.

    `state` is `running`, `resting`, `failed` (it is tried again), `held` (another node publishes) or `stopped` (this
    process does not do it). `reason` says why the last run failed; "": it did not.
    """

    name: str
    state: str
    last: str | None
    next: str | None
    reason: str


class MindStatus(ScreenDocument):
    """The status of the mind, asking nobody; `holder` is the process that has the image, if another one has it."""

    learning: LearningStatus
    jobs: list[JobLine]
    ollama: DaemonDocument
    image: StoredImageDocument
    holder: str
    nodes: list[NodeLine]


class StandingStatus(MindStatus):
    """The status with what the daemon says. `ready`: a question would be answered now; else `reasons` are why not."""

    ready: bool
    reasons: list[ErrorDocument]


class StatusDocument(StandingStatus):
    """The whole status, with `rates` where they were asked for.

    `server` is None where no server tells it, and absent in a process that is none.
    """

    genesis: NotRequired[BackgroundGenesisDocument | None]
    server: NotRequired[ServerDocument | None]
    heartbeat: NotRequired[HeartbeatDocument | None]
    rates: NotRequired[RatesDocument]


class SentPiece(TypedDict):
    """A file that is on its way: the bytes of it that are there, and its `size` once it is whole."""

    sha256: str
    have: int
    size: NotRequired[int]


class AdapterChoice(TypedDict):
    """The adapter that a persona thinks with from now on, None for the bare base, and what is to be known of it."""

    persona: str
    adapter: str | None
    changed: bool
    notes: list[str]


class BudgetRowDocument(TypedDict):
    """A line of a budget; `bytes` None: unknown."""

    what: str
    bytes: int | None
    note: str


class PlannedRunnerDocument(TypedDict):
    """A runner's budget; `fits` and `largest_num_ctx` None: unknown."""

    model: str
    uses: list[str]
    on_cpu: bool
    num_ctx: int
    window: int | None
    rows: list[BudgetRowDocument]
    bytes: int
    fits: bool | None
    largest_num_ctx: int | None


class BudgetDocument(TypedDict):
    """The runners of a plan against what is usable, in bytes."""

    runners: list[PlannedRunnerDocument]
    reserve: int
    needed: int
    together: int
    usable: int
    left: int
    fits: bool | None
    takes_turns: bool
    largest_num_ctx: int | None
    kv_type: str
    parallel: int


class ShownBudget(BudgetDocument):
    """A budget, and the lines that show it to a person."""

    lines: list[str]


@final
class PlannedGenesis(PlanDocument):
    """A plan of a genesis with the budget of its models."""

    budget: ShownBudget


class PackedPage(TypedDict):
    """The outcome of a pack: the moment from which on history is kept, and the bytes before and after it."""

    until: str
    before: StoredSizes
    after: StoredSizes
    #: The open mission, or the question to the past, for which more was kept; "" if there was none.
    held_by: str
    #: Calls whose words are erased, since their missions ended so long ago.
    erased: int


class RemainingPlace(TypedDict):
    """A place that has, or may have, words that were erased here, and what to do about it."""

    place: str
    what: str
    remedy: str


class ErasedPage(TypedDict):
    """The outcome of an erasure, or with `dry_run` of a plan: what goes, by kind, and what may still have the words.

    `missions` and `memories` have the reason why each goes. `calls` and `lines` count what went from the journal and
    from files, `objects` the other objects in which a mark stands now, `found` what a scan afterwards still found.
    """

    target: str
    kind: str
    dry_run: bool
    missions: dict[str, str]
    memories: list[str]
    conversations: list[str]
    slots: list[str]
    methods: list[str]
    files: int
    calls: int
    objects: int
    lines: int
    found: list[str]
    left: list[RemainingPlace]


class DisarmingReport(TypedDict):
    """The grants that were taken back, by name, and the effects of which nobody knows whether they happened."""

    grants: list[str]
    effects: list[str]


class RestorationReport(DisarmingReport):
    """The grants and effects that disarming took back, and names of files in the home.

    `aside` has the new names of what was in the way, `unused` the names of settings that are not taken over.
    """

    aside: list[str]
    unused: list[str]

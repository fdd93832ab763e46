"""Every error BAT OS raises, in one tree; each says what happened, what to do, and whether to retry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from batos.protocol.mission_documents import ErrorDocument

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class BatosError(Exception):
    """The root: a message, a remedy, and whether trying again unchanged may help."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    retry: ClassVar[bool] = False
    remedy: str = ""
    #: Further faults that were found beside this one.
    also: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        """Set the code from the name (ImageError is `image`); a private kind inherits its parent's."""
        if not cls.__name__.startswith("_"):
            cls.code = _CAPITAL.sub("_", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, message: str, *, remedy: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.remedy = remedy or self.remedy

    def __str__(self) -> str:
        """Return the message and the remedy, a line each, as a traceback ends with them."""
        return "\n".join(filter(None, (self.message, self.remedy)))

    def advise(self, remedy: str, step: str = "") -> Self:
        """Return this error with another remedy and the step that failed, by whoever knows more of the work."""
        self.remedy, self.message = remedy, f"{step}: {self.message}" if step else self.message
        return self

    def add_faults(self, also: Iterable[str]) -> Self:
        """Return this error with the further faults that were found beside it."""
        self.also = tuple(also)
        return self

    def as_dict(self) -> ErrorDocument:
        """Return the error object of CONTRACT's `--json` documents."""
        shown: ErrorDocument = {
            "code": self.code, "message": self.message, "remedy": self.remedy, "retry": self.retry
        }  # fmt: skip
        if self.field is not None:
            shown["field"] = self.field
        if self.also:
            shown["also"] = list(self.also)
        return shown


def message_of(error: BaseException) -> str:
    """Return the message of an error without its remedy; its kind where it says nothing."""
    return error.message if isinstance(error, BatosError) else str(error) or type(error).__name__


class UsageError(BatosError):
    """The person's input is wrong."""

    exit_code = 2
    remedy = "See `batos --help`."


class ConfigError(UsageError):
    """A setting has an impossible value or is unknown."""

    remedy = "`batos config` shows every setting, its value and where it came from."


class CodexError(UsageError):
    """A codex file is wrong; `file`, `line` and `what` are the message's parts, `faults` all that were found."""

    remedy = "`batos codex check` prints every fault, with its line and its remedy."
    faults: tuple[CodexError, ...] = ()

    def __init__(
        self, message: str, *, file: str, line: int | None = None, remedy: str = "", field: str | None = None
    ) -> None:
        where = file if line is None else f"{file}:{line}"
        super().__init__(f"{where}: {message}", remedy=remedy, field=field)
        self.file, self.line, self.what = file, line, message

    def among(self, faults: tuple[CodexError, ...]) -> Self:
        """Return this error as the first of these faults, of which each has its file and line."""
        self.faults = faults
        return self


class AdapterError(UsageError):
    """An adapter's files are wrong, or it does not fit its persona's base; `faults` has each as plain data."""

    remedy = "`batos adapters check` prints every fault and its remedy."

    def __init__(self, message: str, *, faults: tuple[Mapping[str, str], ...] = (), remedy: str = "") -> None:
        super().__init__(message, remedy=remedy, field="adapters")
        self.faults = faults


class BriefError(UsageError):
    """A mission brief is wrong; `field` names the part."""


class NotFound(UsageError):
    """Nothing goes by that name."""


class PackedAway(NotFound):
    """A moment is older than the oldest one that can be asked about."""


class ProtocolError(UsageError):
    """A message is none of the protocol's; `field` names the part."""

    remedy = "`batos help protocol` shows every message with its fields."


class SchemaError(UsageError):
    """A decision's schema uses a keyword that the daemon accepts and does not enforce, or has no bound."""


class OllamaError(BatosError):
    """The daemon cannot serve this."""

    exit_code = 3
    remedy = "Run `batos doctor` to see what the daemon lacks."


class OllamaUnreachable(OllamaError):
    """Nothing answers at the daemon's address, or the connection was lost before an answer."""

    retry = True
    remedy = "Start it with `ollama serve`, or set OLLAMA_HOST to where it listens."


class OllamaTimeout(OllamaError):
    """A phase took too long: connect, load, first_token, between_tokens; reply (of calls without a model), progress."""

    retry = True
    remedy = "The machine may be overloaded: see `batos ps`, or raise the deadline of that phase in batos.toml."

    def __init__(self, phase: str, seconds: float) -> None:
        super().__init__(f"Ollama sent nothing for {seconds:g} s in the phase `{phase}`")
        self.phase = phase
        self.seconds = seconds


class OllamaBusy(OllamaError):
    """The daemon's own queue is full."""

    retry = True
    remedy = "Wait a moment and ask again, or raise OLLAMA_MAX_QUEUE on the daemon."


class OllamaUnfit(OllamaError):
    """The daemon is too old, or was built without what is asked for."""

    remedy = "Install Ollama 0.30 or newer."


class ModelMissing(OllamaError):
    """The daemon does not have the model."""

    remedy = "Run `batos genesis`: it pulls and makes what is missing."

    def __init__(self, model: str, message: str = "", *, remedy: str = "") -> None:
        super().__init__(message or f"Ollama has no model {model!r}", remedy=remedy, field="model")
        self.model = model


class ModelUnsuitable(OllamaError):
    """The model cannot do what is asked of it."""

    remedy = "Name a model with that capability in the codex; `ollama show MODEL` lists the capabilities."


class PullFailed(OllamaError):
    """The registry did not give a model, or what came of it was damaged; bytes that came are kept by the daemon."""

    retry = True
    remedy = "The daemon cannot reach the registry: pull the model when there is a network."


class ModelLoadFailed(OllamaError):
    """The runner died, ran out of memory or stalled while the model was loading."""

    retry = True
    remedy = "Free memory, use a smaller model or window, or `batos adapters check`; the daemon's log has the cause."


class ContextOverflow(OllamaError):
    """The prompt does not fit the window; both counts are in tokens, None where the daemon names none."""

    exit_code = 1
    remedy = "Shorten the question or the files, or raise num_ctx in the codex."

    def __init__(self, prompt_tokens: int | None, window: int | None, message: str = "") -> None:
        super().__init__(message or f"the prompt has {prompt_tokens} tokens and the window holds {window}")
        self.prompt_tokens = prompt_tokens
        self.window = window


class RequestRejected(OllamaError):
    """Ollama refused the request; `status` is the HTTP status, or None inside a stream."""

    exit_code = 1

    def __init__(self, message: str, status: int | None = None, *, remedy: str = "", field: str | None = None) -> None:
        super().__init__(message, remedy=remedy, field=field)
        self.status = status


class AnswerError(OllamaError):
    """An answer began and cannot be used."""

    exit_code = 1


class StreamCut(AnswerError):
    """The answer ended without its `done` line, so what came of it is not whole."""

    retry = True
    remedy = "Ask again; what was paid for is in the journal."


class RunnerDied(AnswerError):
    """The model's runner stopped while answering."""

    retry = True
    remedy = "Ask again (the daemon starts a new runner); if it repeats, memory is short."


class WireError(AnswerError):
    """Bytes came that are not the protocol."""

    retry = True
    remedy = "Check that OLLAMA_HOST is an Ollama daemon and that there is no proxy between."


class AnswerUnreadable(AnswerError):
    """The daemon could not read what the model said: it ended within a letter, or is not of its format."""

    retry = True
    remedy = "Ask again; if it repeats, raise num_predict in the codex, or name a base whose template Ollama knows."


class Runaway(AnswerError):
    """The model gave blanks, one token, the same words over and over, rows that only count on or bring nothing new,
    what it was instructed, or (`length`) far too much.
    """

    remedy = "Ask again with other words, or use another model: this one repeated itself."

    def __init__(self, kind: str, wasted: int) -> None:
        said = "went on far beyond its limit" if kind == "length" else f"repeated {kind}"
        super().__init__(f"the model {said}; the answer was stopped after {wasted} tokens")
        self.kind = kind
        self.wasted = wasted


class AnswerCut(AnswerError):
    """The answer reached its limit and has no more room: counts in tokens, `wanted` is what the whole needs."""

    remedy = "Raise num_ctx in the codex, or shorten the question or the files."

    def __init__(
        self, prompt_tokens: int, answer_tokens: int, window: int, wanted: int, message: str = "", *, text: str = ""
    ) -> None:
        cut = f"the answer was cut after {answer_tokens} tokens"
        super().__init__(message or f"{cut}: the prompt has {prompt_tokens} of the window's {window}")
        self.prompt_tokens = prompt_tokens
        self.answer_tokens = answer_tokens
        self.window = window
        self.wanted = wanted
        self.text = text


class DecisionInvalid(AnswerError):
    """The model gave no valid JSON for a decision, or none of use, not even when it was asked once more."""

    remedy = "Use another decision mode (codex `options.mode`) or a more capable model."


class Refused(BatosError):
    """Policy, budget or memory says no."""

    exit_code = 4


class BudgetExceeded(Refused):
    """A plan's models do not fit the card; `table` has the rows, `largest` the num_ctx that would fit (0: none)."""

    remedy = "Lower num_ctx in the codex, or name a profile with a smaller model; `batos budget` shows the rows."

    def __init__(self, message: str, table: Mapping[str, object], largest: int | None, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy, field="num_ctx")
        self.table, self.largest = table, largest

    def as_dict(self) -> ErrorDocument:
        """Return the error object with the table."""
        return super().as_dict() | {"largest_num_ctx": self.largest, "budget": dict(self.table)}


class Busy(Refused):
    """As many missions wait as may, or one is just being published."""

    retry = True
    remedy = "Ask again later, or raise `queue` in batos.toml."


class WordsErased(Refused):
    """Something was erased while this read the mind as it was before; nothing of it is kept."""

    retry = True
    remedy = "Ask again when the erasure is done: `batos status` tells."


class Unauthorised(Refused):
    """A server does not know this client's token or key."""

    remedy = "Use the server's own home, or let `batos keys` there make a key for this client."


class ImageError(BatosError):
    """The image cannot be used."""

    exit_code = 5


class ImageBusy(ImageError):
    """Another process holds the image; `owner` says which."""

    retry = True

    def __init__(self, path: str, owner: str, *, remedy: str = "") -> None:
        if "batos serve" in owner:
            alone = "Else this needs the image for itself: stop that server with `batos stop`."
            usual = f"If that server has just begun, try again. {alone}"
        else:
            serve = "Run `batos serve` in a terminal of its own: then any number of clients may ask at once."
            usual = f"{serve} Or wait for that process."
        super().__init__(f"the image {path} is held by {owner}", remedy=remedy or usual)
        self.owner = owner


class OldFormat(ImageError):
    """An older version wrote the image, and nobody asked for its upgrade."""

    def __init__(self, number: int, known: int, *, remedy: str = "") -> None:
        what = f"an older version wrote the image: it has format {number}, and this version works with format {known}"
        super().__init__(what, remedy=remedy or "Run `batos upgrade`, which makes a backup first.")


class NewFormat(ImageError):
    """A newer version wrote the image, or its journal."""

    def __init__(self, what: str, number: int, known: int, version: str) -> None:
        by = f"BAT OS {version}" if version else "a newer version"
        super().__init__(
            f"{by} wrote the {what}: it has format {number}, and this version knows {known}",
            remedy=f"Use {by} or one after it, or restore the backup that the upgrade made (`batos restore`).",
        )


class ImageDamaged(ImageError):
    """The image does not open, or its root is incomplete."""

    remedy = "Run `batos doctor`; restore a backup if it cannot repair."


class IndexDamaged(ImageError):
    """A segment of an index of memory is not what was written, or is of another version."""

    remedy = "Nothing that was remembered is lost: an index is built again from the entries that it was built of."


class ForbiddenClass(ImageError):
    """The database names a class that is not on the allow-list."""

    remedy = "This file was not written by BAT OS, or by a newer version; nothing of it was loaded."


class DiskFull(ImageError):
    """A write did not fit on the disk; the image is as it was before it."""

    remedy = "Free some space on the image's disk, then start again; nothing committed was lost."


class NoServer(BatosError):
    """No server runs."""

    remedy = "Start one with `batos serve`."
    exit_code = 6


class TimedOut(BatosError):
    """The deadline passed, or a person's answer is awaited."""

    exit_code = 7


class LookUpFailed(BatosError):
    """A service or a page of the world is not reached, or what it answers is of no use."""

    remedy = "Try again later, or another source: `batos grants list` lists them."


class OutcomeUnknown(BatosError):
    """A call that changes something in the world was sent, and nobody knows whether it happened."""

    exit_code = 7
    remedy = "Look at the other side whether it happened: the mind does not send it again by itself."


class ApprovalNeeded(BatosError):
    """A person must approve first; `approval` is the id of the question, `others` are more ids."""

    exit_code = 7
    remedy = "See it with `batos approvals`, then `batos approve ID`, or `batos reject ID --why TEXT`."

    def __init__(self, message: str, approval: str, *, others: tuple[str, ...] = (), remedy: str = "") -> None:
        super().__init__(message, field="approval", remedy=remedy)
        self.approval, self.others = approval, others

    def as_dict(self) -> ErrorDocument:
        """Return the error object with the ids."""
        return super().as_dict() | {"approval": self.approval, "approvals": [self.approval, *self.others]}


class MethodFailed(BatosError):
    """A generated method raised, or its result or a slot that it wrote is not plain data."""

    remedy = "`batos method show OBJECT.SELECTOR` shows its source and its checks."


class CovenantViolation(MethodFailed):
    """The guardian refuses the source; `faults` has each as plain data, `also` in words."""

    def __init__(self, message: str, *, faults: tuple[Mapping[str, object], ...] = (), remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.faults = faults


class GenerationFailed(MethodFailed):
    """No method that passes its audit and its checks came of an intent."""

    remedy = "The intent is interpreted unless policy forbids it; a more capable `coder` in the codex writes better."


class CellKilled(MethodFailed):
    """A method went over a limit of its cell (`limit` names it), or its worker died; the kernel is unharmed."""

    def __init__(self, message: str, limit: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.limit = limit


class CellMissing(MethodFailed):
    """The interpreter that generated code runs in cannot be started, so no generated code runs."""

    remedy = "`batos doctor` reports the fault of the cell; install pydantic-monty again."


class MissionFailed(BatosError):
    """A mission ended FAILED; the message is its reason."""

    remedy = "See its states and calls with `batos show MISSION --prompts`."


class ObjectError(BatosError):
    """The object model refused an operation."""

    remedy = "See the object's slots and lineage with `batos inspect OBJECT`."


class MessageNotUnderstood(ObjectError, AttributeError):
    """No slot of the receiver or its parents goes by the selector."""

    def __init__(self, receiver: str, selector: str) -> None:
        super().__init__(f"{receiver} does not understand {selector!r}")
        self.receiver = receiver
        self.selector = selector


class InternalError(BatosError):
    """This should never happen."""

    remedy = "Please report this with the log; the image was not changed by it."

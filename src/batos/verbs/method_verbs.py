"""The verbs of methods, and of the tools among them."""

from __future__ import annotations

from typing import Final

from pydantic import Field, JsonValue

from batos.protocol.method_documents import DatedMethod, LateReport, MethodDocument, MethodHistory, MethodList, ToolList
from batos.protocol.strict_model import AsOf, Name, StrictModel
from batos.verbs.wire_verb import WireVerb

#: Longest wish and longest source of a method, in characters.
WISH_LIMIT: Final = 4_000
SOURCE_LIMIT: Final = 64 * 1024


class MethodListArgs(StrictModel):
    """Every slot that ever had a method, a line each; and how many methods are still to be made."""

    object: Name | None = Field(default=None, description="Only those of this object, as `inspect` takes it.")
    user: Name | None = Field(default=None, description="Only missions and people that are this user's; absent: all.")
    as_of: AsOf = None


class MethodArgs(StrictModel):
    """A slot that has a method, or had one."""

    method: str = Field(min_length=1, max_length=256, description="OBJECT.SELECTOR, split at the last dot.")


class MethodShowArgs(MethodArgs):
    """All of a method: source, verdict, checks, provenance, ledger."""

    revision: int | None = Field(default=None, ge=1, description="The revision; absent: the active, else the last.")
    user: Name | None = Field(default=None, description="Only missions and people that are this user's; absent: all.")
    as_of: AsOf = None


class MethodHistoryArgs(MethodArgs):
    """Every revision of a method, the reasons of its start and end, and every change of its slot."""

    user: Name | None = Field(default=None, description="Only people and origins that are this user's; absent: all.")


class MethodMakeArgs(StrictModel):
    """Make the methods that were missing in answered missions; a new question stops this."""


class MethodRollbackArgs(MethodArgs):
    """Make a former revision active again."""

    revision: int | None = Field(default=None, ge=0, description="The revision; 0: the intent; absent: the one before.")
    user: Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")


class MethodRedefineArgs(MethodArgs):
    """Make a new revision of a method, from a wish, a source, or both; audited and checked like any other."""

    wish: str | None = Field(default=None, min_length=1, max_length=WISH_LIMIT, description="The new intent as text.")
    source: str | None = Field(default=None, min_length=1, max_length=SOURCE_LIMIT, description="The new source.")
    checks: list[dict[str, JsonValue]] | None = Field(
        default=None, min_length=1, max_length=16, description="Checks of the source; absent: the present ones."
    )
    user: Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")


class ToolsArgs(StrictModel):
    """List the methods that are tools and can be called."""


METHOD_LIST: Final = WireVerb[MethodListArgs, MethodList]("method_list", MethodListArgs)
METHOD_SHOW: Final = WireVerb[MethodShowArgs, DatedMethod]("method_show", MethodShowArgs)
METHOD_HISTORY: Final = WireVerb[MethodHistoryArgs, MethodHistory]("method_history", MethodHistoryArgs)
METHOD_ROLLBACK: Final = WireVerb[MethodRollbackArgs, MethodDocument](
    "method_rollback", MethodRollbackArgs, governs=True
)
METHOD_MAKE: Final = WireVerb[MethodMakeArgs, LateReport]("method_make", MethodMakeArgs)
METHOD_REDEFINE: Final = WireVerb[MethodRedefineArgs, MethodDocument](
    "method_redefine", MethodRedefineArgs, governs=True
)
TOOLS: Final = WireVerb[ToolsArgs, ToolList]("tools", ToolsArgs)

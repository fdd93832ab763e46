"""Tools of a program, or of a file of the home, as they are declared: name, purpose, parameters; and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, TypedDict

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from batos.protocol import brief_checks

#: The most tools of a program, the most parameters of a tool, and the bytes of a declaration's parameters as JSON.
TOOLS_LIMIT, PARAMETERS_LIMIT, SCHEMA_BYTES = 32, 16, 8 * 1024
#: Characters of a tool's name and of its purpose, and of the line that tells why a call failed.
NAME_LIMIT, PURPOSE_LIMIT, FAILURE_LIMIT = 64, 200, 300
#: The most bytes of a tool's result, and of the arguments of a call as JSON.
RESULT_BYTES, ARGUMENT_BYTES = 256 * 1024, 16 * 1024
#: The keywords that a parameter's schema may have; what else a model is told, nobody would check.
KEYWORDS: Final = frozenset(
    {
        "type", "enum", "items", "description", "format", "pattern", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
    }
)  # fmt: skip
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})


def check_parameter(schema: object) -> None:
    """Check that a parameter is a text, a number, a truth value, or a list of such. Raises: ValueError."""
    if not isinstance(schema, Mapping) or not KEYWORDS.issuperset(schema):
        raise ValueError("it has a schema with other keywords than those of a flat value")
    items = schema.get("items") if schema.get("type") == "array" else None
    kind = items.get("type") if isinstance(items, Mapping) and KEYWORDS.issuperset(items) else schema.get("type")
    if kind not in _SCALARS:
        raise ValueError("it must be a text, a number, a truth value, or a list of one of these")


def check_parameters(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the schema of a tool's parameters. Raises: ValueError: it is not one flat object within the bounds."""
    brief_checks.plain_json(schema, SCHEMA_BYTES)
    found, required = schema.get("properties"), schema.get("required", [])
    known = {"type", "properties", "required", "additionalProperties"}
    if schema.get("type") != "object" or not isinstance(found, dict) or not known.issuperset(schema):
        raise ValueError("it must be an object with properties")
    if len(found) > PARAMETERS_LIMIT:
        raise ValueError(f"it has {len(found)} properties, at most {PARAMETERS_LIMIT} are taken")
    if not isinstance(required, list) or not all(isinstance(each, str) and each in found for each in required):
        raise ValueError("`required` must name properties")
    for name, each in found.items():
        if not name.isidentifier() or len(name) > NAME_LIMIT:
            raise ValueError(f"{name[:NAME_LIMIT]!r} is no name of a parameter")
        try:
            check_parameter(each)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    brief_checks.check(schema)
    return schema


class ToolDeclaration(BaseModel):
    """A function that the program of the asker runs for this mission alone; `reads`: it changes nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = Field(pattern=rf"^[A-Za-z0-9_-]{{1,{NAME_LIMIT}}}\z")
    purpose: Annotated[str, AfterValidator(brief_checks.one_line), AfterValidator(brief_checks.says_something)] = Field(
        min_length=1, max_length=PURPOSE_LIMIT
    )
    parameters: Annotated[dict[str, JsonValue], AfterValidator(check_parameters)]
    reads: bool = Field(default=False, strict=True)


def distinct_names(tools: tuple[ToolDeclaration, ...] | None) -> tuple[ToolDeclaration, ...] | None:
    """Return tools. Raises: ValueError: two have one name."""
    names = [each.name for each in tools or ()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two tools are named {twice!r}")
    return tools


#: The outcome of a call: `done`; `failed`: the function said so; `refused`: it was not run; `unknown`: nobody knows
#: whether it ran.
CallOutcome: TypeAlias = Literal["done", "failed", "refused", "unknown"]


class LentCallDocument(TypedDict):
    """The event `mission.tool_call`: a call that the asker's program is to make and to answer by `tool_result`.

    `from_external`: an argument derives from a document, a page or a tool's reply, so that the person is asked before.
    `is_file`: a file of the home makes the call, and the program only says whether it may. `seconds` is its time.
    """

    mission: str
    call: str
    tool: str
    arguments: Mapping[str, object]
    reads: bool
    from_external: bool
    is_file: bool
    seconds: float


class CallReply(TypedDict):
    """The answer to a call: its result as text, or the reason in one line."""

    outcome: CallOutcome
    text: str


class AcceptedResult(TypedDict):
    """The call of which a result came; `late`: no mission waits for it."""

    call: str
    late: bool


class ToolLine(TypedDict):
    """A tool that can be called now; `by` is the model that wrote it, or the person who redefined it."""

    tool: str
    object: str
    selector: str
    what: str
    signature: str
    revision: int
    made_at: str
    calls: int
    by: str


class WrittenToolLine(TypedDict):
    """A tool that people wrote: a function of a program, lent to the mission `place`, or of the file or server `place`.

    `reads`: it changes nothing. `error` is why a file has no tools, and `tool` is its name then; or why a
    tool of a server is not used.
    """

    tool: str
    kind: Literal["program", "file", "mcp"]
    what: str
    reads: bool
    by: str
    place: str
    error: str


class ToolList(TypedDict):
    """The methods that are tools, and the tools that people wrote."""

    tools: list[ToolLine]
    written: list[WrittenToolLine]

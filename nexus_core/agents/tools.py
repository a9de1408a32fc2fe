"""Python functions as tools of an agent: their schema, arguments, results and time-outs.

Whatever a tool does wrong becomes a tool result that the model can read.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, get_type_hints, overload, runtime_checkable

from nexus_core.agents.event_queue import BackgroundWork, EventQueue, start_daemon
from nexus_core.agents.permissions import TOOL_RISKS
from nexus_core.config.durations import require_seconds
from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.text.safety import repair_surrogates
from nexus_core.thread.state import CallResult
from nexus_core.types.messages import TOOL_SCOPES, File, Image, Opaque, Text, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel

    from nexus_core.agents.permissions import ToolRisk
    from nexus_core.thread.state import RecordedCall
    from nexus_core.types.messages import ResultPart, ToolScope
    from nexus_core.types.providers import CancelSignal

F = TypeVar("F", bound="Callable[..., object]")

MAX_RESULT_CHARACTERS = 1_000_000
"""Characters of a tool result in the ledger; a session sends far fewer (`truncation.tool_result_tokens`)."""
MAX_ERROR_CHARACTERS = 4_000
"""Characters of an exception's message in a tool result."""
DEFAULT_TOOL_SECONDS = 300.0
"""Time-out of a tool that sets none; a build or a test run fits in."""

_PART_TYPES = (Text, Image, File, Opaque)
_ARGS_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):\s*$(.*?)(?:^\S|\Z)", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):\s*$", re.MULTILINE)
_ARG_LINE = re.compile(r"^\s+(\w+)(?:\s*\([^)]*\))?:\s*(.+)$")


@runtime_checkable
class ToolRunner(Protocol):
    """Runs tools that plugins offer: `connect(nexus)` of the MCP plugin gives one, `SkillGuideTool` is one."""

    def __contains__(self, name: object) -> bool:
        """Return True if it runs the tool of that name."""

    def run(self, call: RecordedCall) -> CallResult | Awaitable[CallResult]:
        """Run a call and return its result for `Session.record`."""


class FunctionTool:
    """A Python function that a model may call.

    Args:
        function: The function; its type hints become the schema, its docstring the description. May be async.
        name: The name for the model; by default that of the function.
        description: The description for the model; by default the docstring without its sections.
        risk: `low` runs at every permission level, `medium` asks when sandboxed; `high` asks when trusted, and is
            refused when sandboxed.
        timeout: Seconds after which the model gets an error instead of a result.
        scope: Its reach: `general`, `messaging` (workers do not have it) or `spawn`.

    Raises:
        UsageError: The function takes arguments that cannot be described to a model.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str | None = None,
        description: str | None = None,
        risk: ToolRisk = "medium",
        timeout: float = DEFAULT_TOOL_SECONDS,
        scope: ToolScope = "general",
    ) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", ""))
        if not self.name or self.name == "<lambda>":
            raise UsageError("a tool needs a name", hint="tool(function, name='…')")
        if risk not in TOOL_RISKS:
            raise UnknownNameError("risk of a tool", risk, TOOL_RISKS)
        if scope not in TOOL_SCOPES:
            raise UnknownNameError("scope of a tool", scope, TOOL_SCOPES)
        self.risk: ToolRisk = risk
        self.timeout = require_seconds(timeout, f"the time-out of {self.name}")
        doc = inspect.getdoc(function) or ""
        self._names, self._arguments = _build_arguments_model(function, self.name, _read_argument_docs(doc))
        self.definition = Tool(
            name=self.name,
            description=_describe_function(doc) if description is None else description,
            parameters=_build_schema(self._arguments),
            scope=scope,
        )

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function, as if it were no tool."""
        return self.function(*args, **kwargs)

    def with_function(self, function: Callable[..., object]) -> FunctionTool:
        """Return the same tool with another function of the same signature."""
        other = copy(self)
        other.function = function
        return other

    def bind(self, arguments: Mapping[str, object]) -> Callable[[], object]:
        """Return the call of the function with a model's arguments, converted to the types of its signature.

        Raises:
            ValueError: They do not fit; the message says what is wrong with each.
        """
        from pydantic import ValidationError

        try:
            read = self._arguments.model_validate(dict(arguments))
        except ValidationError as error:
            wrong = [
                f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
                for each in error.errors(include_url=False, include_input=False, include_context=False)
            ]
            raise ValueError("; ".join(wrong)) from None
        given = {name: getattr(read, field) for field, name in self._names.items() if field in read.model_fields_set}
        return partial(self.function, **given)


@overload
def tool(function: F, /) -> FunctionTool: ...
@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    risk: ToolRisk = "medium",
    timeout: float = DEFAULT_TOOL_SECONDS,
    scope: ToolScope = "general",
) -> Callable[[Callable[..., object]], FunctionTool]: ...
@overload
def tool(
    function: Callable[..., object],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    risk: ToolRisk = "medium",
    timeout: float = DEFAULT_TOOL_SECONDS,
    scope: ToolScope = "general",
) -> FunctionTool: ...
def tool(function: Callable[..., object] | None = None, /, **options: Any) -> object:
    """Turn a function into a `FunctionTool`. Also a decorator, with or without options."""
    if function is None:
        return lambda decorated: FunctionTool(decorated, **options)
    return FunctionTool(function, **options)


def _build_arguments_model(
    function: Callable[..., object], name: str, docs: Mapping[str, str]
) -> tuple[dict[str, str], type[BaseModel]]:
    """Return the parameters of a function by field, and the pydantic model that validates arguments for them."""
    from pydantic import ConfigDict, Field, create_model
    from pydantic.errors import PydanticUserError

    try:
        signature = inspect.signature(function)
        hints = get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        hint = "write type hints that can be resolved where it is defined"
        raise UsageError(f"the signature of the tool {name} cannot be read: {error}", hint=hint) from None
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for index, each in enumerate(signature.parameters.values()):
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise UsageError(
                f"the tool {name} has the parameter {each}, which a model cannot give",
                hint="use parameters with names, each with a type",
            )
        # Fields have names of their own: parameters may be called like methods of a model, or begin with `_`.
        field = f"argument_{index}"
        names[field] = each.name
        default = ... if each.default is each.empty else each.default
        annotation = hints.get(each.name, Any)
        described: dict[str, Any] = {"description": docs[each.name]} if each.name in docs else {}
        fields[field] = (annotation, Field(default, alias=each.name, **described))
    try:
        return names, create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        what = str(error).partition("\n")[0]
        raise UsageError(f"the parameters of the tool {name} have no JSON Schema: {what}") from None


def _build_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of arguments, without the titles that pydantic makes of names."""
    from pydantic.errors import PydanticInvalidForJsonSchema
    from pydantic.json_schema import GenerateJsonSchema

    class UntitledJsonSchema(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's signature
            return False

    try:
        schema = arguments.model_json_schema(by_alias=True, schema_generator=UntitledJsonSchema)
    except PydanticInvalidForJsonSchema as error:
        raise UsageError(f"the parameters of a tool have no JSON Schema: {str(error).partition(chr(10))[0]}") from None
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _describe_function(doc: str) -> str:
    """Return a docstring up to its first section."""
    return _SECTION.split(doc, maxsplit=1)[0].strip()


def _read_argument_docs(doc: str) -> dict[str, str]:
    section = _ARGS_SECTION.search(doc)
    found: dict[str, str] = {}
    name = ""
    for line in section[1].splitlines() if section else ():
        match = _ARG_LINE.match(line)
        if match:
            name = match[1]
            found[name] = match[2].strip()
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found


# ---- running ------------------------------------------------------------------------------------------------------


class ToolRunOutcome(NamedTuple):
    """Result of running a tool: its value, its error or a time-out.

    Attributes:
        value: Its result: a `CallResult`, or the content of one.
        error: The type and message of what it raised; "" if it returned.
        is_late: True if it did not end in time.
        seconds: How long it ran.
    """

    value: object = None
    error: str = ""
    is_late: bool = False
    seconds: float = 0.0


class ToolRun(BackgroundWork):
    """A tool that is being run, for blocking and async loops.

    Functions run in a thread of their own, because nothing else ends a wait for one that hangs. In an async loop,
    coroutine functions run in that loop.

    Args:
        start: Calls the tool.
        seconds: The time-out.
        cancel: Ends the wait.
    """

    def __init__(self, start: Callable[[], object], seconds: float, cancel: CancelSignal) -> None:
        self._start = start
        self._seconds = seconds
        self._cancel = cancel
        self._mailbox: EventQueue[ToolRunOutcome | None] = EventQueue()
        self._began = time.monotonic()

    def wait(self) -> ToolRunOutcome | None:
        """Return the outcome; None if the turn was cancelled."""
        start_daemon(self._run_blocking, "tool")
        wake = self._wake
        self._cancel.on_cancel(wake)
        try:
            return self._read(self._mailbox.wait(self._seconds))
        finally:
            self._cancel.forget(wake)

    async def wait_async(self) -> ToolRunOutcome | None:
        """Return the outcome; None if the turn was cancelled."""
        is_coroutine = inspect.iscoroutinefunction(getattr(self._start, "func", self._start))
        task: asyncio.Task[None] | None = None
        if is_coroutine:
            task = asyncio.ensure_future(self._run_async())
        else:
            start_daemon(self._run_blocking, "tool")
        wake = self._wake
        self._cancel.on_cancel(wake)
        try:
            return self._read(await self._mailbox.wait_async(self._seconds))
        finally:
            self._cancel.forget(wake)
            if task is not None:
                task.cancel()

    def _wake(self) -> None:
        self._mailbox.put(None)

    def _read(self, found: list[ToolRunOutcome | None]) -> ToolRunOutcome | None:
        if self._cancel.is_set:
            return None
        outcome = next(iter(found), None) or ToolRunOutcome(is_late=True)
        return outcome._replace(seconds=time.monotonic() - self._began)

    def _run_blocking(self) -> None:
        try:
            value = self._start()
            if inspect.isawaitable(value):
                value = asyncio.run(_await(value))
            outcome = ToolRunOutcome(_write_content(value))
        except BaseException as error:  # noqa: BLE001 - the model reads whatever a tool raises
            outcome = ToolRunOutcome(error=describe_tool_error(error))
        self._mailbox.put(outcome)

    async def _run_async(self) -> None:
        try:
            value = await _await(self._start())
            # A value may take long to write: a generator is read here, and any class may have its own `__repr__`.
            outcome = ToolRunOutcome(await asyncio.to_thread(_write_content, value))
        except asyncio.CancelledError:
            self._mailbox.put(ToolRunOutcome(error="it was cancelled"))
            raise
        except BaseException as error:  # noqa: BLE001 - as above; sys.exit in a tool does not end the program
            outcome = ToolRunOutcome(error=describe_tool_error(error))
        self._mailbox.put(outcome)


async def _await(value: Any) -> object:  # noqa: ANN401 - of any type
    return await value


# ---- results ------------------------------------------------------------------------------------------------------


def _write_content(value: object) -> object:
    return value if isinstance(value, CallResult) else to_result_content(value)


def to_result_content(value: object) -> str | tuple[ResultPart, ...]:
    """Return what a tool returned as text or parts that a model can read.

    Text, parts (`Text`, `Image`, `File`) and lists of them stay; bytes become text if they are UTF-8; anything else
    becomes JSON, and what has no JSON form its `repr`.
    """
    if isinstance(value, str):
        return shorten_result(value)
    if isinstance(value, _PART_TYPES):
        return (value,)
    if isinstance(value, list | tuple) and value and all(isinstance(each, _PART_TYPES) for each in value):
        return tuple(value)
    if value is None:
        return "(no result)"
    if isinstance(value, bytes | bytearray | memoryview):
        return _describe_bytes(bytes(value))
    return shorten_result(_write_json(value))


def describe_tool_error(error: BaseException) -> str:
    """Return the type and message of an exception, shortened."""
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 - `__str__` of a third-party exception may raise anything
        message = ""
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return shorten_result(text, MAX_ERROR_CHARACTERS)


def shorten_result(text: str, limit: int = MAX_RESULT_CHARACTERS) -> str:
    """Return a text that can be stored and sent: its beginning and end if it is long, without lone surrogates."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"
    return repair_surrogates(text)


def _describe_bytes(value: bytes) -> str:
    try:
        return shorten_result(value.decode())
    except UnicodeDecodeError:
        return f"[{len(value):,} bytes that are not text]"


def _write_json(value: object) -> str:
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(value, fallback=_safe_repr, inf_nan_mode="strings", bytes_mode="base64").decode()
    except (PydanticSerializationError, ValueError, RecursionError):  # it contains itself, or is too deep
        return _safe_repr(value)


def _safe_repr(value: object) -> str:
    try:
        return repr(value)[:MAX_RESULT_CHARACTERS]
    except Exception:  # noqa: BLE001 - `__repr__` of any class may fail
        return f"[an object of type {type(value).__name__}]"

"""Plugin check against the contract: names, signatures, results and dialects."""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.registry import get_default_registry
from nexus_core.errors import MessageError, NexusError, PluginError
from nexus_core.files.places import defaults_directory
from nexus_core.history.groups import RunningSums
from nexus_core.history.select import call_strategy
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.calls import describe_exception
from nexus_core.host.discovery import PluginPolicy, build_given_candidates
from nexus_core.host.loader import find_contract_errors, find_implementations, find_uncalled_functions
from nexus_core.host.manager import Host
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.memory.recall import compute_vectors, search_source
from nexus_core.testing.samples import build_sample_context, build_sample_record, build_sample_thread, write_files
from nexus_core.tokens.counters import CachingCounter
from nexus_core.transcripts.read import BUILT_IN_NAMES, load_formats
from nexus_core.types.layers import Layer, LoadedLayers
from nexus_core.types.memory import MemoryQuery
from nexus_core.types.messages import Conversation, Message, Text, Tool, ToolCall, ToolResult
from nexus_core.types.request import Request
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.host.manager import ContributionRegistry
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import TruncationStrategy
    from nexus_core.types.memory import Embedder
    from nexus_core.types.plugins import Command, Problem

_SYSTEM_MESSAGE = Message("system", "Be brief.")
_MESSAGES = (
    Message("user", "Why does it fail?"),
    Message("assistant", (Text("I look."), ToolCall("call_1", "read_file", {"path": "a.py"}))),
    Message("tool", (ToolResult("call_1", "x = 1", name="read_file"),)),
    Message("assistant", "Because of x."),
    Message("user", "Thanks."),
)
_TOOL = Tool(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
_AMBIGUOUS_MESSAGES = (
    {"role": "user", "content": "Why?"},
    {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
)
"""Messages that are valid in many APIs."""


class DialectTrial(NamedTuple):
    """The result of a dialect for a small conversation.

    Attributes:
        name: The dialect.
        written: The conversation in its format.
        faults: Errors, each a sentence.
    """

    name: str
    written: object
    faults: tuple[str, ...]


def try_dialects(host: Host) -> list[DialectTrial]:
    """Try each dialect that plugins provide."""
    dialects = get_default_registry(host)
    return [_try_dialect(each) for each in (*dialects.replacing().values(), *dialects.offered().values())]


def _try_dialect(dialect: Dialect) -> DialectTrial:
    written: list[Any] = []
    errors = [error for trial in _TRIALS for error in _run_trial(trial, dialect, written)]
    return DialectTrial(dialect.name, written, tuple(errors))


def _run_trial(trial: Callable[[Dialect, list[Any]], Iterator[str]], dialect: Dialect, written: list[Any]) -> list[str]:
    try:
        return [f"the dialect {dialect.name!r} {error}" for error in trial(dialect, written)]
    except PluginError as error:
        return [error.message]
    except MessageError as error:
        return [f"the dialect {dialect.name!r} cannot read what it has written itself: {error.what}, at {error.path}"]


def _try_messages(dialect: Dialect, written: list[Any]) -> Iterator[str]:
    items = dialect.write(_MESSAGES)
    written += items
    read = [dialect.read(item) for item in items]
    if _list_comparable_parts(read) != _list_comparable_parts(_MESSAGES):
        yield "does not read back what it writes: a user message, a tool call, and its result"
    if any(message.api != dialect.name for message in read):
        yield f"must set api={dialect.name!r} on each message that it reads"
    if dialect.write(read) != items:
        yield "does not write messages back as it has read them: both must be equal"


def _try_request(dialect: Dialect, written: list[Any]) -> Iterator[str]:
    given = Conversation(messages=(_SYSTEM_MESSAGE, *_MESSAGES), tools=(_TOOL,), extra={"model": "sample"})
    body = dialect.write_request(given, {})
    written.append(body)
    read = dialect.read_request(body)
    if _list_comparable_parts(read.messages) != _list_comparable_parts(given.messages):
        yield "does not read back the messages of a request body that it writes, instructions first"
    if _normalize_tools(read.tools) != _normalize_tools([_TOOL]):
        yield "does not read back the tools of a request body that it writes"


def _try_tools(dialect: Dialect, written: list[Any]) -> Iterator[str]:
    items = dialect.write_tools([_TOOL])
    written += items
    if _normalize_tools(dialect.read_tools(items)) != _normalize_tools([_TOOL]):
        yield "does not read back a tool that it writes"


def _try_recognition(dialect: Dialect, _written: list[Any]) -> Iterator[str]:
    if any(dialect.recognises(item) for item in _AMBIGUOUS_MESSAGES):
        yield "recognizes a message as its own that is valid in many other APIs"


def _try_refusals(dialect: Dialect, _written: list[Any]) -> Iterator[str]:
    for name in ("read", "read_request", "read_reply"):
        try:
            getattr(dialect, name)(0)
        except MessageError:
            continue
        yield f"must raise a MessageError in {name} for a value that is not in its format, such as a number"


_TRIALS = (_try_messages, _try_request, _try_tools, _try_recognition, _try_refusals)


def _list_comparable_parts(messages: Iterable[Message]) -> list[object]:
    """Return the parts of messages without what an API may lack: tool names of results, and ids of calls."""
    return [_to_comparable(part) for message in messages for part in message.parts]


def _to_comparable(part: object) -> object:
    if isinstance(part, ToolCall):
        return ("call", part.name, dict(part.arguments))
    if isinstance(part, ToolResult):
        return ("result", [_to_comparable(each) for each in part.parts])
    return part.text if isinstance(part, Text) else part


def _normalize_tools(tools: Iterable[Tool]) -> list[Tool]:
    return [replace(tool, api="", extra={}) for tool in tools]


_SAMPLE_FILES = {
    "home/NEXUS.md": "The user's own text.\n",
    "company/.nexus3/NEXUS.md": "The company's text.\n",
    "company/project/.nexus3/NEXUS.md": "The project's text.\n",
    "company/project/README.md": "# Project\n",
}


def check_plugin(plugin: object, *, model: str = "") -> list[str]:
    """Return everything that is wrong with a plugin, each finding a sentence. An empty list means none.

    The plugin's hooks are called on a small tree in a temporary directory, each of them twice, because equal calls
    must return equal results. A token counter is tried with the first model name that it accepts: of `model`, the
    plugin's own `nexus_models`, the strings in the code of its hook, and the models that Nexus knows.

    Args:
        plugin: The module or object with the hooks.
        model: A model that the plugin counts tokens for; "" to look for one.
    """
    findings = list(find_contract_errors(plugin)) or find_uncalled_functions(plugin)
    if not findings:
        with tempfile.TemporaryDirectory() as scratch:
            # Resolved, because some systems reach their temporary directory through a link.
            findings = list(_check_results(plugin, Path(scratch).resolve(), model))
    return findings


def _check_results(plugin: object, root: Path, model: str) -> Iterator[str]:
    problems: list[Problem] = []
    request = _build_sample_request(write_files(root, _SAMPLE_FILES))
    host = Host(build_given_candidates([plugin]), PluginPolicy(), report=problems.append)
    try:
        first, second = (call_every_hook(host, request, list_model_names(plugin, model)) for _ in range(2))
    except PluginError as error:
        yield f"{error.hook}: {error.message}"
        return
    except NexusError as error:
        yield f"refused the sample tree: {error.what}"
        return
    for problem in problems:
        yield f"{problem.hook}: {problem.message}"
    for hook, answer in first.items():
        if answer != second[hook]:
            yield f"{hook}: two equal calls returned different results"
    if "nexus_token_counter" in find_implementations(plugin) and first["nexus_token_counter"] is None and not problems:
        refused = f"it returned None for {model!r}" if model else "it returned None for every model that was tried"
        yield f"nexus_token_counter: {refused}; name one that it counts for with --model or check_plugin(…, model=…)"
    commands: list[Command] = first["nexus_commands"]  # type: ignore[assignment]
    for command in commands:
        yield from _check_target(command)
    tried: list[DialectTrial] = first["nexus_dialects"]  # type: ignore[assignment]
    for each in tried:
        yield from (f"nexus_dialects: {error}" for error in each.faults)


def list_model_names(plugin: object, model: str = "") -> list[str]:
    """Return names of models to try a plugin's token counter with, those that it should accept first.

    Args:
        plugin: The plugin.
        model: The only name to try, if the caller knows one.
    """
    if model:
        return [model]
    hooks = find_implementations(plugin)
    if "nexus_token_counter" not in hooks:
        return []
    return [*_find_names_in_code(hooks["nexus_token_counter"]), "", *_list_bundled_models()]


def _find_names_in_code(function: Callable[..., object]) -> list[str]:
    """Return the strings that a function compares with: its constants, and those of its module that it names."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return []
    variables = getattr(inspect.unwrap(function), "__globals__", {})
    values = [*code.co_consts[1 if code.co_consts[:1] == (function.__doc__,) else 0 :]]
    values += [variables[name] for name in code.co_names if name in variables]
    found: list[str] = []
    for value in values:
        several = value if isinstance(value, tuple | list | set | frozenset | dict) else [value]
        found += sorted(each for each in several if isinstance(each, str))
    return list(dict.fromkeys(found))


def _list_bundled_models() -> list[str]:
    host = Host(BUNDLED, PluginPolicy(disabled=frozenset(each.name for each in BUNDLED if each.name != "models")))
    return [name.rstrip("*-") for name in host.models()]


def call_every_hook(host: Host, request: Request, models: Sequence[str] = ()) -> dict[str, object]:
    """Return the results of a host's plugins for every hook of the contract, on one request.

    Args:
        host: The plugins.
        request: The request.
        models: Model names to try for a token counter, until one is accepted; those of `nexus_models` come first.
    """
    layers, skipped = host.layers(request)
    # Layers of the sample tree, for plugins that read layers but find none.
    sample = [
        Layer("global", request.home, "global"),
        Layer("local", request.cwd / ".nexus3", "local", root=request.cwd),
    ]
    configs = [host.layer_config(layer, request) for layer in (*layers, *sample)]
    texts = [host.layer_texts(layer, Settings()) for layer in (*layers, *sample)]
    loaded = LoadedLayers(layers=tuple(layers), texts=tuple(text for found, _ in texts for text in found))
    registry, roles = host.commands(), host.roles()
    host.assembled(build_sample_context(request))
    host.recorded(*build_sample_record())
    return {
        "nexus_commands": [registry.get(name) for name in registry],
        "nexus_init_files": [host.init_files("local"), host.init_files("global")],
        "nexus_settings": host.settings(),
        "nexus_merge_policies": {key: str(policy) for key, policy in host.merge_policies().items()},
        "nexus_layers": (layers, skipped),
        "nexus_layer_config": configs,
        "nexus_layer_texts": texts,
        "nexus_static_sections": host.static_sections(request, loaded),
        "nexus_current_sections": host.current_sections(request, loaded),
        "nexus_tools": host.tools(request, loaded),
        "nexus_renderers": list(host.renderers()),
        "nexus_dialects": try_dialects(host),
        "nexus_roles": [roles.get(name) for name in roles],
        "nexus_models": host.models(),
        "nexus_token_counter": _describe_counter(host, models),
        "nexus_truncation_strategies": _try_truncations(host.truncations()),
        "nexus_compaction_plan": host.compaction_plan(*build_sample_thread()),
        "nexus_summarizers": list(host.summarizers(loaded)),
        "nexus_ledger": _describe_ledger(host, f"sqlite:///{request.home / 'ledger.db'}"),
        "nexus_memory_sources": _try_memory_sources(host, request, loaded),
        "nexus_embedders": _try_embedders(host.embedders()),
        "nexus_providers": list(host.providers(loaded)),
        "nexus_toolsets": list(host.toolsets()),
        "nexus_transcripts": _try_readers(host),
        "nexus_call_assembled": None,
        "nexus_step_recorded": None,
        "nexus_diagnose": host.diagnose(request, loaded),
    }


def _describe_counter(host: Host, names: Sequence[str]) -> tuple[str, str, bool, int, int] | None:
    """Return the first name that is accepted, and the results of its counter, or None if none is accepted."""
    own = [] if len(names) == 1 else [(each.name.rstrip("*-"), each.encoding) for each in host.models().values()]
    for name, encoding in [*own, *((name, "") for name in names)]:
        found = host.token_counter(name, encoding)
        if found is not None:
            counter = CachingCounter(found[0], plugin=found[1])
            message = Message("user", "Why not?")
            return name, counter.name, counter.exact, counter.count("Why?"), counter.count_messages([message])
        if any(problem.hook == "nexus_token_counter" for problem in host.problems):
            break  # it accepted the name, and returned a wrong result
    return None


def _try_truncations(truncations: ContributionRegistry[TruncationStrategy]) -> list[tuple[str, list[slice]]]:
    """Return by strategy which of five groups it keeps if two fit."""
    sample = RunningSums([100] * 5)
    return [(name, call_strategy(truncations.get(name), sample, 200)) for name in truncations]


def _try_embedders(embedders: ContributionRegistry[Embedder]) -> list[tuple[str, int]]:
    """Return by embedder the length of its vectors."""
    found: list[tuple[str, int]] = []
    for name in embedders:
        vectors, error = compute_vectors(embedders.get(name), ["Why does it fail?", "It fails.", "Bread."])
        if error:
            raise PluginError(error, plugin=embedders.owner(name), hook="nexus_embedders")
        found.append((name, len(vectors[0])))
    return found


def _try_memory_sources(host: Host, request: Request, loaded: LoadedLayers) -> list[tuple[str, int]]:
    """Return by memory source how many memories it finds for a sample question in an empty ledger."""
    ledger, query = MemoryLedger(), MemoryQuery(text="Why does it fail?", directory=request.cwd)
    sources = host.memory_sources(request, loaded, ledger)
    found: list[tuple[str, int]] = []
    for name in sources:
        memories, error = search_source(sources.get(name), query)
        if error:
            raise PluginError(error, plugin=sources.owner(name), hook="nexus_memory_sources")
        found.append((name, len(memories)))
    return found


def _try_readers(host: Host) -> list[str]:
    """Return the formats of plugins whose readers can be imported. The others are reported to the host."""
    return [form.name for form in load_formats(host) if form.name not in BUILT_IN_NAMES]


def _describe_ledger(host: Host, url: str) -> tuple[str, bool] | None:
    ledger = host.ledger(url)
    if ledger is None:
        return None
    try:
        answer = ledger.url, ledger.session("sample") is None
        ledger.close()
    except NexusError:
        raise
    except Exception as error:
        plugin = host.plugins[-1].name
        raise PluginError(f"its ledger {describe_exception(error)}", plugin=plugin, hook="nexus_ledger") from error
    return answer


def _build_sample_request(root: Path) -> Request:
    return Request(cwd=root / "company/project", home=root / "home", defaults=defaults_directory())


def _check_target(command: Command) -> Iterator[str]:
    module, _, attribute = command.target.partition(":")
    try:
        app = getattr(import_module(module), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin's module may raise anything when imported
        yield f"nexus_commands: {command.target} cannot be imported: it {describe_exception(error)}"
        return
    if type(app).__name__ != "Typer":  # by name, because Typer is imported by the command line only
        yield f"nexus_commands: {command.target} is of type {type(app).__name__}, expected a typer.Typer"

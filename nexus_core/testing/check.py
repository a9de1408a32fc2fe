"""Holds a plugin against the contract: its names, its signatures, and its answers on a small sample tree."""

from __future__ import annotations

import inspect
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import NexusError, PluginError
from nexus_core.files.places import defaults_directory
from nexus_core.history.asking import ask_truncation
from nexus_core.history.sums import RunningSums
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.candidates import given_candidates
from nexus_core.host.host import Host
from nexus_core.host.implementation import describe
from nexus_core.host.inspection import faults, idle, implementations
from nexus_core.host.policy import PluginPolicy
from nexus_core.testing.dialects import try_dialects
from nexus_core.testing.samples import sample_context, sample_record, sample_thread
from nexus_core.testing.trees import write_files
from nexus_core.tokens.memory import RememberingCounter
from nexus_core.values.layer import Layer
from nexus_core.values.loaded import Loaded
from nexus_core.values.message import Message
from nexus_core.values.request import Request
from nexus_core.values.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.host.registry import Registry
    from nexus_core.testing.dialects import Tried
    from nexus_core.values.budget import Truncation
    from nexus_core.values.command import Command
    from nexus_core.values.events import Problem

_SAMPLE = {
    "home/NEXUS.md": "The user's own text.\n",
    "company/.nexus3/NEXUS.md": "The company's text.\n",
    "company/project/.nexus3/NEXUS.md": "The project's text.\n",
    "company/project/README.md": "# Project\n",
}


def check_plugin(plugin: object, *, model: str = "") -> list[str]:
    """Everything that is wrong with a plugin, each finding a sentence; an empty list means none.

    The plugin's hooks are called on a small tree in a temporary directory, each of them twice, because the same
    question must get the same answer. A token counter is tried with the first name that it accepts: of `model`, the
    plugin's own `nexus_models`, the texts in the code of its hook, and the models that Nexus knows.

    Args:
        plugin: The module or object with the hooks.
        model: A model that the plugin counts tokens for; "" to look for one.
    """
    findings = list(faults(plugin)) or idle(plugin)
    if not findings:
        with tempfile.TemporaryDirectory() as scratch:
            # Resolved, because some systems reach their temporary directory through a link.
            findings = list(_check_answers(plugin, Path(scratch).resolve(), model))
    return findings


def _check_answers(plugin: object, root: Path, model: str) -> Iterator[str]:
    problems: list[Problem] = []
    request = _sample_request(write_files(root, _SAMPLE))
    host = Host(given_candidates([plugin]), PluginPolicy(), report=problems.append)
    try:
        first, second = (ask_every_hook(host, request, list_model_names(plugin, model)) for _ in range(2))
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
            yield f"{hook}: the same question got two different answers"
    if "nexus_token_counter" in implementations(plugin) and first["nexus_token_counter"] is None and not problems:
        refused = f"it answered None for {model!r}" if model else "it answered None for every model that was tried"
        yield f"nexus_token_counter: {refused}; name one that it counts for with --model or check_plugin(…, model=…)"
    commands: list[Command] = first["nexus_commands"]  # type: ignore[assignment]
    for command in commands:
        yield from _check_target(command)
    tried: list[Tried] = first["nexus_dialects"]  # type: ignore[assignment]
    for each in tried:
        yield from (f"nexus_dialects: {fault}" for fault in each.faults)


def list_model_names(plugin: object, model: str = "") -> list[str]:
    """Return names of models to try a plugin's token counter with, those that it should accept first.

    Args:
        plugin: The plugin.
        model: The only name to try, if the caller knows one.
    """
    if model:
        return [model]
    hooks = implementations(plugin)
    if "nexus_token_counter" not in hooks:
        return []
    return [*_names_in_code(hooks["nexus_token_counter"]), "", *_bundled_models()]


def _names_in_code(function: Callable[..., object]) -> list[str]:
    """Return the texts that a function compares with: its constants, and those of its module that it names."""
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


def _bundled_models() -> list[str]:
    host = Host(BUNDLED, PluginPolicy(disabled=frozenset(each.name for each in BUNDLED if each.name != "models")))
    return [name.rstrip("*-") for name in host.models()]


def ask_every_hook(host: Host, request: Request, models: Sequence[str] = ()) -> dict[str, object]:
    """The answers of a host's plugins to every hook of the contract, on one request.

    Args:
        host: The plugins.
        request: The request.
        models: Names to ask for a token counter with, until one is accepted; those of `nexus_models` come first.
    """
    layers, skipped = host.layers(request)
    # Layers of the sample itself, for plugins that read layers but find none.
    sample = [
        Layer("global", request.home, "global"),
        Layer("local", request.cwd / ".nexus3", "local", root=request.cwd),
    ]
    configs = [host.layer_config(layer, request) for layer in (*layers, *sample)]
    texts = [host.layer_texts(layer, Settings()) for layer in (*layers, *sample)]
    loaded = Loaded(layers=tuple(layers), texts=tuple(text for found, _ in texts for text in found))
    registry, roles = host.commands(), host.roles()
    host.assembled(sample_context(request))
    host.recorded(*sample_record())
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
        "nexus_truncations": _choose_by_each(host.truncations()),
        "nexus_compaction_plan": host.compaction_plan(*sample_thread()),
        "nexus_summarisers": list(host.summarisers(loaded)),
        "nexus_ledger": _describe_ledger(host, f"sqlite:///{request.home / 'ledger.db'}"),
        "nexus_assembled": None,
        "nexus_recorded": None,
        "nexus_diagnose": host.diagnose(request, loaded),
    }


def _describe_counter(host: Host, names: Sequence[str]) -> tuple[str, str, bool, int, int] | None:
    """Return the first name that is accepted, and what its counter says; None if none is accepted."""
    own = [] if len(names) == 1 else [(each.name.rstrip("*-"), each.encoding) for each in host.models().values()]
    for name, encoding in [*own, *((name, "") for name in names)]:
        found = host.token_counter(name, encoding)
        if found is not None:
            counter = RememberingCounter(found[0], plugin=found[1])
            message = Message("user", "Why not?")
            return name, counter.name, counter.exact, counter.count("Why?"), counter.count_messages([message])
        if any(problem.hook == "nexus_token_counter" for problem in host.problems):
            break  # it accepted the name, and answered wrongly
    return None


def _choose_by_each(truncations: Registry[Truncation]) -> list[tuple[str, list[slice]]]:
    """By the name of each, which of five groups it keeps when there is room for two."""
    sample = RunningSums([100] * 5)
    return [(name, ask_truncation(truncations.get(name), sample, 200)) for name in truncations]


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
        raise PluginError(f"its ledger {describe(error)}", plugin=plugin, hook="nexus_ledger") from error
    return answer


def _sample_request(root: Path) -> Request:
    return Request(cwd=root / "company/project", home=root / "home", defaults=defaults_directory())


def _check_target(command: Command) -> Iterator[str]:
    module, _, attribute = command.target.partition(":")
    try:
        app = getattr(import_module(module), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a stranger's module may do anything when imported
        yield f"nexus_commands: {command.target} cannot be imported: it {describe(error)}"
        return
    if type(app).__name__ != "Typer":  # by name, because Typer is imported by the command line only
        yield f"nexus_commands: {command.target} is of type {type(app).__name__}, expected a typer.Typer"

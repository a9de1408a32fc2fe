"""Holds a plugin against the contract: its names, its signatures, and its answers on a small sample tree."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import NexusError, PluginError
from nexus_core.files.places import defaults_directory
from nexus_core.history.asking import ask_truncation
from nexus_core.history.sums import RunningSums
from nexus_core.host.candidates import given_candidates
from nexus_core.host.host import Host
from nexus_core.host.implementation import describe
from nexus_core.host.inspection import faults, idle
from nexus_core.host.policy import PluginPolicy
from nexus_core.testing.dialects import try_dialects
from nexus_core.testing.samples import sample_context, sample_record, sample_thread
from nexus_core.testing.trees import write_files
from nexus_core.tokens.memory import RememberingCounter
from nexus_core.values.layer import Layer
from nexus_core.values.loaded import Loaded
from nexus_core.values.message import Message
from nexus_core.values.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def check_plugin(plugin: object) -> list[str]:
    """Everything that is wrong with a plugin, each finding a sentence; an empty list means none.

    The plugin's hooks are called on a small tree in a temporary directory, each of them twice, because the same
    question must get the same answer.
    """
    findings = list(faults(plugin)) or idle(plugin)
    if not findings:
        with tempfile.TemporaryDirectory() as scratch:
            # Resolved, because some systems reach their temporary directory through a link.
            findings = list(_check_answers(plugin, Path(scratch).resolve()))
    return findings


def _check_answers(plugin: object, root: Path) -> Iterator[str]:
    problems: list[Problem] = []
    request = _sample_request(write_files(root, _SAMPLE))
    host = Host(given_candidates([plugin]), PluginPolicy(), report=problems.append)
    try:
        first, second = ask_every_hook(host, request), ask_every_hook(host, request)
    except PluginError as error:
        yield f"{error.hook}: {error.what}"
        return
    except NexusError as error:
        yield f"refused the sample tree: {error.what}"
        return
    for problem in problems:
        yield f"{problem.hook}: {problem.message}"
    for hook, answer in first.items():
        if answer != second[hook]:
            yield f"{hook}: the same question got two different answers"
    commands: list[Command] = first["nexus_commands"]  # type: ignore[assignment]
    for command in commands:
        yield from _check_target(command)
    tried: list[Tried] = first["nexus_dialects"]  # type: ignore[assignment]
    for each in tried:
        yield from (f"nexus_dialects: {fault}" for fault in each.faults)


def ask_every_hook(host: Host, request: Request) -> dict[str, object]:
    """The answers of a host's plugins to every hook of the contract, on one request."""
    layers, skipped = host.layers(request)
    # Layers of the sample itself, for plugins that read layers but find none.
    sample = [
        Layer("global", request.home, "global"),
        Layer("local", request.cwd / ".nexus3", "local", root=request.cwd),
    ]
    configs = [host.layer_config(layer, request) for layer in (*layers, *sample)]
    texts = [host.layer_texts(layer) for layer in (*layers, *sample)]
    loaded = Loaded(layers=tuple(layers), texts=tuple(text for found, _ in texts for text in found))
    registry, roles = host.commands(), host.roles()
    host.assembled(sample_context(request))
    host.recorded(*sample_record())
    return {
        "nexus_commands": [registry.get(name) for name in registry],
        "nexus_init_files": [host.init_files("local"), host.init_files("global")],
        "nexus_settings": host.settings(),
        "nexus_merge_policies": host.merge_policies(),
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
        "nexus_token_counter": [_describe_counter(host, model) for model in ("", "gpt-4o")],
        "nexus_truncations": _choose_by_each(host.truncations()),
        "nexus_compaction_plan": host.compaction_plan(*sample_thread()),
        "nexus_summarisers": list(host.summarisers(loaded)),
        "nexus_ledger": _describe_ledger(host, f"sqlite:///{request.home / 'ledger.db'}"),
        "nexus_assembled": None,
        "nexus_recorded": None,
        "nexus_diagnose": host.diagnose(request, loaded),
    }


def _describe_counter(host: Host, model: str) -> tuple[str, bool, int, int] | None:
    answer = host.token_counter(model, "")
    if answer is None:
        return None
    counter = RememberingCounter(answer)
    return counter.name, counter.exact, counter.count("Why?"), counter.count_messages([Message("user", "Why not?")])


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
        module = type(ledger).__module__
        raise PluginError(f"its ledger {describe(error)}", plugin=module, hook="nexus_ledger") from error
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

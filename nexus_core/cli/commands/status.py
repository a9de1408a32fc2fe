"""`nexus status`, which is also `nexus` alone: a directory in ten lines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from nexus_core.cli.commands.doctor import find_problems
from nexus_core.cli.context import is_user_directory, load_readable_layers
from nexus_core.cli.model_window import open_model_window
from nexus_core.cli.options import (
    BriefOption,
    JsonOption,
    RequireTrustedOption,
)
from nexus_core.files.places import user_home
from nexus_core.layers.agent_profiles import PROFILES
from nexus_core.layers.agent_settings import find_agent_homes
from nexus_core.layers.agent_view import read_agent_view
from nexus_core.text.console import format_count
from nexus_core.text.safety import shorten
from nexus_core.trust.report import is_waiting
from nexus_core.types.messages import Message
from nexus_core.types.prompt import merge_section_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.request.static_context import StaticContext
    from nexus_core.text.console import ConsoleStyle
    from nexus_core.types.layers import LayerText
    from nexus_core.types.plugins import Finding

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus\n  nexus -C services/auth status --json --brief")
def status(
    ctx: typer.Context,
    json: JsonOption = False,
    brief: BriefOption = False,
    require_trusted: RequireTrustedOption = False,
) -> None:
    """Summarize this directory in ten lines."""
    print_status(ctx.obj, json=json, brief=brief, require_trusted=require_trusted)


def print_status(cli: CliContext, *, json: bool, brief: bool, require_trusted: bool = False) -> None:
    """Print what an agent reads here, what it may do, and what to look at."""
    with cli.nexus(warn=False) as nexus:  # what is wrong with plugins is among the findings
        picture = DirectoryStatus(nexus)
    cli.review(picture.loaded, require_trusted=require_trusted, warn=False)
    if json:
        cli.console.json({"schema": 1, **(picture.numbers() if brief else picture.to_json())})
    elif brief:
        cli.console.text(picture.line())
    else:
        rows = picture.rows()
        styles: list[ConsoleStyle] = [
            "yellow" if name == "Warnings" and picture.findings else "plain" for name, _ in rows
        ]
        cli.console.table(rows, styles=styles)


MAX_NAME_CHARACTERS = 40
_URGENT_CODES = (
    "trust-store",
    "unapproved",
    "shadowed-server",
    "hidden-characters",
    "protected-setting",
    "looser-permission",
    "near-cap",
)
_SERVER_STATUS_WORDS = {"not approved": "not approved", "enabled": "on", "disabled": "off", "denied": "denied"}


class DirectoryStatus:
    """Summary of a directory: prompt, permissions, plugins and findings.

    Attributes:
        loaded: The loaded layers.
        findings: What is wrong with it, the urgent first.
    """

    def __init__(self, nexus: Nexus) -> None:
        from nexus_core.request.static_context import build_static_context

        self.loaded, unreadable = load_readable_layers(nexus)
        self._unreadable = len(unreadable)
        self._context: StaticContext = build_static_context(
            nexus.host, [(nexus.request(), self.loaded)], {"permissions": (), "tools": ()}
        )
        problems = [*unreadable, *find_problems(nexus, self.loaded)]
        self.findings: list[Finding] = sorted((each for each in problems if not each.is_note), key=_rank_urgency)
        homes = find_agent_homes(nexus.cwd)
        self._others = {name: read_agent_view(name, nexus.cwd, homes, nested=False).texts for name in PROFILES}
        self._plugins = nexus.plugins
        self._home = nexus.home
        self._is_users_own = is_user_directory(nexus)
        self._characters = len(self._context.system_prompt)
        self._counter = open_model_window(nexus, self.loaded.settings).counter
        # As in a request, so that `nexus context` and `nexus assemble` show the same number.
        prompt = [Message("system", self._context.system_prompt)] if self._context.system_prompt else []
        self._tokens = self._counter.count_messages(prompt)

    def to_json(self) -> dict[str, object]:
        """Return all of it, for programs."""
        loaded = self.loaded
        return {
            "directory": str(self._context.cwd),
            "home": str(self._home),
            "layers": [
                {
                    "name": layer.name,
                    "directory": str(layer.directory),
                    "characters": _count_characters(loaded.texts_of(layer)),
                }
                for layer in loaded.layers
            ],
            "instructions": [str(text.path) for text in loaded.texts],
            "other_agents": {name: [str(text.path) for text in texts] for name, texts in self._others.items()},
            "sections": [section.title for section in self._context.sections],
            "prompt_characters": self._characters,
            "prompt_tokens_estimate": self._tokens,
            "counter": self._counter.name,
            "exact": self._counter.exact,
            "error": self._counter.error,
            "servers": [
                {
                    "name": server.config.name,
                    "status": server.status,
                    "layer": server.origin,
                    "shadows": str(server.shadows) if server.shadows else None,
                }
                for server in loaded.servers
            ],
            "model": loaded.settings.model_id() or None,
            "permission_level": self._level,
            "memory": self._has_memory,
            "plugins_active": [plugin.name for plugin in self._plugins if plugin.status == "active"],
            "plugins_inactive": [f"{each.name} ({each.status})" for each in self._plugins if each.status != "active"],
            "facts": merge_section_data(self._context.sections),
            "warnings": [str(finding) for finding in self.findings],
            "next": [command for command, _ in self._next()],
        }

    def numbers(self) -> dict[str, object]:
        """Return all counts as JSON."""
        return {
            "directory": str(self._context.cwd),
            "layers": len(self.loaded.layers),
            "instructions": len(self.loaded.texts),
            "prompt_tokens_estimate": self._tokens,
            "servers": {status.replace(" ", "_"): self._count(status) for status in _SERVER_STATUS_WORDS},
            "facts": merge_section_data(self._context.sections),
            "warnings": self._codes(),
        }

    def line(self) -> str:
        """Return the counts in one line."""
        servers = len(self.loaded.servers)
        unapproved = self._count("not approved")
        return ", ".join(
            (
                format_count(len(self.loaded.layers), "layer"),
                self._prompt_size,
                format_count(servers, "server") + (f" ({unapproved} not approved)" if unapproved else ""),
                format_count(len(self.findings), "warning"),
            )
        )

    def rows(self) -> list[tuple[str, str]]:
        """Ten lines for a person, each with its heading."""
        loaded = self.loaded
        sizes = [(layer.name, _count_characters(loaded.texts_of(layer))) for layer in loaded.layers]
        layers = [f"{shorten(name, MAX_NAME_CHARACTERS)} ({size:,})" for name, size in sizes if size]
        model = shorten(loaded.settings.model_id() or "none set", MAX_NAME_CHARACTERS)
        return [
            ("Directory", _shorten_path(self._context.cwd)),
            ("Prompt", f"{self._prompt_size} ({self._characters:,} characters), by {self._counter.name}"),
            ("Layers", f"{_list_last(layers, 4)}; in characters" if layers else "none"),
            ("Reads", _list_last([self._name(text) for text in loaded.texts], 4)),
            ("Other agents", "; ".join(self._list_other_agents())),
            ("MCP servers", "; ".join(self._servers()) or "none"),
            ("Settings", f"model: {model}; permission level: {self._level}{'; memory: on' * self._has_memory}"),
            ("Warnings", _list_first((f"{number} {code}" for code, number in self._codes().items()), 3)),
            *zip(("Next", ""), (f"{command:<21}{what}" for command, what in self._next()), strict=True),
        ]

    def _list_other_agents(self) -> Iterator[str]:
        """Yield the files that other agents read, agents with the same files together, those with none last."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, texts in self._others.items():
            groups.setdefault(tuple(map(self._name, texts)), []).append(PROFILES[name].agent)
        for files, agents in sorted(groups.items(), key=lambda item: not item[0]):
            yield f"{', '.join(agents)}: {_list_first(files, 2)}"

    def _servers(self) -> Iterator[str]:
        for status, word in _SERVER_STATUS_WORDS.items():
            names = [
                shorten(server.config.name, MAX_NAME_CHARACTERS) + (", which hides your own" if server.shadows else "")
                for server in self.loaded.servers
                if server.status == status
            ]
            if names:
                yield f"{len(names)} {word} ({_list_first(names, 3)})"

    @property
    def _prompt_size(self) -> str:
        """The tokens of the prompt, whether they are sure, and the number of files that are missing."""
        error = f" ±{self._counter.error * 100:.0f} %" if self._counter.error else ""
        missing = f" without {format_count(self._unreadable, 'unreadable file')}" if self._unreadable else ""
        return f"{'' if self._counter.exact else 'about '}{format_count(self._tokens, 'token')}{error}{missing}"

    @property
    def _level(self) -> str:
        return str(self.loaded.settings.get("permissions.level", "trusted"))

    @property
    def _has_memory(self) -> bool:
        return self.loaded.settings.get("memory.enabled") is True

    def _count(self, status: str) -> int:
        return sum(server.status == status for server in self.loaded.servers)

    def _name(self, text: LayerText) -> str:
        if text.layer is not None and text.layer.scope == "defaults":
            return f"{text.path.name} (default)"
        return _shorten_path(text.path, self._context.cwd)

    def _codes(self) -> dict[str, int]:
        """Number of findings by code, the urgent ones first."""
        numbers: dict[str, int] = {}
        for finding in self.findings:
            numbers[finding.code] = numbers.get(finding.code, 0) + 1
        return numbers

    def _next(self) -> list[tuple[str, str]]:
        """Return the two commands that are most worth trying here."""
        init, speakers = ("nexus init", {"local", "ancestor"})
        if self._is_users_own:
            init, speakers = ("nexus init --global", {"global"})
        is_instructed = any(
            text.purpose == "instructions" and text.layer is not None and text.layer.scope in speakers
            for text in self.loaded.texts
        )
        worth = [
            (
                "nexus trust status",
                "what the project wants to start, and waits for you",
                any(map(is_waiting, self.loaded.active)),
            ),
            ("nexus doctor", "the warnings, with what to do about them", bool(self._codes().keys() - {"unapproved"})),
            (init, "write down what an agent should know here", not is_instructed),
            ("nexus show", "the whole system prompt", True),
            ("nexus layers --all", "every place searched, and why it contributed nothing", True),
        ]
        return [(command, what) for command, what, is_worth in worth if is_worth][:2]


def _rank_urgency(finding: Finding) -> int:
    return _URGENT_CODES.index(finding.code) if finding.code in _URGENT_CODES else len(_URGENT_CODES)


def _count_characters(texts: Iterable[LayerText]) -> int:
    return sum(len(text.text) for text in texts)


def _shorten_path(path: Path, cwd: Path | None = None) -> str:
    """Return the shortest path of a file as seen from `cwd`."""
    names = [str(path)]
    home = user_home()
    if path.is_relative_to(home):
        names.append(str("~" / path.relative_to(home)))
    if cwd is not None:
        names.append(os.path.relpath(path, cwd))
    return min(names, key=len)


def _list_last(names: Sequence[str], limit: int) -> str:
    """Return the last of some names, which are those of what is nearest to the work."""
    rest = len(names) - limit
    return (f"{rest} more, " if rest > 0 else "") + ", ".join(names[-limit:]) or "none"


def _list_first(names: Iterable[str], limit: int) -> str:
    shown: Sequence[str] = list(names)
    rest = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {rest} more" if rest > 0 else "") or "none"

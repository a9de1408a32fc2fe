"""What there is to say about a directory: in ten lines, in one, in numbers, and all of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core.cli.doctor import examine
from nexus_core.cli.measure import open_measure
from nexus_core.cli.shell import is_users_own
from nexus_core.files.places import user_home
from nexus_core.layers.agent_settings import find_agent_homes
from nexus_core.layers.profiles import PROFILES, read_as
from nexus_core.text.console import counted
from nexus_core.text.visible import shortened
from nexus_core.trust.mentioning import is_waiting
from nexus_core.values.message import Message
from nexus_core.values.section import gather_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.assembly.static_context import StaticContext
    from nexus_core.nexus import Nexus
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import LayerText
    from nexus_core.values.loaded import Loaded

LONGEST_NAME = 40
_URGENT = (
    "trust-store",
    "unapproved",
    "shadowed-server",
    "hidden-characters",
    "protected-setting",
    "looser-permission",
    "near-cap",
)
_SERVER_STATUS = {"not approved": "not approved", "enabled": "on", "disabled": "off", "denied": "denied"}


class Picture:
    """What an agent reads in a directory, what it may do there, and what to look at.

    Attributes:
        loaded: What was loaded.
        findings: What is wrong with it, the urgent first.
    """

    def __init__(self, nexus: Nexus) -> None:
        self._context: StaticContext = nexus.static_context()
        self.loaded: Loaded = self._context.loaded
        self.findings: list[Finding] = sorted(
            (each for each in examine(nexus, self.loaded) if not each.is_note), key=_urgency
        )
        homes = find_agent_homes(nexus.cwd)
        self._others = {name: read_as(name, nexus.cwd, homes, nested=False).texts for name in PROFILES}
        self._plugins = nexus.plugins
        self._home = nexus.home
        self._is_users_own = is_users_own(nexus)
        self._characters = len(self._context.system)
        self._counter = open_measure(nexus, self.loaded.settings).counter
        # As in a request, so that `nexus context` and `nexus assemble` show the same number.
        prompt = [Message("system", self._context.system)] if self._context.system else []
        self._tokens = self._counter.count_messages(prompt)

    def facts(self) -> dict[str, object]:
        """All of it, for programs."""
        loaded = self.loaded
        return {
            "directory": str(self._context.cwd),
            "home": str(self._home),
            "layers": [
                {"name": layer.name, "directory": str(layer.directory), "characters": _size(loaded.texts_of(layer))}
                for layer in loaded.layers
            ],
            "instructions": [str(text.path) for text in loaded.texts],
            "other_agents": {name: [str(text.path) for text in texts] for name, texts in self._others.items()},
            "sections": [section.title for section in self._context.sections],
            "prompt_characters": self._characters,
            "prompt_tokens_estimate": self._tokens,
            "counter": self._counter.name,
            "exact": self._counter.exact,
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
            "plugins_active": [plugin.name for plugin in self._plugins if plugin.status == "active"],
            "plugins_inactive": [f"{each.name} ({each.status})" for each in self._plugins if each.status != "active"],
            "facts": gather_data(self._context.sections),
            "warnings": [str(finding) for finding in self.findings],
            "next": [command for command, _ in self._next()],
        }

    def numbers(self) -> dict[str, object]:
        """How many there are of everything, for programs."""
        return {
            "directory": str(self._context.cwd),
            "layers": len(self.loaded.layers),
            "instructions": len(self.loaded.texts),
            "prompt_tokens_estimate": self._tokens,
            "servers": {status.replace(" ", "_"): self._count(status) for status in _SERVER_STATUS},
            "facts": gather_data(self._context.sections),
            "warnings": self._codes(),
        }

    def line(self) -> str:
        """The same in words."""
        servers = len(self.loaded.servers)
        unapproved = self._count("not approved")
        return ", ".join(
            (
                counted(len(self.loaded.layers), "layer"),
                self._prompt_size,
                counted(servers, "server") + (f" ({unapproved} not approved)" if unapproved else ""),
                counted(len(self.findings), "warning"),
            )
        )

    def rows(self) -> list[tuple[str, str]]:
        """Ten lines for a person, each with its heading."""
        loaded = self.loaded
        sizes = [(layer.name, _size(loaded.texts_of(layer))) for layer in loaded.layers]
        layers = [f"{shortened(name, LONGEST_NAME)} ({size:,})" for name, size in sizes if size]
        others = [f"{name.capitalize()}: {_listed(map(self._name, texts), 2)}" for name, texts in self._others.items()]
        model = shortened(loaded.settings.model_id() or "none set", LONGEST_NAME)
        return [
            ("Directory", _short(self._context.cwd)),
            ("Prompt", f"{self._prompt_size} ({self._characters:,} characters), by {self._counter.name}"),
            ("Layers", f"{_nearest(layers, 4)}; in characters" if layers else "none"),
            ("Reads", _nearest([self._name(text) for text in loaded.texts], 4)),
            ("Other agents", "; ".join(others)),
            ("MCP servers", "; ".join(self._servers()) or "none"),
            ("Settings", f"model: {model}; permission level: {self._level}"),
            ("Warnings", _listed((f"{number} {code}" for code, number in self._codes().items()), 3)),
            *zip(("Next", ""), (f"{command:<21}{what}" for command, what in self._next()), strict=True),
        ]

    def _servers(self) -> Iterator[str]:
        for status, word in _SERVER_STATUS.items():
            names = [
                shortened(server.config.name, LONGEST_NAME) + (", which hides your own" if server.shadows else "")
                for server in self.loaded.servers
                if server.status == status
            ]
            if names:
                yield f"{len(names)} {word} ({_listed(names, 3)})"

    @property
    def _prompt_size(self) -> str:
        """The tokens of the prompt, and whether they are sure."""
        return f"{'' if self._counter.exact else 'about '}{counted(self._tokens, 'token')}"

    @property
    def _level(self) -> str:
        return str(self.loaded.settings.get("permissions.level", "trusted"))

    def _count(self, status: str) -> int:
        return sum(server.status == status for server in self.loaded.servers)

    def _name(self, text: LayerText) -> str:
        if text.layer is not None and text.layer.scope == "defaults":
            return f"{text.path.name} (default)"
        return _short(text.path, self._context.cwd)

    def _codes(self) -> dict[str, int]:
        """How many findings there are of each kind, the urgent ones first."""
        numbers: dict[str, int] = {}
        for finding in self.findings:
            numbers[finding.code] = numbers.get(finding.code, 0) + 1
        return numbers

    def _next(self) -> list[tuple[str, str]]:
        """The two commands that are most worth trying here."""
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
            ("nexus layers", "every place that was looked at, and why it says nothing", True),
        ]
        return [(command, what) for command, what, is_worth in worth if is_worth][:2]


def _urgency(finding: Finding) -> int:
    return _URGENT.index(finding.code) if finding.code in _URGENT else len(_URGENT)


def _size(texts: Iterable[LayerText]) -> int:
    return sum(len(text.text) for text in texts)


def _short(path: Path, cwd: Path | None = None) -> str:
    """The shortest way to name a file for somebody who is in `cwd`."""
    names = [str(path)]
    home = user_home()
    if path.is_relative_to(home):
        names.append(str("~" / path.relative_to(home)))
    if cwd is not None:
        names.append(os.path.relpath(path, cwd))
    return min(names, key=len)


def _nearest(names: Sequence[str], limit: int) -> str:
    """The last of some names, which are those of what is nearest to the work."""
    rest = len(names) - limit
    return (f"{rest} more, " if rest > 0 else "") + ", ".join(names[-limit:]) or "none"


def _listed(names: Iterable[str], limit: int) -> str:
    shown: Sequence[str] = list(names)
    rest = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {rest} more" if rest > 0 else "") or "none"

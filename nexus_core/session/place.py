"""What a session needs of the Nexus it belongs to."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from nexus_core.tokens.counters import open_counter, open_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nexus_core.host.host import Host
    from nexus_core.tokens.memory import RememberingCounter
    from nexus_core.values.budget import Truncation
    from nexus_core.values.counting import Model
    from nexus_core.values.ledger import Ledger
    from nexus_core.values.settings import Settings

RESULT_TOKENS = 8000
"""A longer result of a tool is sent in part, unless `truncation.tool_result_tokens` says otherwise."""


class Place:
    """Where a session lives.

    Args:
        cwd: The directory the agent works in.
        host: The plugins.
        ledger: Opens the ledger, or gives the one that is open.
        settings: Loads the settings; asked once.
        system: Loads the system prompt; asked for every epoch.
    """

    def __init__(
        self,
        *,
        cwd: Path,
        host: Host,
        ledger: Callable[[], Ledger],
        settings: Callable[[], Settings],
        system: Callable[[], str],
    ) -> None:
        self.cwd = cwd
        self.host = host
        self.system = system
        self._open_ledger = ledger
        self._load_settings = settings
        self._models: dict[str, Model] = {}

    @property
    def ledger(self) -> Ledger:
        """Where conversations are kept."""
        return self._open_ledger()

    @cached_property
    def settings(self) -> Settings:
        """What the user and the project set."""
        return self._load_settings()

    @cached_property
    def truncation(self) -> Truncation:
        """What chooses among messages when not all fit."""
        return self.host.truncations().get(str(self.settings.get("truncation.strategy", "oldest_first")))

    @property
    def result_tokens(self) -> int:
        """A longer result of a tool is sent in part."""
        return self.number("truncation.tool_result_tokens", RESULT_TOKENS)

    def counter(self, model: str) -> RememberingCounter:
        """Who counts for a model."""
        return open_counter(model, host=self.host, settings=self.settings)

    def model(self, name: str) -> Model:
        """What is known of a model."""
        if name not in self._models:
            self._models[name] = open_model(name, host=self.host, settings=self.settings)
        return self._models[name]

    def number(self, setting: str, default: int) -> int:
        """A setting that is a number."""
        value = self.settings.get(setting, default)
        return value if isinstance(value, int) else default

"""Settings that name something a plugin offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import ConfigError, Nexus, hookimpl
from nexus_core.plugin import Truncation


class Newest:
    @hookimpl
    def nexus_truncations(self) -> list[Truncation]:
        return [Truncation("newest_only", lambda _groups, _budget: [slice(-1, None)])]


def project(directory: Path, settings: str) -> Path:
    (directory / ".nexus3").mkdir(parents=True)
    (directory / ".nexus3/config.json").write_text(settings, encoding="utf-8")
    return directory


@pytest.mark.acceptance("B-20")
@pytest.mark.parametrize("group", ["truncation", "context"])
def test_a_truncation_that_nobody_offers_is_an_error_at_its_line(nexus_home: Path, tmp_path: Path, group: str) -> None:
    key = "strategy" if group == "truncation" else "truncation_strategy"
    work = project(tmp_path / "work", f'{{\n  "{group}": {{\n    "{key}": "oldest-first"\n  }}\n}}')

    with Nexus(work, home=nexus_home) as nexus, pytest.raises(ConfigError) as caught:
        nexus.load()

    assert f"{group}.{key}: unknown truncation 'oldest-first'; did you mean 'oldest_first'?" in str(caught.value)
    assert "Line 3" in str(caught.value)


def test_a_truncation_of_a_plugin_can_be_set(nexus_home: Path, tmp_path: Path) -> None:
    work = project(tmp_path / "work", '{"truncation": {"strategy": "newest_only"}}')

    with Nexus(work, home=nexus_home, plugins=[Newest()]) as nexus:
        assert nexus.load().settings.get("truncation.strategy") == "newest_only"

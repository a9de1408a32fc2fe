"""A checkout installed in place works like the wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.packaging.conftest import Environment, MakeEnvironment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def editable(make_environment: MakeEnvironment, copied_checkout: Path) -> Environment:
    """Nexus, installed in place."""
    return make_environment("--editable", copied_checkout)


def test_an_editable_installation_finds_the_defaults_of_the_checkout(
    editable: Environment, copied_checkout: Path
) -> None:
    defaults = (copied_checkout / "defaults/NEXUS.md").read_text(encoding="utf-8")

    prompt = editable.prompt()

    assert defaults.strip() in prompt


def test_bundled_plugins_are_active_in_an_editable_installation(
    editable: Environment, bundled_statuses: dict[str, str]
) -> None:
    rows = editable.plugins()

    assert {name: row["status"] for name, row in rows.items()} == bundled_statuses

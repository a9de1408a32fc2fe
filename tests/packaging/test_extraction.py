"""A bundled plugin has no privileges: it works as a stranger's distribution, beside a core that has never heard of it.

Once with the core installed as a wheel, once in place: the two spread the namespace `nexus_plugins` differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.packaging.conftest import Environment, MakeEnvironment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["wheel", "editable"])
def extracted(
    request: pytest.FixtureRequest,
    make_environment: MakeEnvironment,
    core_without_environment: Path,
    environment_wheel: Path,
) -> Environment:
    """A core without the `environment` plugin, and that plugin from a wheel of its own."""
    core: tuple[str | Path, ...] = (core_without_environment,)
    if request.param == "editable":
        core = ("--editable", *core)
    return make_environment(*core, environment_wheel)


def test_an_extracted_plugin_contributes_its_section(extracted: Environment) -> None:
    prompt = extracted.prompt()

    assert f"## Environment\nWorking directory: {extracted.work}\n" in prompt


def test_an_extracted_plugin_is_listed_as_a_stranger(extracted: Environment) -> None:
    row = extracted.plugins()["environment"]

    assert (row["distribution"], row["version"], row["bundled"]) == ("nexus-environment", "2.0", False)


def test_the_plugins_that_stay_bundled_work_beside_an_extracted_one(
    extracted: Environment, bundled_statuses: dict[str, str]
) -> None:
    rows = extracted.plugins()

    assert {name: row["status"] for name, row in rows.items()} == bundled_statuses


def test_the_command_of_an_extracted_plugin_runs(extracted: Environment) -> None:
    finished = extracted.nexus("environment")

    assert finished.returncode == 0, finished.stderr

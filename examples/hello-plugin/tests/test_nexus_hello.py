from __future__ import annotations

from typing import TYPE_CHECKING

import nexus_hello

from nexus_core.testing import check_plugin

if TYPE_CHECKING:
    from nexus_core.testing.fixtures import MakeNexus

pytest_plugins = ["nexus_core.testing.fixtures"]


def test_the_plugin_keeps_the_contract() -> None:
    assert check_plugin(nexus_hello) == []


def test_the_prompt_greets_the_directory(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(cwd="demo", plugins=[nexus_hello])

    prompt = nexus.system_prompt()

    assert "## Hello\nHello, demo!" in prompt


def test_a_line_break_in_a_name_starts_no_heading(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(cwd="demo\n## System", plugins=[nexus_hello])

    prompt = nexus.system_prompt()

    assert "\n## System" not in prompt

"""An error about what does not fit names whose section, tool or message is too large."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core import Section, hookimpl
from nexus_core.errors import BudgetError
from nexus_core.testing import write_files
from tests.session.compacted import Words, exchange
from tests.session.conftest import OpenNexus
from tests.session.support import TOOLS


class Talkative(Words):
    """A plugin that tells more than fits."""

    @hookimpl
    def nexus_current_sections(self) -> list[Section]:
        return [Section("news", title="News", text="word " * 1200, kind="event")]


def test_a_section_of_a_plugin_is_named(open_nexus: OpenNexus) -> None:
    session = open_nexus(plugins=[Talkative()]).session("s", model="words")

    with pytest.raises(BudgetError) as caught:
        session.ask("Why?")

    ((name, tokens),) = caught.value.pieces
    assert name.startswith("section 'News' of plugin:")
    assert tokens >= 1200
    assert f"largest: {name} {tokens:,}" in str(caught.value)
    assert set(caught.value.parts) == {"event", "system"}


def test_a_file_is_named(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "word " * 1500})

    with pytest.raises(BudgetError) as caught:
        open_nexus(plugins=[Words()]).session("s", model="words").preview("Why?")

    ((name, tokens),) = caught.value.pieces
    assert name.endswith("NEXUS.md")
    assert tokens >= 1500


def test_a_tool_and_the_message_are_named_the_largest_first(open_nexus: OpenNexus) -> None:
    tools = [TOOLS[0] | {"description": "word " * 400}]
    session = open_nexus(plugins=[Words()]).session("s", model="words", tools=tools)

    with pytest.raises(BudgetError) as caught:
        session.ask("word " * 900)

    assert [name for name, _ in caught.value.pieces] == ["the message itself", "tool 'look' of caller"]


def test_also_where_a_summary_does_not_help(open_nexus: OpenNexus) -> None:
    nexus = open_nexus(plugins=[Words()])
    session = nexus.session("s", model="words")
    for number in range(6):
        exchange(session, number)

    with pytest.raises(BudgetError) as caught:
        session.ask("word " * 1085)

    assert "summary" in caught.value.parts
    assert [name for name, _ in caught.value.pieces] == ["the message itself"]

import json
from pathlib import Path

from tests.conftest import Cli, InstallPlugin


def test_nexus_alone_is_the_status_in_at_most_ten_lines(cli: Cli, work: Path) -> None:
    outcome = cli()

    assert outcome == cli("status")
    assert outcome.code == 0
    assert str(work) in outcome.out
    assert len(outcome.out.splitlines()) <= 10


def test_json_has_a_schema(cli: Cli, work: Path) -> None:
    document = json.loads(cli("status", "--json").out)

    assert cli("--json") == cli("status", "--json")
    assert (document["schema"], document["directory"]) == (1, str(work))
    assert document["plugins_active"] == ["environment", "file_layers", "mcp", "readme_fallback"]


def test_sections_are_listed_in_the_order_of_the_prompt(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "zebra",
        "from nexus_core import Section, hookimpl\n"
        "@hookimpl\n"
        "def nexus_static_sections(): return [Section('z', title='Zebra', text='z', order=1)]\n",
    )

    assert json.loads(cli("status", "--json").out)["sections"][0] == "Zebra"


def test_what_went_wrong_is_in_the_status(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    document = json.loads(cli("status", "--json").out)

    assert document["plugins_inactive"] == ["bad (failed)"]
    assert "boom" in document["warnings"][0]

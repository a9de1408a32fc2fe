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

    assert (document["schema"], document["directory"]) == (1, str(work))
    assert document["plugins_active"] == ["environment", "file_layers"]


def test_what_went_wrong_is_in_the_status(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    document = json.loads(cli("status", "--json").out)

    assert document["plugins_inactive"] == ["bad (failed)"]
    assert "boom" in document["warnings"][0]

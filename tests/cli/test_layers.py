import json
from pathlib import Path

from nexus_core.files.places import defaults_directory
from nexus_core.testing import write_files
from tests.conftest import Cli


def test_every_layer_has_a_row(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "hi"})

    lines = cli("layers").out.partition("\n\n")[0].splitlines()

    assert lines[0].split() == ["LAYER", "DIRECTORY", "TEXTS", "FOUND", "BY"]
    assert [line.split()[0] for line in lines[1:]] == ["defaults", "global", "local"]
    assert lines[2].split() == ["global", str(nexus_home), "-", "file_layers"]
    assert "NEXUS.md (2 characters)" in lines[3]


def test_every_place_that_was_looked_at_in_vain_is_listed_with_the_reason(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": " ", ".nexus3/config.json": ""})

    rows = cli("layers", "--all").out.partition("\n\n")[2].splitlines()

    assert rows[0].split() == ["SKIPPED", "BECAUSE", "PLACE"]
    assert any(row.split() == ["blank", str(work / "NEXUS.md")] for row in rows)
    assert any(row.split() == ["not", "there", str(work / ".nexus3/mcp.json")] for row in rows)


def test_places_that_are_not_there_are_counted_and_not_listed(cli: Cli, work: Path) -> None:
    write_files(work, {"NEXUS.md": " ", ".nexus3/config.json": ""})

    everything, outcome = cli("layers", "--all"), cli("layers")

    rows = outcome.out.partition("\n\n")[2].splitlines()
    missing = everything.out.count("not there")
    assert any(row.split() == ["blank", str(work / "NEXUS.md")] for row in rows)
    assert "not there" not in outcome.out
    assert outcome.err == f"({missing} more places searched, not there; --all lists them)\n"
    assert everything.err == ""


def test_table_of_skipped_places_is_left_out_if_nothing_is_skipped_there(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "hi"})

    assert "SKIPPED" not in cli("layers").out


def test_the_defaults_are_where_they_are(cli: Cli) -> None:
    row = next(line for line in cli("layers").out.splitlines() if line.startswith("defaults"))
    (defaults, *_) = json.loads(cli("layers", "--json").out)["layers"]

    assert row.split()[1] == str(defaults_directory())
    assert defaults["project"] == str(defaults_directory())


def test_json_says_the_same(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "hi"})

    document = json.loads(cli("layers", "--json").out)

    assert document["schema"] == 1
    assert document["layers"][-1] == {
        "name": "local",
        "scope": "local",
        "directory": f"{work}/.nexus3",
        "project": str(work),
        "plugin": "file_layers",
        "texts": [{"path": f"{work}/.nexus3/NEXUS.md", "purpose": "instructions", "characters": 2}],
    }
    place = {"path": f"{work}/README.md", "line": None, "layer": "local", "plugin": "readme_fallback"}
    assert {**place, "reason": "not there", "is_mistake": False} in document["skipped"]


def test_a_part_of_a_file_that_is_not_used_is_listed_with_its_line(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": {},\n "inputs": []}'})
    path = f"{work}/.nexus3/mcp.json"

    rows = cli("layers").out.partition("\n\n")[2].splitlines()
    skipped = json.loads(cli("layers", "--json").out)["skipped"]

    assert any(row.split() == ["unknown", "key", "'inputs'", f"{path}:2"] for row in rows)
    place = {"path": path, "line": 2, "layer": "local", "plugin": "mcp"}
    assert {**place, "reason": "unknown key 'inputs'", "is_mistake": True} in skipped


def test_files_of_one_name_are_told_apart_by_their_path(cli: Cli, work: Path) -> None:
    write_files(work, {"AGENTS.md": "top", "web/AGENTS.md": "web", "api/AGENTS.md": "api"})

    out = cli("layers", "--as", "cline").out

    shown = [f"{name} (3 characters)" for name in ("AGENTS.md", "api/AGENTS.md", "web/AGENTS.md")]
    assert ", ".join(shown) in out

import json
from pathlib import Path

from nexus_core.testing import write_files
from tests.conftest import Cli


def test_every_layer_has_a_row(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "hi"})

    lines = cli("layers").out.splitlines()

    assert lines[0].split() == ["LAYER", "DIRECTORY", "TEXTS", "FOUND", "BY"]
    assert [line.split()[0] for line in lines[1:]] == ["defaults", "global", "local"]
    assert lines[2].split() == ["global", str(nexus_home), "-", "file_layers"]
    assert "NEXUS.md (2 characters)" in lines[3]


def test_json_says_the_same(cli: Cli, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "hi"})

    document = json.loads(cli("layers", "--json").out)

    assert document["schema"] == 1
    assert document["layers"][-1] == {
        "name": "local",
        "scope": "local",
        "directory": f"{work}/.nexus3",
        "plugin": "file_layers",
        "texts": [{"path": f"{work}/.nexus3/NEXUS.md", "purpose": "instructions", "characters": 2}],
    }

"""Malformed settings of every kind, through a whole command: a typed error in one shape, soon, in little memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from nexus_core import ConfigError
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import ROOT, Cli

MEBIBYTE = 1024 * 1024
SYNTAX = "Fix the JSON syntax error and try again."
SAVE = "Save the file as UTF-8 and try again."
LATIN = "; the file looks like Latin-1 or Windows-1252"


class Kind(NamedTuple):
    content: bytes
    place: str
    message: str
    closing: str = SYNTAX


KINDS = {
    "a word": Kind(b'{\n "a": yes}', "2:7", "Expecting value"),
    "an unquoted key": Kind(b"{\n a: 1}", "2:2", "Expecting property name enclosed in double quotes"),
    "an end too soon": Kind(b'{\n "a": ', "2:7", "Expecting value"),
    "more after the end": Kind(b"{}\n}", "2:1", "Extra data"),
    "NaN": Kind(b'{\n "a": NaN}', "2:7", "Expecting value"),
    "Infinity": Kind(b'{\n "a": Infinity}', "2:7", "Expecting value"),
    "-Infinity": Kind(b'{\n "a": -Infinity}', "2:7", "Expecting value"),
    "a number out of range": Kind(b'{\n "a": 1e999}', "2:7", "Number out of range"),
    "an integer out of range": Kind(b'{"a": ' + b"9" * 5000 + b"}", "1:7", "Number out of range"),
    "a key twice": Kind(b'{"a": 1,\n "a": 2}', "2:2", "Duplicate key 'a', already on line 1"),
    "a key twice, once escaped": Kind(b'{"a": 1,\n "\\u0061": 2}', "2:2", "Duplicate key 'a', already on line 1"),
    "a lone surrogate": Kind(b'{\n "a": "\\ud800"}', "2:8", "Lone surrogate in \\uXXXX escape"),
    "a lone low surrogate": Kind(b'{\n "a": "\\uDC00"}', "2:8", "Lone surrogate in \\uXXXX escape"),
    "a surrogate in bytes": Kind(
        b'{\n "a": "\xed\xa0\x80"}', "2:8", f"Byte 0xed at offset 9 is not UTF-8{LATIN}", SAVE
    ),
    "65 levels": Kind(b'{"a":' * 65 + b"1" + b"}" * 65, "1:321", "Nested deeper than 64 levels"),
    "a bomb of arrays": Kind(b'{"a": ' + b"[" * (MEBIBYTE - 6), "1:70", "Nested deeper than 64 levels"),
    "a bomb of objects": Kind(b'{"a":' * (MEBIBYTE // 5), "1:321", "Nested deeper than 64 levels"),
    "a bomb of values": Kind(b'{"a": [' + b"0," * 520_000, "1:200004", "More than 100000 values"),
    "UTF-16": Kind(
        '{"a": 1}'.encode("utf-16"), "1:1", "Byte 0xff at offset 0 is not UTF-8; the file looks like UTF-16", SAVE
    ),
    "UTF-16 without a mark": Kind(
        '{"a": 1}'.encode("utf-16-le"), "1:2", "Byte 0x00 at offset 1 is not text; the file looks like UTF-16", SAVE
    ),
    "a mebibyte of UTF-16": Kind(
        ("[" + "1," * (MEBIBYTE // 4 - 2)).encode("utf-16-be"),
        "1:1",
        "Byte 0x00 at offset 0 is not text; the file looks like UTF-16",
        SAVE,
    ),
    "UTF-32": Kind(
        '{"a": 1}'.encode("utf-32"), "1:1", "Byte 0xff at offset 0 is not UTF-8; the file looks like UTF-32", SAVE
    ),
    "Latin-1": Kind(
        '{\n "é": 1}'.encode("latin-1"),
        "2:3",
        f"Byte 0xe9 at offset 4 is not UTF-8{LATIN}",
        SAVE,
    ),
    "a byte order mark before a mistake": Kind(
        b"\xef\xbb\xbf{\n a: 1}", "2:2", "Expecting property name enclosed in double quotes"
    ),
    "two byte order marks": Kind(b"\xef\xbb\xbf\xef\xbb\xbf{}", "1:1", "Expecting value"),
    "a zero byte": Kind(b'{\n "a": "\0"}', "2:8", "Byte 0x00 at offset 9 is not text", "Remove it and try again."),
    "nothing but zero bytes": Kind(
        b"\0" * MEBIBYTE, "1:1", "Byte 0x00 at offset 0 is not text", "Remove it and try again."
    ),
    "too large": Kind(b" " * MEBIBYTE + b"{}", "1:1", "larger than 1 MiB", "Shorten the file and try again."),
    "a control character": Kind(b'{\n "a": "\x01"}', "2:8", "Invalid control character"),
    "a string without an end": Kind(b'{\n "a": "b', "2:7", "Unterminated string"),
    "an escape that is none": Kind(b'{\n "a": "\\x"}', "2:8", "Invalid \\escape"),
}


@pytest.mark.acceptance("F-08", "F-09", "M-02", "B-11", "R10")
@pytest.mark.parametrize("file", ["config.json", "mcp.json"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_of_malformed_file_is_an_error_in_one_shape(
    make_nexus: MakeNexus, tmp_path: Path, file: str, kind: Kind
) -> None:
    path = tmp_path / "work/.nexus3" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(kind.content)

    with pytest.raises(ConfigError) as caught:
        make_nexus().load()

    title, what, *excerpt, closing = str(caught.value).split("\n\n")
    line, column = kind.place.split(":")
    assert re.fullmatch(f"Configuration Error: Invalid (JSON|encoding) in {re.escape(str(path))}", title)
    assert what == f"  Line {line}, Column {column}: {kind.message}"
    assert closing == kind.closing
    assert caught.value.where == f"{path}:{kind.place}"
    assert [part.count("^") for part in excerpt] == [1] * (kind.message != "larger than 1 MiB")


@pytest.mark.parametrize("file", ["config.json", "mcp.json"])
@pytest.mark.parametrize("layer", ["home/.nexus3", "work/.nexus3", "work/down/.nexus3"])
def test_a_command_prints_the_error_and_nothing_else(cli: Cli, tmp_path: Path, file: str, layer: str) -> None:
    path = tmp_path / layer / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n a: 1}")
    (tmp_path / "work/down").mkdir(exist_ok=True)

    outcome = cli("-C", str(tmp_path / "work/down"), "show")

    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith(f"Configuration Error: Invalid JSON in {path}\n\n  Line 2, Column 2: Expecting ")
    assert outcome.err.endswith(f"\n\n{SYNTAX}\n")


MEASURE = """
import json, sys, time
from pathlib import Path
from nexus_core.cli.run import run

seconds = []
for directory in sys.argv[1:]:
    before = time.process_time()
    code = run(["-C", directory, "show"])
    seconds.append((code, time.process_time() - before))
peak = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({"runs": seconds, "kibibytes": int(peak)}))
"""


@pytest.mark.slow
@pytest.mark.acceptance("F-08")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory was used at most")
@pytest.mark.parametrize("file", ["config.json", "mcp.json"])
def test_every_kind_is_refused_within_a_second_and_100_megabytes(tmp_path: Path, nexus_home: Path, file: str) -> None:
    directories = [tmp_path / str(number) for number in range(len(KINDS))]
    for directory, kind in zip(directories, KINDS.values(), strict=True):
        (directory / ".nexus3").mkdir(parents=True)
        (directory / ".nexus3" / file).write_bytes(kind.content)
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}", "NEXUS_HOME": str(nexus_home), "NEXUS_PLUGINS": "none"}

    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, directories)], env=path, capture_output=True, text=True, check=True
    )

    measured = json.loads(done.stdout)
    assert {code for code, _ in measured["runs"]} == {3}
    assert max(seconds for _, seconds in measured["runs"]) < 1
    assert measured["kibibytes"] * 1024 < 100_000_000
    assert "Traceback" not in done.stderr

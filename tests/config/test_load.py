"""The fast way to the value of a text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import ANY

import pytest

from nexus_core import ConfigError, FileError, Nexus
from nexus_core.config.jsonc import JsonSyntaxError, parse_json
from nexus_core.config.load import (
    EarlySettings,
    JsonDocument,
    JsonValue,
    LineIndex,
    TextPosition,
    parse_plain_json,
    read_early_settings,
    read_json,
    setting_error,
    syntax_error,
)
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from tests.conftest import ROOT, Cli
from tests.timing import YARDSTICK, assert_quick


def test_lines_are_told_apart_by_every_kind_of_line_end_and_nothing_else() -> None:
    lines = LineIndex("a\nb\r\nc\rd\x0b\x0c\x85\u2028e")

    assert [lines.line(number) for number in range(7)] == [None, "a", "b", "c", "d\x0b\x0c\x85\u2028e", None, None]


def test_the_end_of_a_text_has_a_position() -> None:
    assert LineIndex("").position(0) == TextPosition(1, 1)
    assert LineIndex("ab\n").position(3) == TextPosition(2, 1)


# What Python takes and we do not.
REFUSED = [
    "NaN",
    '{"a": -Infinity}',
    "1e999",
    "-1e999",
    "9" * 4001,
    "-" + "9" * 4000,
    '{"a": 1, "a": 1}',
    '{"b": [{"a": 1, "\\u0061": 2}]}',
    '"\\ud800"',
    '"\\uDFFF"',
    '["\\ud800\\ud800"]',
    "[" * 65 + "1" + "]" * 65,
    '{"a":' * 65 + "1" + "}" * 65,
    "[" * 900 + "]" * 900,
    "[" + "0," * 100_000 + "0]",
    "\ufeff{}",
]


@pytest.mark.parametrize("text", REFUSED, ids=[text[:20] for text in REFUSED])
def test_what_the_parser_refuses_is_left_to_it(text: str) -> None:
    with pytest.raises(JsonSyntaxError):
        parse_json(text)

    assert parse_plain_json(text) is None


@pytest.fixture
def long_integers() -> Iterator[None]:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(limit)


@pytest.mark.usefixtures("long_integers")
def test_a_long_integer_is_refused_even_where_python_would_take_it() -> None:
    assert parse_plain_json("9" * 4001) is None


def test_comments_are_left_to_the_parser() -> None:
    assert parse_plain_json('{"a": 1} // one', comments=True) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (
            ' {"a": [1, -2, 0.5, 1e3, true, false, null, "\\u00e9é"]}\r\n',
            {"a": [1, -2, 0.5, 1000.0, True, False, None, "éé"]},
        ),
        ("[" * 64 + "]" * 64, parse_json("[" * 64 + "]" * 64).value),
        ("9" * 4000, 10**4000 - 1),
    ],
)
def test_what_is_plain_is_read_at_once(text: str, value: object) -> None:
    quick = parse_plain_json(text)

    assert quick is not None
    assert quick.value == value


MEBIBYTE = 1024 * 1024
TEXT = '{\n  "name": "café"\n}\n'


def written(root: Path, content: str | bytes) -> Path:
    path = root / "config.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(root: Path, content: str | bytes, *, comments: bool = False, empty: JsonValue = None) -> JsonDocument:
    document = read_json(written(root, content), comments=comments, empty=empty)
    assert document is not None
    return document


def refusal(root: Path, content: str | bytes, *, comments: bool = False) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(root, content, comments=comments)
    return caught.value


def line_of(error: ConfigError) -> str:
    assert error.report is not None
    return error.report.split("\n")[2]


def test_a_document_is_read_with_the_place_of_every_value(tmp_path: Path) -> None:
    document = read(tmp_path, '{\n  "a": [1, 2]\n}\n')

    assert document.value == {"a": [1, 2]}
    assert document.position("/a/1") == TextPosition(2, 12)


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_json(tmp_path / "config.json", empty={}) is None
    assert read_json(tmp_path / "missing" / "config.json", empty={}) is None


@pytest.mark.acceptance("F-10")
@pytest.mark.parametrize("empty", [{}, {"servers": []}])
@pytest.mark.parametrize("content", ["", " ", "\n\n", "\r\n\t", "\ufeff", "\ufeff\n"])
def test_a_blank_file_holds_what_was_said_to_be_empty(tmp_path: Path, content: str, empty: JsonValue) -> None:
    document = read(tmp_path, content, empty=empty)

    assert document.value == empty
    assert document.position("/servers") == TextPosition(1, 1)


@pytest.mark.acceptance("F-10")
def test_a_file_of_comments_is_blank_where_they_are_allowed(tmp_path: Path) -> None:
    assert read(tmp_path, "// nothing yet\n", comments=True, empty={}).value == {}
    assert line_of(refusal(tmp_path, "// nothing yet\n")) == "  Line 1, Column 1: Comments are not allowed in JSON"


def test_a_comment_without_end_is_shown_where_it_starts(tmp_path: Path) -> None:
    error = refusal(tmp_path, "\n  /* nothing yet\n", comments=True)

    assert line_of(error) == "  Line 2, Column 3: Unterminated comment"


def test_comments_are_allowed_only_where_asked_for(tmp_path: Path) -> None:
    content = '{"a": 1, // one\n}'

    assert read(tmp_path, content, comments=True).value == {"a": 1}
    assert line_of(refusal(tmp_path, content)) == "  Line 1, Column 10: Comments are not allowed in JSON"


@pytest.mark.acceptance("F-08", "F-09", "C-04")
def test_a_syntax_error_is_reported_in_the_shape_of_the_specification() -> None:
    path = Path("/home/user/projects/.nexus3/config.json")
    lines = LineIndex("\n" * 13 + '  "model": "claude-3",\n  trailing_comma: true,\n}\n')

    error = syntax_error(path, lines, TextPosition(15, 3), "Expecting property name enclosed in double quotes")

    assert error.report == (
        "Configuration Error: Invalid JSON in /home/user/projects/.nexus3/config.json\n"
        "\n"
        "  Line 15, Column 3: Expecting property name enclosed in double quotes\n"
        "\n"
        '  14 |   "model": "claude-3",\n'
        "  15 |   trailing_comma: true,\n"
        "         ^\n"
        "  16 | }\n"
        "\n"
        "Fix the JSON syntax error and try again."
    )
    assert str(error) == error.report
    assert error.where == f"{path}:15:3"


@pytest.mark.acceptance("F-08", "F-09")
def test_a_malformed_file_is_refused_with_its_path_line_column_and_lines(tmp_path: Path) -> None:
    error = refusal(tmp_path, '{\n  "model": "claude-3",\n  trailing_comma: true,\n}\n')

    assert error.where == f"{tmp_path / 'config.json'}:3:3"
    assert error.report == (
        f"Configuration Error: Invalid JSON in {tmp_path / 'config.json'}\n\n"
        "  Line 3, Column 3: Expecting property name enclosed in double quotes\n\n"
        '  2 |   "model": "claude-3",\n  3 |   trailing_comma: true,\n        ^\n  4 | }\n\n'
        "Fix the JSON syntax error and try again."
    )


@pytest.mark.parametrize("content", ['{\n  "key": "secret"\n  x\n}', b'{\n  "key": "secret \xff"\n}', b'"secret\0"'])
def test_no_word_is_shown_of_a_file_that_must_not_be_quoted(tmp_path: Path, content: str | bytes) -> None:
    path = written(tmp_path, content)

    with pytest.raises(ConfigError) as quoted:
        read_json(path, empty={})
    with pytest.raises(ConfigError) as withheld:
        read_json(path, empty={}, quote=False)

    title, what, excerpt, closing = str(quoted.value).split("\n\n")
    assert str(withheld.value).split("\n\n") == [title, what, ANY, closing]
    assert "secret" in excerpt
    assert "secret" not in f"{withheld.value.__dict__}"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ('{\n"a": x,\n"mcp_servers": [{"env": "secret"}]\n}', ["  1 | {", '  2 | "a": x,', "           ^"]),
        ('{\n"mcp_servers": [{"env": "secret"}],\n"a": x\n}', []),
        ('{\n"mcpServers": {"env": "secret"},\n"a": x\n}', []),
        ('{\n"mcp_servers": [{"env": "secret" x}]\n}', []),
    ],
)
def test_no_line_from_the_first_mention_of_servers_on_is_shown_of_what_is_no_json(
    tmp_path: Path, content: str, shown: list[str]
) -> None:
    error = refusal(tmp_path, content)

    assert str(error).split("\n")[4:-2] == shown
    assert "secret" not in f"{error.__dict__}"


@pytest.mark.acceptance("B-10")
def test_blank_lines_at_the_beginning_of_a_file_count(tmp_path: Path) -> None:
    error = refusal(tmp_path, '\n\n\n{\n  "a": 1,\n  b: 2\n}')

    assert error.where == f"{tmp_path / 'config.json'}:6:3"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_and_line_ends_do_not_move_a_place(tmp_path: Path, end: str, mark: str) -> None:
    assert refusal(tmp_path, mark + end.join(["[", "1,", " x]"])).where == f"{tmp_path / 'config.json'}:3:2"
    assert refusal(tmp_path, f"{mark}x").where == f"{tmp_path / 'config.json'}:1:1"


def test_a_path_and_a_message_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[2J\n.json"

    error = setting_error(
        path, LineIndex("1"), TextPosition(1, 1), title=f"Bad {path}", message="\u202eno", closing="Fix it."
    )

    assert error.report is not None
    assert error.report.split("\n")[0] == f"Configuration Error: Bad {tmp_path}/\\x1b[2J\\n.json"
    assert error.report.split("\n")[2] == "  Line 1, Column 1: \\u202eno"


def test_a_wrong_setting_is_reported_in_the_same_shape() -> None:
    error = setting_error(
        Path("/p/config.json"),
        LineIndex('{\n  "depth": "two"\n}'),
        TextPosition(2, 3),
        title="Invalid setting in /p/config.json",
        message="depth must be a whole number",
        closing="Change the setting and try again.",
    )

    assert error.report == (
        "Configuration Error: Invalid setting in /p/config.json\n\n"
        "  Line 2, Column 3: depth must be a whole number\n\n"
        '  1 | {\n  2 |   "depth": "two"\n        ^\n  3 | }\n\n'
        "Change the setting and try again."
    )
    assert (error.what, error.where) == ("depth must be a whole number", "/p/config.json:2:3")
    assert error.hint == "Change the setting and try again."


@pytest.mark.acceptance("B-11")
@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        (TEXT.encode("latin-1"), "2:15", "Byte 0xe9 at offset 16 is not UTF-8; the file looks like Latin-1"),
        (TEXT.replace("é", "\u2019").encode("cp1252"), "2:15", "Byte 0x92 at offset 16 is not UTF-8"),
        (TEXT.encode("utf-16"), "1:1", "Byte 0xff at offset 0 is not UTF-8; the file looks like UTF-16"),
        (
            b"\xfe\xff" + TEXT.encode("utf-16-be"),
            "1:1",
            "Byte 0xfe at offset 0 is not UTF-8; the file looks like UTF-16",
        ),
        (TEXT.encode("utf-16-le"), "1:2", "Byte 0x00 at offset 1 is not text; the file looks like UTF-16"),
        (TEXT.encode("utf-16-be"), "1:1", "Byte 0x00 at offset 0 is not text; the file looks like UTF-16"),
        (TEXT.encode("utf-32"), "1:1", "Byte 0xff at offset 0 is not UTF-8; the file looks like UTF-32"),
        (TEXT.encode("utf-32-le"), "1:2", "Byte 0x00 at offset 1 is not text; the file looks like UTF-32"),
        (TEXT.encode("utf-32-be"), "1:1", "Byte 0x00 at offset 0 is not text; the file looks like UTF-32"),
        ("// 日\n1".encode("utf-16-le"), "1:2", "Byte 0x00 at offset 1 is not text; the file looks like UTF-16"),
    ],
)
def test_another_encoding_is_named_with_the_first_bad_byte(
    tmp_path: Path, content: bytes, place: str, words: str
) -> None:
    error = refusal(tmp_path, content)

    assert error.where == f"{tmp_path / 'config.json'}:{place}"
    assert words in line_of(error)
    assert error.hint == "Save the file as UTF-8 and try again."


@pytest.mark.acceptance("B-11")
def test_a_bad_byte_is_shown_in_its_line(tmp_path: Path) -> None:
    error = refusal(tmp_path, '{\n  "é": "café"\n}\n'.encode() + b'"\xc3\xa9\xff"\n')

    assert error.report == (
        f"Configuration Error: Invalid encoding in {tmp_path / 'config.json'}\n\n"
        "  Line 4, Column 3: Byte 0xff at offset 23 is not UTF-8\n\n"
        '  3 | }\n  4 | "é\\xff"\n        ^\n\n'
        "Save the file as UTF-8 and try again."
    )


def test_the_offset_of_a_bad_byte_counts_the_byte_order_mark(tmp_path: Path) -> None:
    error = refusal(tmp_path, b'\xef\xbb\xbf"\xe9"')

    assert "Byte 0xe9 at offset 4" in line_of(error)
    assert error.where == f"{tmp_path / 'config.json'}:1:2"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{\n  "é": "a\x00b"\n}\n', "Line 2, Column 10: Byte 0x00 at offset 12 is not text"),
        ('"a\x00"', "Line 1, Column 3: Byte 0x00 at offset 2 is not text"),
        ('"\x00"', "Line 1, Column 2: Byte 0x00 at offset 1 is not text"),
        ("1\n\x00\x00\x00\x00", "Line 2, Column 1: Byte 0x00 at offset 2 is not text"),
    ],
)
def test_a_nul_byte_in_a_file_that_is_utf_8_is_named(tmp_path: Path, content: str, message: str) -> None:
    error = refusal(tmp_path, content)

    assert line_of(error) == f"  {message}"
    assert error.hint == "Remove it and try again."


def test_a_surrogate_in_the_bytes_of_a_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, b'"\xed\xa0\x80"').where == f"{tmp_path / 'config.json'}:1:2"


def test_a_file_of_a_mebibyte_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    assert read(tmp_path, " " * (MEBIBYTE - 1) + "1").value == 1
    assert str(refusal(tmp_path, " " * MEBIBYTE + "1")) == (
        f"Configuration Error: Invalid JSON in {tmp_path / 'config.json'}\n\n"
        "  Line 1, Column 1: larger than 1 MiB\n\n"
        "Shorten the file and try again."
    )


def test_a_plain_file_is_read_without_our_own_parser_until_a_place_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, '{"context": {"ancestor_depth": 2}, "names": ["é", "\\u00e9"], "on": true}')
    program = (
        "import pathlib, sys; from nexus_core.config.load import read_json\n"
        "document = read_json(pathlib.Path(sys.argv[1]), empty={})\n"
        "print(document.value['names'], 'nexus_core.config.jsonc' in sys.modules)\n"
        "print(tuple(document.position('/names')), 'nexus_core.config.jsonc' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True, cwd=ROOT)

    assert done.stdout.splitlines() == ["['é', 'é'] False", "(1, 36) True"]


def test_a_file_is_parsed_once_however_many_places_are_asked_for(tmp_path: Path) -> None:
    document = read(tmp_path, '{"a": {"b": 1},\n"c": 2}')

    assert document.root is document.root


def test_what_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    os.mkfifo(path)

    with pytest.raises(FileError, match="not a regular file"):
        read_json(path, empty={})


@pytest.mark.parametrize(
    "content",
    [
        b"[" * MEBIBYTE,
        b'{"a":' * (MEBIBYTE // 5),
        b'"' * MEBIBYTE,
        b"\n" * (MEBIBYTE - 1) + b"x",
        b"[0," * (MEBIBYTE // 3),
        b"\xff" * MEBIBYTE,
        b"\x00" * MEBIBYTE,
        b"a\x00" * (MEBIBYTE // 2),
        b"\t" * (MEBIBYTE - 1) + b"x",
        b"[" + b'"",' * (MEBIBYTE // 3 - 1),
    ],
    ids=["arrays", "objects", "quotes", "lines", "nested", "no_text", "zeros", "utf_16", "tabs", "values"],
)
def test_a_bomb_is_refused_quickly_with_a_short_report(tmp_path: Path, content: bytes) -> None:
    errors: list[ConfigError] = []

    assert_quick(lambda: errors.append(refusal(tmp_path, content)), times=150)

    assert 0 < len(errors[0].report or "") < 1500


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

def measure(work):
    before = time.process_time()
    return work(), time.process_time() - before

yardstick, directories = sys.stdin.read(), sys.argv[1:]
run(["-C", directories[0], "show"])  # so that importing modules does not count
runs = []
for directory in directories:
    known = min(measure(lambda: json.loads(yardstick))[1] for _ in range(3))
    code, seconds = measure(lambda: run(["-C", directory, "show"]))
    runs.append((code, seconds / known))
peak = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({"runs": runs, "kibibytes": int(peak)}))
"""


@pytest.mark.slow
@pytest.mark.acceptance("F-08")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory was used at most")
@pytest.mark.parametrize("file", ["config.json", "mcp.json"])
def test_every_kind_is_refused_quickly_and_within_100_megabytes(tmp_path: Path, nexus_home: Path, file: str) -> None:
    directories = [tmp_path / str(number) for number in range(len(KINDS))]
    for directory, kind in zip(directories, KINDS.values(), strict=True):
        (directory / ".nexus3").mkdir(parents=True)
        (directory / ".nexus3" / file).write_bytes(kind.content)
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}", "NEXUS_HOME": str(nexus_home), "NEXUS_PLUGINS": "none"}

    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, directories)],
        input=YARDSTICK,
        env=path,
        capture_output=True,
        text=True,
        check=True,
    )

    measured = json.loads(done.stdout)
    assert {code for code, _ in measured["runs"]} == {3}
    assert max(ratio for _, ratio in measured["runs"]) < 150
    assert measured["kibibytes"] * 1024 < 100_000_000
    assert "Traceback" not in done.stderr


def read_early(root: Path, own: str | None = None, project: str | None = None) -> EarlySettings:
    files = {"home/config.json": own, "work/config.json": project}
    write_files(root, {name: text for name, text in files.items() if text is not None})
    return read_early_settings(root / "home", root / "work")


def test_without_files_the_defaults_hold(tmp_path: Path) -> None:
    assert read_early(tmp_path) == EarlySettings(ancestor_depth=2, disabled_plugins=())


@pytest.mark.parametrize("text", ["", " \n", "{}"])
def test_an_empty_file_is_an_empty_configuration(tmp_path: Path, text: str) -> None:
    assert read_early(tmp_path, own=text, project=text) == EarlySettings()


def test_the_depth_of_the_project_beats_the_users_own(tmp_path: Path) -> None:
    own, project = '{"context": {"ancestor_depth": 5}}', '{"context": {"ancestor_depth": 0}}'

    assert read_early(tmp_path, own=own, project=project).ancestor_depth == 0


def test_the_users_own_depth_holds_where_the_project_has_none(tmp_path: Path) -> None:
    assert read_early(tmp_path, own='{"context": {"ancestor_depth": 5}}', project="{}").ancestor_depth == 5


def test_a_project_cannot_disable_plugins(tmp_path: Path) -> None:
    project = '{"plugins": {"disabled": ["environment"]}}'

    assert read_early(tmp_path, project=project).disabled_plugins == ()


def test_the_user_can_disable_plugins(tmp_path: Path) -> None:
    assert read_early(tmp_path, own='{"plugins": {"disabled": ["git"]}}').disabled_plugins == ("git",)


@pytest.mark.parametrize("depth", ["-1", "11", "true", '"2"', "2.5"])
def test_a_depth_that_is_not_allowed_is_left_to_those_who_check_all_settings(tmp_path: Path, depth: str) -> None:
    own = f'{{"context": {{"ancestor_depth": {depth}}}}}'

    assert read_early(tmp_path, own=own) == EarlySettings()
    with pytest.raises(ConfigError, match=r"context\.ancestor_depth: should be") as caught:
        Nexus(tmp_path, home=tmp_path / "home").load()
    assert caught.value.where == f"{tmp_path}/home/config.json:1:14"


def test_broken_json_is_named_with_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Invalid JSON") as caught:
        read_early(tmp_path, project='{\n  "context": {},\n}')

    assert str(caught.value.where) == f"{tmp_path / 'work/config.json'}:2:16"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"plugins": {"disabled": "git"}}', "must be a list of plugin names"),
        ('{"plugins": {"disabled": [1]}}', "must be a list of plugin names"),
        ("[" * 100_000, "Nested deeper than 64 levels"),
    ],
)
def test_what_is_wrong_is_explained(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_early(tmp_path, own=text)

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest

from nexus_core import ConfigError, FileError
from nexus_core.config.documents import read_document, setting_error, syntax_error
from nexus_core.config.json_document import JsonDocument, JsonValue
from nexus_core.config.lines import Lines, Position
from tests.conftest import ROOT
from tests.timing import seconds

MEBIBYTE = 1024 * 1024
TEXT = '{\n  "name": "café"\n}\n'


def written(root: Path, content: str | bytes) -> Path:
    path = root / "config.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(root: Path, content: str | bytes, *, comments: bool = False, empty: JsonValue = None) -> JsonDocument:
    document = read_document(written(root, content), comments=comments, empty=empty)
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
    assert document.position("/a/1") == Position(2, 12)


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_document(tmp_path / "config.json", empty={}) is None
    assert read_document(tmp_path / "missing" / "config.json", empty={}) is None


@pytest.mark.acceptance("F-10")
@pytest.mark.parametrize("empty", [{}, {"servers": []}])
@pytest.mark.parametrize("content", ["", " ", "\n\n", "\r\n\t", "\ufeff", "\ufeff\n"])
def test_a_blank_file_holds_what_was_said_to_be_empty(tmp_path: Path, content: str, empty: JsonValue) -> None:
    document = read(tmp_path, content, empty=empty)

    assert document.value == empty
    assert document.position("/servers") == Position(1, 1)


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
    lines = Lines("\n" * 13 + '  "model": "claude-3",\n  trailing_comma: true,\n}\n')

    error = syntax_error(path, lines, Position(15, 3), "Expecting property name enclosed in double quotes")

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
        read_document(path, empty={})
    with pytest.raises(ConfigError) as withheld:
        read_document(path, empty={}, quote=False)

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

    error = setting_error(path, Lines("1"), Position(1, 1), title=f"Bad {path}", message="\u202eno", closing="Fix it.")

    assert error.report is not None
    assert error.report.split("\n")[0] == f"Configuration Error: Bad {tmp_path}/\\x1b[2J\\n.json"
    assert error.report.split("\n")[2] == "  Line 1, Column 1: \\u202eno"


def test_a_wrong_setting_is_reported_in_the_same_shape() -> None:
    error = setting_error(
        Path("/p/config.json"),
        Lines('{\n  "depth": "two"\n}'),
        Position(2, 3),
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
        "import pathlib, sys; from nexus_core.config.documents import read_document\n"
        "document = read_document(pathlib.Path(sys.argv[1]), empty={})\n"
        "print(document.value['names'], 'nexus_core.config.json_parser' in sys.modules)\n"
        "print(tuple(document.position('/names')), 'nexus_core.config.json_parser' in sys.modules)"
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
        read_document(path, empty={})


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
def test_a_bomb_is_refused_within_a_second_with_a_short_report(tmp_path: Path, content: bytes) -> None:
    errors: list[ConfigError] = []

    took = seconds(lambda: errors.append(refusal(tmp_path, content)))

    assert took < 1
    assert 0 < len(errors[0].report or "") < 1500

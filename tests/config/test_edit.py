"""What `change_setting` does to files that are odd, and to those of others."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from nexus_core import ConfigError, FileError, UsageError
from nexus_core.config.edit import change_setting, remove_value, set_value
from nexus_core.config.jsonc import JsonSyntaxError, parse_json
from nexus_core.config.load import JsonValue
from tests.timing import assert_linear

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = dedent(
    """\
    {
      "model": "claude-3",
      "context": {
        "depth": 2
      },
      "disabled": ["git", "mcp"]
    }
    """
)
COMMENTED = dedent(
    """\
    // The servers of this project.
    {
      "servers": [ // in order
        "one", // the first
        /* the second */ "two",
        "three" // the third
      ]
      // nothing more
    }
    """
)


def test_a_value_is_replaced_in_place() -> None:
    assert set_value(CONFIG, "/context/depth", 5) == CONFIG.replace("2", "5")


def test_a_value_that_is_there_already_changes_nothing() -> None:
    text = '{"a": [1.50, "\\u0041"], "b": {"c":1}}'

    assert set_value(text, "/a", [1.5, "A"]) == text


def test_true_is_not_one() -> None:
    assert set_value('{"a": 1}', "/a", True) == '{"a": true}'  # noqa: FBT003 - a value like another


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (-0.5, "-0.5"),
        ('é\n"\x7f\u202e', '"é\\n\\"\\u007f\\u202e"'),
        ([], "[]"),
        ({}, "{}"),
        ([1, {"b": 2}], '[1, {"b": 2}]'),
    ],
)
def test_in_a_text_of_one_line_a_value_is_written_in_one_line(value: JsonValue, written: str) -> None:
    assert set_value('{"a": 0}', "/a", value) == f'{{"a": {written}}}'


def test_a_list_of_one_line_stays_in_one_line() -> None:
    edited = set_value(CONFIG, "/disabled", ["git", "mcp", "web"])

    assert edited == CONFIG.replace('"mcp"]', '"mcp", "web"]')


def test_an_item_is_added_to_a_list_of_one_line() -> None:
    edited = set_value(CONFIG, "/disabled/-", "web")

    assert edited == CONFIG.replace('"mcp"]', '"mcp", "web"]')


def test_the_length_of_a_list_is_the_index_of_a_new_item() -> None:
    assert set_value("[1, 2]", "/2", 3) == "[1, 2, 3]"


def test_an_index_replaces_its_item() -> None:
    assert set_value("[1, 2]", "/0", 3) == "[3, 2]"


def test_a_new_member_is_laid_out_like_its_neighbours() -> None:
    edited = set_value(CONFIG, "/context/readme", {"include": True, "names": []})

    assert edited == CONFIG.replace(
        '"depth": 2\n',
        '"depth": 2,\n    "readme": {\n      "include": true,\n      "names": []\n    }\n',
    )


def test_objects_that_are_missing_on_the_way_are_made() -> None:
    edited = set_value(CONFIG, "/plugins/git/depth", 1)

    assert edited == CONFIG.replace(
        '"mcp"]\n',
        '"mcp"],\n  "plugins": {\n    "git": {\n      "depth": 1\n    }\n  }\n',
    )


def test_a_list_that_is_missing_is_made_where_something_is_appended() -> None:
    assert set_value("{}", "/servers/-/name", "one") == ('{\n  "servers": [\n    {\n      "name": "one"\n    }\n  ]\n}')


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("{}", '{\n  "a": 1\n}'),
        ("{ }\n", '{\n  "a": 1\n}\n'),
        ("{\n}\n", '{\n  "a": 1\n}\n'),
        ("{\r\n}", '{\r\n  "a": 1\r\n}'),
        (' {"b": {}}', ' {"b": {}, "a": 1}'),
        ('{ "b": 2 }', '{ "b": 2, "a": 1 }'),
        ('{"b": 2\n}', '{"b": 2,\n  "a": 1\n}'),
        ('{\n"b": 2\n}', '{\n"b": 2,\n"a": 1\n}'),
        ('{\n  "b": 2 }', '{\n  "b": 2,\n  "a": 1 }'),
    ],
)
def test_a_first_and_a_last_member_are_added(text: str, edited: str) -> None:
    assert set_value(text, "/a", 1) == edited


def test_the_style_of_an_empty_object_is_that_of_the_one_around_it() -> None:
    assert set_value('{"a": {}}', "/a/b", 1) == '{"a": {"b": 1}}'
    assert set_value('{\n    "a": {}\n}', "/a/b", 1) == '{\n    "a": {\n        "b": 1\n    }\n}'


@pytest.mark.parametrize("indent", ["\t", " ", "    "])
def test_the_indent_of_the_file_is_kept(indent: str) -> None:
    text = f'{{\n{indent}"a": {{\n{indent * 2}"b": 1\n{indent}}}\n}}\n'

    edited = set_value(text, "/a/c", {"d": 2})

    new = f'{indent * 2}"c": {{\n{indent * 3}"d": 2\n{indent * 2}}}\n'
    assert edited == text.replace('"b": 1\n', f'"b": 1,\n{new}')


def test_windows_line_ends_are_kept() -> None:
    text = CONFIG.replace("\n", "\r\n")

    edited = set_value(text, "/context/names", ["a", {"b": 1}])

    assert edited.count("\n") == edited.count("\r\n") == CONFIG.count("\n") + 6
    assert edited.replace("\r\n", "\n") == set_value(CONFIG, "/context/names", ["a", {"b": 1}])


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n", "  "])
def test_the_end_of_a_file_stays_as_it_is(end: str) -> None:
    assert set_value("[\n  1\n]" + end, "/0", 2) == "[\n  2\n]" + end
    assert set_value("[1]" + end, "", {}) == "{}" + end


def test_a_byte_order_mark_stays() -> None:
    assert set_value('\ufeff{"a": 1}', "/a", 2) == '\ufeff{"a": 2}'
    assert set_value("\ufeff", "/a", 2) == '\ufeff{\n  "a": 2\n}\n'
    assert remove_value('\ufeff{"a": 1}', "/a") == "\ufeff{}"


@pytest.mark.parametrize(
    ("text", "edited"),
    [("", '{\n  "a": {\n    "b": 1\n  }\n}\n'), ("\r\n", '{\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}\r\n')],
)
def test_an_empty_text_becomes_a_document(text: str, edited: str) -> None:
    assert set_value(text, "/a/b", 1) == edited


@pytest.mark.parametrize("text", ["// Nothing yet.\n", "// Nothing yet."])
def test_a_text_of_comments_becomes_a_document_below_them(text: str) -> None:
    assert set_value(text, "/a", 1, comments=True) == '// Nothing yet.\n{\n  "a": 1\n}\n'


def test_a_text_can_be_made_of_one_value() -> None:
    assert set_value("", "", [1]) == "[\n  1\n]\n"


def test_comments_stay_beside_what_they_were_beside_when_something_is_added() -> None:
    edited = set_value(COMMENTED, "/servers/-", "four", comments=True)

    assert edited == COMMENTED.replace('"three" // the third\n', '"three", // the third\n    "four"\n')


def test_a_new_member_goes_below_the_comments_at_the_end() -> None:
    edited = set_value(COMMENTED, "/a", 1, comments=True)

    assert edited == COMMENTED.replace("  ]\n  // nothing more\n", '  ],\n  // nothing more\n  "a": 1\n')


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("[1,]", "[1, 2,]"),
        ("[\n  1,\n]", "[\n  1,\n  2,\n]"),
        ("[\n  1, // one\n]", "[\n  1, // one\n  2,\n]"),
        ("[1 /* one */]", "[1, /* one */ 2]"),
        ("[ /* none */ ]", "[ /* none */\n  2\n]"),
        ("[\n  // none\n]", "[\n  // none\n  2\n]"),
    ],
)
def test_trailing_commas_and_comments_are_kept_when_something_is_appended(text: str, edited: str) -> None:
    assert set_value(text, "/-", 2, comments=True) == edited


@pytest.mark.parametrize(
    ("text", "pointer", "edited"),
    [
        ('{"a": 1, "b": 2, "c": 3}', "/a", '{"b": 2, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', "/b", '{"a": 1, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', "/c", '{"a": 1, "b": 2}'),
        ('{"a":1,"b":2}', "/a", '{"b":2}'),
        ('{"a":1,"b":2}', "/b", '{"a":1}'),
        ('{ "a": 1, "b": 2 }', "/b", '{ "a": 1 }'),
        ('{"a": 1}', "/a", "{}"),
        ('{\n  "a": 1\n}\n', "/a", "{}\n"),
        ("[1, [2, 3], 4]", "/1", "[1, 4]"),
        ("[1, [2, 3], 4]", "/1/0", "[1, [3], 4]"),
        ("[\n  1,\n  2,\n  3\n]", "/0", "[\n  2,\n  3\n]"),
        ("[\n  1,\n  2,\n  3\n]", "/1", "[\n  1,\n  3\n]"),
        ("[\n  1,\n  2,\n  3\n]", "/2", "[\n  1,\n  2\n]"),
        ("[\r\n  1,\r\n  2\r\n]", "/1", "[\r\n  1\r\n]"),
        ("[\n  1,\n  [\n    2\n  ],\n  3\n]", "/1", "[\n  1,\n  3\n]"),
        ("[ 1,\n  2 ]", "/0", "[\n  2 ]"),
    ],
)
def test_a_member_is_removed_with_its_comma_and_its_line(text: str, pointer: str, edited: str) -> None:
    assert remove_value(text, pointer) == edited


@pytest.mark.parametrize(
    ("text", "pointer", "edited"),
    [
        ("[\n  1,\n  2,\n]", "/1", "[\n  1,\n]"),
        ("[1, 2,]", "/1", "[1,]"),
        ("[1,]", "/0", "[]"),
        ("[\n  1, // one\n  2 // two\n]", "/0", "[\n  // one\n  2 // two\n]"),
        ("[\n  1, // one\n  2 // two\n]", "/1", "[\n  1 // one\n  // two\n]"),
        ("[1 /* one */, 2]", "/0", "[/* one */ 2]"),
        ("[1 /* one */, 2]", "/1", "[1 /* one */]"),
        ("[1 , 2]", "/0", "[2]"),
        ("[1 , 2]", "/1", "[1 ]"),
        ("[1 /* one */ , 2]", "/1", "[1 /* one */ ]"),
        ("[\n  // one\n  1\n]", "/0", "[\n  // one\n]"),
        ("[/* one */ 1]", "/0", "[/* one */]"),
    ],
)
def test_comments_stay_when_a_member_is_removed(text: str, pointer: str, edited: str) -> None:
    assert remove_value(text, pointer, comments=True) == edited


@pytest.mark.parametrize(
    ("there", "kind"),
    [('"secret"', "a string"), ("12", "a number"), ("-1", "a number"), ("true", "a boolean"), ("null", "null")],
)
@pytest.mark.parametrize("change", ["set", "remove"])
def test_a_pointer_through_a_scalar_is_refused_with_what_is_there(there: str, kind: str, change: str) -> None:
    text = f'{{"a": {{"b": {there}}}}}'

    with pytest.raises(ValueError, match=f"^'/a/b/c/d' cannot be reached: '/a/b' is {kind}, which") as caught:
        set_value(text, "/a/b/c/d", 1) if change == "set" else remove_value(text, "/a/b/c/d")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("index", ["3", "x", "01", "-1", ""])
def test_what_is_no_place_in_an_array_is_refused(index: str) -> None:
    with pytest.raises(ValueError, match=f"'{index}' is not an index of the array at '/a': use one up to 2, or '-'"):
        set_value('{"a": [1, 2]}', f"/a/{index}", 0)


@pytest.mark.parametrize("pointer", ["/b", "/a/2", "/a/-", "/b/c"])
def test_nothing_cannot_be_removed(pointer: str) -> None:
    with pytest.raises(ValueError, match=f"there is nothing at '{pointer}'"):
        remove_value('{"a": [1, 2]}', pointer)


@pytest.mark.parametrize("text", ["", " \n"])
def test_nothing_can_be_removed_from_a_blank_text(text: str) -> None:
    with pytest.raises(ValueError, match="there is nothing at '/a'"):
        remove_value(text, "/a")


def test_the_whole_document_cannot_be_removed() -> None:
    with pytest.raises(ValueError, match="whole document"):
        remove_value("{}", "")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"\udfff": 1}])
def test_a_value_that_could_not_be_read_again_is_refused(value: JsonValue) -> None:
    with pytest.raises(ValueError, match=r"JSON|Lone surrogate"):
        set_value("{}", "/a", value)


@pytest.mark.parametrize("depth", [64, 100_000])
def test_a_value_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    value: JsonValue = []
    for _ in range(depth):
        value = [value]

    with pytest.raises(ValueError, match=r"(?i)nested"):
        set_value("{}", "/a", value)


@pytest.mark.parametrize("text", ["{", "[1,]", "// a\n{}"])
def test_a_text_that_is_not_json_is_not_touched(text: str) -> None:
    with pytest.raises(JsonSyntaxError):
        set_value(text, "/a", 1)
    with pytest.raises(JsonSyntaxError):
        remove_value(text, "/a")


def test_a_key_is_written_as_json() -> None:
    edited = set_value("{}", '/a~1b~0"\n', 1)

    assert parse_json(edited).value == {'a/b~"\n': 1}


@pytest.mark.slow
def test_a_large_text_is_edited_in_time_in_proportion_to_its_length() -> None:
    def edit(size: int) -> None:
        text = '{"a": [' + ", ".join(["{}"] * size) + "] /*" + " " * 2 * size + "*/ }"
        assert remove_value(set_value(text, "/a/-", 1, comments=True), f"/a/{size}", comments=True) == text

    assert_linear(edit, 5_000, 80_000, times=16)  # a larger text does not fit into the caches of a processor


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".nexus3/config.json"


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(
    "data",
    [
        b'{\r\n  "provider": {"model": "old"}\r\n}\r\n',
        b'\xef\xbb\xbf{"provider": {"model": "old"}}',
        b'{\r"provider": {"model": "old"}}',
        b'{"_note": "\xc3\xa9 \\u00e9", "provider": {"model": "old"}}',
    ],
    ids=["CRLF", "byte order mark", "CR", "escapes"],
)
def test_every_other_byte_stays(path: Path, data: bytes) -> None:
    write(path, data)

    change_setting(path, "provider.model", "new")

    assert path.read_bytes() == data.replace(b"old", b"new")


@pytest.mark.acceptance("T24")
@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize(("own", "modes"), [(True, (0o700, 0o600)), (False, (0o755, 0o644))])
def test_nobody_else_may_write_to_what_is_made(path: Path, own: bool, modes: tuple[int, int]) -> None:
    change_setting(path, "provider.model", "x", own=own)

    assert (mode(path.parent), mode(path)) == modes


def test_a_linked_directory_is_not_written_through(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path.parent.symlink_to(elsewhere)

    with pytest.raises(FileError, match="is a link"):
        change_setting(path, "provider.model", "x")

    assert list(elsewhere.iterdir()) == []


def test_a_file_in_the_place_of_the_directory_is_said(path: Path) -> None:
    path.parent.write_text("x")

    with pytest.raises(FileError, match="not a directory"):
        change_setting(path, "provider.model", "x")


@pytest.mark.parametrize("text", ["[]", "null", '"x"'])
def test_a_file_that_holds_no_object_is_shown(path: Path, text: str) -> None:
    write(path, text.encode())

    with pytest.raises(ConfigError, match="must be a JSON object"):
        change_setting(path, "provider.model", "x")

    assert path.read_text() == text


def test_a_setting_below_a_value_cannot_be_reached(path: Path) -> None:
    write(path, b'{"provider": "x"}')

    with pytest.raises(UsageError, match="'/provider' is a string"):
        change_setting(path, "provider.model", "x")


@pytest.mark.acceptance("T16")
def test_a_file_does_not_become_too_large_to_be_read(path: Path) -> None:
    data = b'{"_note": "' + b"x" * (1024 * 1024 - 20) + b'"}'
    write(path, data)

    with pytest.raises(UsageError, match="larger than 1 MiB"):
        change_setting(path, "provider.model", "x")

    assert path.read_bytes() == data


@pytest.mark.parametrize("key", ["plugins.", "plugins..a", "plugins.a.", "provider.", ""])
def test_a_name_with_nothing_between_two_dots_is_none(path: Path, key: str) -> None:
    with pytest.raises(UsageError, match="unknown setting"):
        change_setting(path, key, "x")


@pytest.mark.parametrize("name", ["a/b", "a~b", "a~1b"])
def test_a_name_may_have_what_means_something_in_a_pointer(path: Path, name: str) -> None:
    change_setting(path, f"plugins.{name}.x", "1")

    assert json.loads(path.read_text()) == {"plugins": {name: {"x": 1}}}


def test_of_many_writers_none_is_lost(path: Path) -> None:
    keys = [f"plugins.p{number}.x" for number in range(24)]

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda key: change_setting(path, key, "1"), keys))

    assert len(json.loads(path.read_text())["plugins"]) == len(keys)
    assert [each.name for each in path.parent.iterdir()] == ["config.json"]

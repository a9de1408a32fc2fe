"""What looks like a fact is one, and ordinary words are none."""

from __future__ import annotations

import pytest

from nexus_core.memory.facts import (
    MAX_FACTS_PER_TEXT,
    find_code,
    find_errors,
    find_facts,
    find_urls,
    parse_identifier,
    parse_path,
)

PATHS = [
    ("src/app/main.py", "src/app/main.py"),
    ("src/app/main.py:42", "src/app/main.py"),
    ("src/app/main.py:42:7", "src/app/main.py"),
    ("tests/test_a.py::test_b", "tests/test_a.py"),
    ("/etc/hosts", "/etc/hosts"),
    ("~/notes.md", "~/notes.md"),
    ("./x/y", "./x/y"),
    ("../lib/z.c.", "../lib/z.c"),
    ("config.yaml", "config.yaml"),
    ("Makefile", "Makefile"),
    ("Dockerfile.prod", "Dockerfile.prod"),
    ("docs/how-to/adopt", "docs/how-to/adopt"),
    ("a/src/app.py", "src/app.py"),
    (r"C:\Users\me\a.txt", r"C:\Users\me\a.txt"),
    ("$HOME/.bashrc", "$HOME/.bashrc"),
]


@pytest.mark.parametrize(("word", "path"), PATHS)
def test_a_path_is_known_by_its_shape(word: str, path: str) -> None:
    assert parse_path(word) == path


UNSPACED = {
    "Chinese": (
        "\u4fee\u6539src/auth.py\u6587\u4ef6\uff0c\u53c2\u89c1https://example.com/7\u3002"
        "\u7ea612.5 ms\u5185\uff0c\u5de5\u5355AUTH-123\uff1b"
    ),
    "Japanese": "src/auth.py\u3092\u76f4\u3059\uff08AUTH-123\uff09\u3002https://example.com/7\u306f12.5 ms\u3067\u3059",
    "Korean": "src/auth.py\ub97c \uace0\uccd0 https://example.com/7\uc5d0\uc11c 12.5 ms\uac00 AUTH-123\uc758",
}


@pytest.mark.parametrize("language", UNSPACED)
def test_facts_are_found_where_no_blank_parts_them_from_the_words_around_them(language: str) -> None:
    assert set(find_facts(UNSPACED[language])) == {
        ("path", "src/auth.py"),
        ("url", "https://example.com/7"),
        ("number", "12.5 ms"),
        ("identifier", "AUTH-123"),
    }


@pytest.mark.parametrize(
    "path", ["src/\u6587\u6863/\u8bf4\u660e.md", "\u8bf4\u660e.md", "/srv/\u6570\u636e/a.csv", "src/gr\u00f6\u00dfe.py"]
)
def test_a_path_may_have_letters_of_any_script(path: str) -> None:
    assert list(find_facts(f"a {path} b")) == [("path", path)]


def test_an_address_may_have_letters_of_any_script_behind_a_slash() -> None:
    assert list(find_urls("https://zh.example.org/\u4e2d\u6587\uff0c")) == ["https://zh.example.org/\u4e2d\u6587"]


def test_a_word_that_begins_like_a_unit_is_none_in_any_language() -> None:
    assert list(find_facts("5 s\u00e9ries, 5 h\u00f4tes")) == []


@pytest.mark.parametrize(
    "word",
    [
        "and/or",
        "N/A",
        "TCP/IP",
        "read/write",
        "2024/01/05",
        "1/2",
        "/help",
        "/",
        "...",
        "e.g.",
        "Node.js",
        "console.log",
        "event.key",
        "1.2.3",
        "i.e.",
        "//",
    ],
)
def test_ordinary_words_are_no_paths(word: str) -> None:
    assert parse_path(word) is None


@pytest.mark.parametrize(
    "word",
    [
        "550e8400-e29b-41d4-a716-446655440000",
        "1a2b3c4",
        "0123456789abcdef0123456789abcdef01234567",
        "sha256:" + "0123456789abcdef" * 4,
        "ABC-123",
        "CVE-2024-12345",
        "ORD-2024-00017",
        "req_01HZX3K9",
        "i-0abc123def",
        "01KA3XJW5C0A9G2Q7V8T4N6M1R",
        "acme/app#12",
        "1.2.3",
        "v2.0.0-rc.1",
        "127.0.0.1:8080",
        "ada@example.com",
        "claude-sonnet-4-20250514",
    ],
)
def test_an_identifier_is_known_by_its_shape(word: str) -> None:
    assert parse_identifier(word) == word


@pytest.mark.parametrize(
    "word", ["UTF-8", "SHA-256", "deadbeef", "1234567", "2024-01-05", "x86_64", "python3", "H2O", "well-known"]
)
def test_ordinary_words_are_no_identifiers(word: str) -> None:
    assert parse_identifier(word) is None


def test_links_end_where_the_sentence_goes_on() -> None:
    text = "See https://a.example/x?y=(1), (https://b.example/q) and [c](https://c.example/r). Then wss://d.example:8443/s!"

    assert list(find_urls(text)) == [
        "https://a.example/x?y=(1)",
        "https://b.example/q",
        "https://c.example/r",
        "wss://d.example:8443/s",
    ]


@pytest.mark.parametrize(
    "number",
    [
        "12.5 ms",
        "3 GB",
        "85 %",
        "85%",
        "1,200 tokens",
        "$12.50",
        "€30",
        "port 5432",
        "-4 °C",
        "3 retries",
        "2x",
        "40 requests per second",
    ],
)
def test_a_number_counts_with_its_unit(number: str) -> None:
    assert ("number", number) in find_facts(f"It took {number}, I think.")


@pytest.mark.parametrize("text", ["call 12 now", "version 3.11", "item 7", "abc12ms", "1.2.3.4 ms-like", "x#12 s"])
def test_a_number_without_a_unit_does_not(text: str) -> None:
    assert [text for kind, text in find_facts(text) if kind == "number"] == []


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: bad thing",
        "java.lang.NullPointerException: x",
        "E   AssertionError: assert 1 == 2",
        "Uncaught TypeError: x is not a function",
        "error[E0308]: mismatched types",
        "src/a.ts(3,1): error TS2345: Argument",
        "fatal: not a git repository",
        "FAILED tests/test_a.py::test_b - KeyError",
        "npm ERR! code ENOENT",
        "bash: foo: command not found",
        "cat: x: No such file or directory",
        "Segmentation fault (core dumped)",
        "thread 'main' panicked: panic: index out of range",
    ],
)
def test_a_line_that_says_what_went_wrong_is_found(line: str) -> None:
    assert list(find_errors(f"running\n{line}\nTraceback (most recent call last):\nok")) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "except ValueError as error:",
        "12: except KeyError:",
        "raise ValueError(x)",
        "class MyError(Exception):",
        "no errors",
        "0 failed",
    ],
)
def test_code_that_deals_with_errors_is_none(line: str) -> None:
    assert list(find_errors(line)) == []


def test_names_between_backticks_count_when_they_look_like_code() -> None:
    text = "`parse_config()` calls `Foo.bar` and `camelCase`, not `the`, `HTTP`, `x` or `src/a.py`; see `std::vector`."

    assert list(find_code(text)) == ["parse_config()", "Foo.bar", "camelCase", "std::vector"]


def test_of_a_long_listing_only_its_beginning_is_taken() -> None:
    listing = "\n".join(f"src/module{number}/file.py" for number in range(1000))

    found = [text for kind, text in find_facts(listing) if kind == "path"]

    assert found == [f"src/module{number}/file.py" for number in range(MAX_FACTS_PER_TEXT)]


def test_each_fact_is_found_once() -> None:
    assert list(find_facts("src/a.py and src/a.py, 3 ms and 3 ms")) == [("number", "3 ms"), ("path", "src/a.py")]

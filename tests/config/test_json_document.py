"""The fast way to the value of a text."""

import sys
from collections.abc import Iterator

import pytest

from nexus_core.config.json_document import quick_json
from nexus_core.config.json_parser import JsonSyntaxError, parse_json

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

    assert quick_json(text) is None


@pytest.fixture
def long_integers() -> Iterator[None]:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(limit)


@pytest.mark.usefixtures("long_integers")
def test_a_long_integer_is_refused_even_where_python_would_take_it() -> None:
    assert quick_json("9" * 4001) is None


def test_comments_are_left_to_the_parser() -> None:
    assert quick_json('{"a": 1} // one', comments=True) is None


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
    quick = quick_json(text)

    assert quick is not None
    assert quick.value == value

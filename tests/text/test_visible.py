import json

import pytest

from nexus_core.plugin import visible, visible_line
from nexus_core.text.visible import shortened, visible_json


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        ("\x1b", "\\x1b"),
        ("\r", "\\x0d"),
        ("\x00", "\\x00"),
        ("\x7f", "\\x7f"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("\u2066", "\\u2066"),
        ("\u2028", "\\u2028"),
        ("\ufeff", "\\ufeff"),
        ("\udc80", "\\udc80"),
        ("\U000e0041", "\\U000e0041"),
        ("\u200b", "\\u200b"),
        ("\u200d", "\\u200d"),
        ("\xad", "\\xad"),
        ("\u3164", "\\u3164"),
        ("\ufe0f", "\\ufe0f"),
        ("\U000e0100", "\\U000e0100"),
    ],
)
def test_a_steering_character_is_written_out(character: str, shown: str) -> None:
    assert visible(f"a{character}b") == f"a{shown}b"


@pytest.mark.parametrize("text", ["a\tb\nc", "naïve", "日本語", "مرحبا", "👩‍💻 ✅", "नमस्ते", "\u200fאב"])
def test_ordinary_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_line_stays_one_line() -> None:
    assert visible_line("a\nb\tc") == "a\\nb\\tc"


def test_a_text_is_shortened_to_what_there_is_room_for_and_says_so() -> None:
    assert shortened("as it is", 8) == "as it is"
    assert shortened("longer than that", 8) == "longer …"
    assert shortened("no room", 0) == "…"


def test_a_json_document_loses_nothing_and_steers_nothing() -> None:
    value = {"text": "\x1b[31m \x9b \u202e \U000e0041 \udc80 \u200b é"}

    document = visible_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(document) == value
    assert not set("\x1b\x9b\u202e\U000e0041\udc80\u200b").intersection(document)

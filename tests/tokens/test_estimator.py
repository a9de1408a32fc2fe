# ruff: noqa: S311 - what is drawn must be the same each time, and no secret
"""Tokens from characters, held against the exact counts of the bundled tables."""

from __future__ import annotations

import json
import sys
from base64 import b32encode
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.context import SimpleTokenCounter, TiktokenCounter
from nexus_core.tokens.estimator import _CLASSES, _LONE_SIGN, _PAIRS, _TO_CLASS, _estimate_beginnings, estimate
from nexus_core.types.budget import ModelCounter
from nexus_core.types.messages import Message

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.txt"), key=lambda path: path.stem)
ENCODINGS = ("cl100k_base", "o200k_base")
ANY_TEXT = st.text(st.characters(), max_size=3000)  # surrogates too


def test_an_estimate_is_at_most_10_percent_low_on_every_class_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for sample in SAMPLES:
        text = sample.read_text(encoding="utf-8")
        exact = [TiktokenCounter(encoding).count(text) for encoding in ENCODINGS]
        rows.append((sample.stem, exact, estimate(text)))

    lines = [f"\n{'text':<10}" + "".join(f"{name:>24}" for name in ENCODINGS) + f"{'estimate':>10}"]
    for name, exact, guess in rows:
        columns = "".join(f"{count:>14,} ({guess / count - 1:+7.1%})" for count in exact)
        lines.append(f"{name:<10}{columns}{guess:>10,}")
    with capsys.disabled():
        sys.stdout.write("\n".join([*lines, ""]))
    assert {"english", "code", "chinese", "japanese", "korean", "russian", "arabic", "json", "base64"} <= {
        name for name, _, _ in rows
    }
    assert [name for name, exact, guess in rows if guess < 0.9 * max(exact)] == []


def sample(name: str) -> str:
    return (Path(__file__).parent / "samples" / f"{name}.txt").read_text(encoding="utf-8")


def letters(characters: str, longest: int = 8) -> str:
    """Words of letters in no order, the same each time."""
    drawn = Random(7)
    return " ".join("".join(drawn.choices(characters, k=drawn.randint(2, longest))) for _ in range(300))


def block(first: int, last: int) -> str:
    """Words of the letters of a script."""
    return letters("".join(chr(code) for code in range(first, last + 1) if category(chr(code))[0] in "LM"))


def drawn_from(characters: str) -> str:
    return "".join(Random(7).choices(characters, k=1500))


def lines(template: str) -> str:
    """A line with numbers, two words and a digest, many times."""
    drawn, words = Random(7), sample("english").split()
    return "\n".join(
        template.format(drawn.randint(0, 9999), drawn.choice(words), sha256(bytes([number])).hexdigest()[:16])
        for number in range(80)
    )


SIGNS = "!?.,;:'\"()[]{}<>/\\|@#$%^&*-_=+~`"
KINDS = {
    "capitals": sample("english").upper(),
    "Cyrillic capitals": sample("russian").upper(),
    "random capitals": letters(ascii_uppercase).replace(" ", ""),
    "words of random capitals": letters(ascii_uppercase),
    "random letters": letters(ascii_lowercase).replace(" ", ""),
    "words of random letters": letters(ascii_lowercase),
    "letters of mixed case": letters(ascii_letters),
    "four capitals": letters("ACGT", 60),
    "base32": b32encode(Random(7).randbytes(3000)).decode(),
    "hex": Random(7).randbytes(2000).hex(),
    "punctuation": letters(SIGNS).replace(" ", ""),
    "punctuation with blanks": " ".join(letters(SIGNS).replace(" ", "")),
    "digits": "".join(Random(7).choices(digits, k=4000)),
    "decimal numbers": lines("{0}.{0:04},-{0}.12,0.{0:04}"),
    "minified JSON": json.dumps([{"id": n, "ok": True, "of": ["a", "b"]} for n in range(200)], separators=(",", ":")),
    "minified JavaScript": lines('function a(b,c){{if(!b.{1}||c===null)return{{d:!0,e:"{1}"}};b[c]+={0}<<2;}}'),
    "minified CSS": lines(".x-{0}{{margin:0 {0}px;color:#{2};display:flex}}").replace("\n", ""),
    "markup": lines('<div class="c{0}"><a href="/p/{0}">{1}</a></div>'),
    "addresses": lines("https://api.example.org/{1}/{0}?q={1}&id={2}"),
    "a log": lines("2026-11-17T08:19:02.{0:04}Z WARN [worker-3] c.e.s.Handler - request {2} took {0}ms for {1}"),
    "SQL": lines("SELECT u.id, COUNT(o.id) FROM users u JOIN orders o ON o.user_id = u.id WHERE u.x > '{0}' LIMIT 5;"),
    "a regular expression": r"^(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.\w+)*|\"(?:[\x01-\x08]|\\)*\")@\d{1,9}$" * 40,
    "LaTeX": lines(r"\frac{{\partial x}}{{\partial y}} = \sum_{{k=0}}^{{\infty}} a_{{k}}^{{{0}}} \cdot \alpha_{{k}}"),
    "a minified header": '!function(e,t){"object"==typeof exports&&"undefined"!=typeof module?t((e=e||self).n={})}'
    * 20,
    "lines of tabs": ("\n" + "\t" * 6 + "}") * 250,
    "control characters": drawn_from("".join(map(chr, range(1, 32)))),
    "colored output": "\x1b[31mred\x1b[0m \x1b[1;32mok\x1b[0m " * 90,
    "stacked marks": "".join(letter + drawn_from("\u0300\u0316\u0336\u0345")[:4] for letter in "hello world " * 50),
    "APL": drawn_from("".join(map(chr, range(0x2336, 0x237B))) + "(){}0 "),
    "emoji with joiners": "👩\u200d👩\u200d👧\u200d👦🏳\ufe0f\u200d🌈👨🏽\u200d💻🧑\u200d🚀❤\ufe0f\u200d🔥" * 60,
    "flags": "🇩🇪🇫🇷🇯🇵🇧🇷🇮🇳🇿🇦" * 80,
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ " * 30,
    "blanks": " " * 999 + "\t" * 999 + "\n" * 999,
    "emoji": "".join(chr(code) for code in range(0x1F300, 0x1F650)),
    "boxes": drawn_from("\u2500\u2502\u250c\u2510\u2514\u2518\u251c\u2524\u252c\u2588"),
    "arrows and quantors": drawn_from("\u2190\u2192\u21d2\u2200\u2203\u2208\u2211\u221e\u2264\u2260"),
    "Amharic": block(0x1200, 0x1357),
    "Armenian": block(0x561, 0x587),
    "Syriac": block(0x710, 0x72F),
    "Thaana": block(0x780, 0x7A5),
    "N'Ko": block(0x7CA, 0x7EA),
    "Gurmukhi": block(0xA05, 0xA4C),
    "Gujarati": block(0xA85, 0xACC),
    "Oriya": block(0xB05, 0xB4C),
    "Telugu": block(0xC05, 0xC4C),
    "Kannada": block(0xC85, 0xCCC),
    "Malayalam": block(0xD05, 0xD4C),
    "Sinhala": block(0xD85, 0xDDF),
    "Lao": block(0xE81, 0xEBD),
    "Tibetan": block(0xF40, 0xF6C),
    "Myanmar": block(0x1000, 0x1050),
    "Georgian": block(0x10D0, 0x10FA),
    "Jamo": block(0x1100, 0x1112),
    "Cherokee": block(0x13A0, 0x13F4),
    "syllabics of Canada": block(0x1401, 0x166C),
    "Runes": block(0x16A0, 0x16EA),
    "Khmer": block(0x1780, 0x17B3),
    "Mongolian": block(0x1820, 0x1877),
    "Tifinagh": block(0x2D30, 0x2D67),
    "Bopomofo": block(0x3105, 0x312F),
    "rare Chinese characters": block(0x3400, 0x4DB4),
    "Yi": block(0xA000, 0xA48C),
    "Javanese": block(0xA984, 0xA9B2),
    "full-width letters": block(0xFF21, 0xFF5A),
    "Gothic": block(0x10330, 0x10349),
    "cuneiform": block(0x12000, 0x12398),
    "mathematical letters": block(0x1D400, 0x1D6A3),
}


@pytest.mark.acceptance("K-03")
@pytest.mark.parametrize("kind", KINDS)
def test_estimate_is_at_most_10_percent_low_on_any_kind_of_text(kind: str) -> None:
    text = KINDS[kind]

    assert estimate(text) >= 0.9 * max(TiktokenCounter(encoding).count(text) for encoding in ENCODINGS)


@pytest.mark.parametrize("name", ["english", "code"])
def test_estimate_is_at_most_15_percent_high_on_prose_and_code(name: str) -> None:
    text = sample(name)

    assert estimate(text) <= 1.15 * min(TiktokenCounter(encoding).count(text) for encoding in ENCODINGS)


@pytest.mark.acceptance("K-03")
@pytest.mark.parametrize("name", ["english", "code"])
def test_prose_and_code_have_4_characters_to_a_token(name: str) -> None:
    text = sample(name)

    assert estimate(text) == -(-len(text) // 4)


@pytest.mark.acceptance("B-18")
@pytest.mark.parametrize(
    "text", ["a" * 400, "x" * 400, "X" * 400, "word " * 80, "The quick brown fox jumps over the lazy dog. " * 20]
)
def test_ascii_is_estimated_by_its_length(text: str) -> None:
    assert estimate(text) == len(text) // 4


@pytest.mark.acceptance("B-18")
def test_100_chinese_characters_are_not_25_tokens() -> None:
    assert estimate("港务处早上七点开门" * 100) >= 0.9 * TiktokenCounter().count("港务处早上七点开门" * 100)


def test_a_blob_in_a_long_text_counts_as_a_blob() -> None:
    prose = (Path(__file__).parent / "samples/english.txt").read_text(encoding="utf-8")
    blob = (Path(__file__).parent / "samples/base64.txt").read_text(encoding="utf-8")
    text = prose * 5 + blob + prose * 5

    assert estimate(text) >= 10 * estimate(prose) + 0.7 * estimate(blob)


def test_only_no_text_has_no_tokens() -> None:
    assert estimate("") == 0
    assert all(estimate(text) >= 1 for text in (" ", "a", "\n", "\ud800"))


@given(ANY_TEXT)
def test_every_text_has_an_estimate_between_nothing_and_a_bit_more_than_a_token_for_each_byte(text: str) -> None:
    assert bool(text) <= estimate(text) <= 1.1 * len(text.encode("utf-8", "surrogatepass")) + 2


def test_an_emoji_counts_the_same_beside_characters_of_three_bytes() -> None:
    apart = estimate("日本語" * 100) + estimate("🎉" * 100)

    assert apart - 2 <= estimate("日本語🎉" * 100) <= apart


@given(st.text(st.sampled_from("aB7 \n.(é"), max_size=60))
def test_tokens_begin_where_the_tables_say(text: str) -> None:
    data = text.encode()
    classes = "n" + "".join(_CLASSES[_TO_CLASS[byte]] for byte in data)
    pairs = ["".join(pair) for pair in pairwise(classes)]
    weights = {pair: weight for weight, group in _PAIRS for pair in group.split()}
    lone = [(first, second) for firsts, seconds in _LONE_SIGN for first in firsts.split() for second in seconds.split()]

    expected = sum(weights.get(pair, 0) for pair in pairs) + sum(pair in lone for pair in pairwise(pairs))
    assert _estimate_beginnings(data.translate(_TO_CLASS)) == pytest.approx(expected)


@pytest.mark.acceptance("K-05")
def test_a_message_costs_4_tokens_more_than_its_words() -> None:
    counter = SimpleTokenCounter()

    assert counter.count_messages([Message("user", "word " * 80)] * 2) == 2 * (100 + 4)


@pytest.mark.acceptance("K-01", "C-29")
def test_it_is_a_counter_that_never_claims_to_be_exact() -> None:
    counter = SimpleTokenCounter()

    assert isinstance(counter, ModelCounter)
    assert counter.measure("word") == (1, "estimated")
    assert counter.count_many(["word", "two words"]) == [1, 3]

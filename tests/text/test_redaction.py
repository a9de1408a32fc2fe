"""Secrets are taken out of texts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.text.redaction import redact, redact_json
from tests.timing import seconds

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "anthropic-key": "sk-" + "ant-api03-" + LETTERS[:40],
    "openai-key": "sk-" + "proj-" + LETTERS[-48:],
    "google-key": "AI" + "za" + LETTERS[:35],
    "github-token": "gh" + "p_" + LETTERS[:36],
    "gitlab-token": "gl" + "pat-" + LETTERS[:20],
    "slack-token": "xo" + "xb-" + "123456789012-abcdefghij",
    "stripe-key": "sk" + "_live_" + LETTERS[:24],
    "hosting-token": "hf" + "_" + LETTERS[:34],
    "aws-key": "AK" + "IA" + "ABCDEFGHIJKLMNOP",
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + "JzdWIiOiIxMjM0In0." + LETTERS[:43],
    "private-key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIBAAK\nCAQEA\n-----END RSA " + "PRIVATE KEY-----",
}
IN_PLACE = {
    "bearer": ("Authorization: Bearer ", LETTERS[:30]),
    "url-password": ("postgresql://nexus:", "s3cret!"),
    "storage-key": ("AccountKey=", LETTERS[:44] + "=="),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_key_is_known_by_its_shape(kind: str) -> None:
    redacted = redact(f"use {SECRETS[kind]} please")

    assert redacted.text == f"use [redacted:{kind}] please"
    assert redacted.counts == {kind: 1}


@pytest.mark.parametrize("kind", IN_PLACE)
def test_what_stands_before_a_secret_stays(kind: str) -> None:
    before, secret = IN_PLACE[kind]
    after = "@db/nexus" if kind == "url-password" else " and so on"

    assert redact(before + secret + after).text == f"{before}[redacted:{kind}]{after}"


@pytest.mark.parametrize(
    "line",
    [
        'password = "correct-horse"',
        "DB_PASSWORD=hunter2hunter2",
        "export ACME_API_KEY='a1b2c3d4e5f6'",
        '{"client_secret": "q8w7e6r5t4"}',
        "aws_secret_access_key: wJalrXUtnFEMI7K7MDENG",
        "passphrase: 0pen5esame",
    ],
)
def test_a_password_is_known_by_the_word_before_it(line: str) -> None:
    redacted = redact(line)

    assert redacted.counts == {"password": 1}
    assert "[redacted:password]" in redacted.text
    assert redacted.text.startswith(line[:6])


@pytest.mark.parametrize(
    "line",
    [
        "password = os.environ['DB_PASSWORD']",
        'api_key = "${ACME_API_KEY}"',
        'api_key="your-api-key-here"',
        "The password: whatever you like",
        "password: string",
        "set API_KEY=<your key>",
        'password = "xxxxxxxx"',
        "sk-learn is a library, and so is sk-something-else-entirely",
        "see https://example.com:8080/a@b",
        "git@github.com:acme/app.git",
        "the bearer of this letter",
    ],
)
def test_what_only_looks_like_a_secret_stays(line: str) -> None:
    assert redact(line) == (line, Counter())


def test_a_password_that_was_taken_out_is_not_counted_again() -> None:
    once = redact("postgresql://nexus:s3cret@db/nexus").text

    assert redact(once) == (once, Counter())


def test_the_name_of_a_field_counts_as_what_stands_before_a_value() -> None:
    counts: Counter[str] = Counter()
    arguments = {"url": "https://acme.test", "password": "correct-horse", "nested": [{"note": SECRETS["aws-key"]}, 7]}

    redacted = redact_json(arguments, counts)

    assert redacted == {
        "url": "https://acme.test",
        "password": "[redacted:password]",
        "nested": [{"note": "[redacted:aws-key]"}, 7],
    }
    assert counts == {"password": 1, "aws-key": 1}


@given(
    st.lists(st.sampled_from([*SECRETS.values(), *map("".join, IN_PLACE.values()), "password=", "x1 ", '"', "\n", "@"]))
)
def test_a_second_time_changes_nothing(parts: list[str]) -> None:
    once = redact("".join(parts)).text

    assert redact(once) == (once, Counter())


@pytest.mark.parametrize(
    "text", ["password=" * 20_000, "-----BEGIN PRIVATE KEY-----" * 8_000, "a://" * 40_000, "eyJ" * 50_000]
)
def test_a_hostile_text_takes_time_in_proportion_to_its_length(text: str) -> None:
    short = min(seconds(lambda: redact(text[: len(text) // 8])) for _ in range(3))
    long = seconds(lambda: redact(text))

    assert long < 40 * max(short, 0.001)


def test_ordinary_text_is_left_alone() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[2].glob("docs/**/*.md"))]

    assert sum(sum(redact(text).counts.values()) for text in texts) == 0
    assert sum(map(len, texts)) > 100_000

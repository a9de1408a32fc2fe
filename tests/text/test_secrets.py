"""What looks like a secret among the words of a command, or in an address."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.text.safety import strip_all_hidden
from nexus_core.text.secret_patterns import find_secrets
from nexus_core.text.secrets import (
    SECRET_PLACEHOLDER,
    hide_command_secrets,
    hide_secrets,
    redact,
    redact_json,
    secrets_in,
)
from tests.effort import sampled
from tests.tables import count
from tests.text.secret_samples import ALNUM, ORDINARY, SAMPLES, draw
from tests.timing import assert_linear

SECRET = "hunter22!"  # noqa: S105 - nobody's


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "command",
    [
        ["x", "--token", SECRET],
        ["x", "--api-key", SECRET],
        ["x", "--apiKey", SECRET],
        ["x", f"--password={SECRET}"],
        ["docker", "run", "-e", f"GITHUB_TOKEN={SECRET}"],
        ["x", "--header", f"Authorization: Bearer {SECRET}"],
        ["x", "--header", f"X-Api-Key: {SECRET}"],
        ["x", f"--header=Authorization: {SECRET}"],
        ["x", "${API_TOKEN:-hunter22!}"],
        [f"https://me:{SECRET}@x.example/"],
        [f"https://{SECRET}@x.example/"],
        [f"https://x.example/mcp?a=1&token={SECRET}"],
        [f"postgresql://me:{SECRET}@db.example/x"],
    ],
)
def test_a_secret_is_found_by_what_stands_before_it(command: list[str]) -> None:
    assert SECRET not in " ".join(hide_secrets(command))
    assert SECRET_PLACEHOLDER in " ".join(hide_secrets(command))


@pytest.mark.parametrize(
    "command",
    [
        ["npx", "-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/home/me"],
        ["uvx", "mcp-server-time", "--local-timezone", "Europe/Vienna"],
        ["x", "--token", "${TOKEN}"],
        ["x", "--token=${env:TOKEN}"],
        ["x", "--header", "Authorization: Bearer ${TOKEN}"],
        ["docker", "run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server:v0.20"],
        ["x", "--keyboard=german-layout", "--author", "me@x.example", "--monkey", "long"],
        ["x", "--token", "--verbose"],
        ["https://x.example:8080/mcp?region=eu-west"],
        ["a-very-long-name-of-a-package-with-the-number-2-in-it"],
    ],
)
def test_ordinary_words_stay(command: list[str]) -> None:
    assert hide_secrets(command) == command


def test_a_command_in_one_line_is_read_word_by_word() -> None:
    assert (
        hide_command_secrets(f"run x --token '{SECRET}' && y; environment: A")
        == "run x --token '***' && y; environment: A"
    )
    assert hide_command_secrets(f"x 'open --token={SECRET}") == "x 'open --token=***"


@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_words_have_as_many_words_without_their_secrets(words: list[str]) -> None:
    hidden = hide_secrets(words)

    assert len(hidden) == len(words)
    assert all(not parts or SECRET_PLACEHOLDER in word for word, parts in zip(hidden, secrets_in(words), strict=True))


@given(st.sampled_from(["a", "=", "://", "@", "${", "?k=", "-", "token:"]), st.integers(1, 3000))
def test_long_words_do_not_take_longer_than_they_must(piece: str, times: int) -> None:
    assert len(hide_secrets([piece * times])) == 1


WAYS: dict[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "in a sentence": lambda text: f"Look:\n{text}\nand go on.",
    "in JSON": lambda text: json.dumps({"content": text, "n": 1}),
    "in JSON in JSON": lambda text: json.dumps({"arguments": json.dumps({"content": f"x {text}"})}),
    "in a list": lambda text: f"- {text}" if "\n" not in text else text,
}
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


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("signs", ["!", "?", "!!", ".!"])
def test_signs_at_the_end_of_a_password_do_not_stay(signs: str) -> None:
    for before in ("pwd=", "use password=", "The password: "):
        for after in ("", ".", ", then"):
            assert redact(f"{before}Winter2024{signs}{after}").text == f"{before}[redacted:password]{after}"


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("line", ORDINARY)
def test_what_only_looks_like_a_secret_stays(line: str) -> None:
    assert redact(line) == (line, Counter())
    assert redact(json.dumps(line)).counts == {}


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("shape", SAMPLES)
def test_redaction_removes_every_known_shape(shape: str) -> None:
    text, secrets = SAMPLES[shape]
    count(len(WAYS))

    for way, wrap in WAYS.items():
        redacted = redact(wrap(text))
        assert not [secret for secret in secrets if secret in redacted.text], way
        assert redacted.counts.total() >= 1
        assert redact(redacted.text) == (redacted.text, Counter())


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("shape", [shape for shape, (text, _) in SAMPLES.items() if "\x1b" not in text])
def test_redaction_removes_every_known_shape_with_hidden_characters(shape: str) -> None:
    text, secrets = SAMPLES[shape]
    divided = "\u200b".join(text)

    redacted = redact(divided)

    assert not [secret for secret in secrets if secret in strip_all_hidden(redacted.text)]
    assert redacted.counts.total() >= 1
    assert redact(redacted.text) == (redacted.text, Counter())


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("shape", SAMPLES)
def test_redaction_keeps_json_parseable(shape: str) -> None:
    text, secrets = SAMPLES[shape]
    document = {
        "before": [1, "x"],
        "arguments": text,
        "nested": json.dumps({"text": text, "list": ["-", text]}),
        "n": 7,
    }

    parsed = json.loads(redact(json.dumps(document)).text)

    assert parsed.keys() == document.keys()
    assert (parsed["before"], parsed["n"]) == ([1, "x"], 7)
    nested = json.loads(parsed["nested"])
    assert (nested.keys(), len(nested["list"])) == ({"text": 0, "list": 0}.keys(), 2)
    assert not [secret for secret in secrets if secret in json.dumps(parsed)]


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("shape", SAMPLES)
def test_redact_json_removes_every_known_shape(shape: str) -> None:
    text, secrets = SAMPLES[shape]
    document = {"text": text, "list": [text, {"deep": (text,)}], text: 1}

    redacted = redact_json(document)
    told = json.dumps(redacted)

    assert not [secret for secret in secrets if secret in told]
    assert redact_json(redacted) == redacted


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


PIECES = [
    *SECRETS.values(),
    *map("".join, IN_PLACE.values()),
    *(sample.text for sample in SAMPLES.values()),
    *("password=", "x1 ", '"', "\n", "@", "\\", "://u:", "token", "=", "a7", "[redacted:x]", " ", "'", "-----"),
]


@pytest.mark.acceptance("T10")
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_a_second_time_changes_nothing(parts: list[str]) -> None:
    once = redact("".join(parts)).text

    assert redact(once) == (once, Counter())


# fmt: off
PUMPS = [
    *(
        "password=",
        'password="',
        'password=\\"',
        "password: ",
        "--password ",
        "password is ",
        "DB_PASSWORD=a1,",
        "token=a1",
    ),
    *(
        "a://",
        "a://u:",
        "a://u:p@",
        "a://u:p/1@h.x/",
        "eyJ",
        "eyJ.eyJ.",
        "sk-",
        "ghp_",
        "ghp_a1",
        "1//0",
        "a.b.",
        "a-",
        "a_",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIE\n",
        "-----END PRIVATE KEY-----",
        "A" * 64 + "\n",
    ),
    *(
        "curl ",
        "curl -u a:b1c ",
        "mysql -p",
        "cookie: a=1;",
        "cookie: ",
        "a=b;",
        "machine ",
        "machine a login b ",
        "basic ",
    ),
    *(
        "Bearer ",
        "Authorization: ",
        "Authorization: Digest ",
        'a="b" ',
        "&sig=",
        'kty"d":"',
        "$2a$",
        "$6$a",
        "$argon2id$v=1$",
    ),
    *(
        "mnemonic: abc ",
        "abc ",
        "a7",
        "\\",
        '"',
        "@",
        "\x1b[",
        "\n",
        "\u0130",
        "<password>a1",
        "Private-Lines: 1\nAAAA\n",
    ),
    *("name: password\n value: ", "&quot;password&quot;:", "hooks.slack.com/services/", "a:5432:b:c:d\n", "set key "),
    *(
        "password=" + "a1" * 2000,
        "a://u:" + "p@" * 900,
        "Cookie: " + "a=b1c2d3e4;" * 60 + "\n",
        "x",
        "7",
        "password | ",
    ),
    # each name inside the value of the one before it, and each prefix inside the token of the one before it
    *(f"{name}{sign}" for name in ("auth", "authorization", "Authorization", "api_key", "password", "token", "secret",
      "credential", "passphrase", "pwd", "psk") for sign in (":", "=", ": ", "-", "/", '="')),
    *("secret" + "_" * 32 + "-", "secret-access=", "token=9=..", "api-key\t-", "psk=_.a://.", "passphrase=\u00e9:"),
    *("pass:9999-", "pscale_oauth:", "gl-", "gli.", "sq.", "dp.", "pat-", "r.", "C-", "ATCTT" + "z" * 38 + "/"),
    *("A" * 15 + " ", "Authorization:a", "tokentoken=", 'password: "\\"', "ghp_" + "a" * 36 + "/", "-us", "Q~", "x.y"),
    *(sample.text for sample in SAMPLES.values()),
]
# fmt: on


@pytest.mark.acceptance("T18")
@pytest.mark.parametrize("pump", sampled(PUMPS, one_in=6))
def test_hostile_text_takes_time_in_proportion_to_its_length(pump: str) -> None:
    text = (pump * (100_000 // len(pump) + 1))[:100_000]

    assert_linear(find_secrets, text[:25_000], text)


@pytest.mark.acceptance("T18")
@pytest.mark.parametrize("pump", ["?a", "&a", "#", "?a=b", "A", "a:", "${a:-", "a=b;"])
def test_hostile_address_takes_time_in_proportion_to_its_length(pump: str) -> None:
    address = "https://example.com/" + pump * (100_000 // len(pump))

    assert_linear(lambda length: hide_secrets([address[:length]]), 25_000, 100_000)


@pytest.mark.acceptance("T10")
def test_a_value_behind_many_names_is_redacted() -> None:
    secret = draw(ALNUM, 24)

    assert secret not in redact(f"token=token=token={secret}").text
    assert secret not in redact(" ".join(["authorization:"] * 200) + f" Bearer {secret}").text
    assert secret not in redact("password=x, " * 2_000 + f"password={secret}").text
    assert secret not in redact("a.b-" * 500 + " " + "gh" + f"p_{secret}{secret}").text


@pytest.mark.acceptance("T10")
def test_a_list_of_the_lines_of_a_key_is_redacted_line_by_line() -> None:
    text, secrets = SAMPLES["rsa-key"]

    redacted = redact_json({"lines": text.split("\n"), "after": ["x"]})

    assert not [secret for secret in secrets if secret in str(redacted)]
    assert len(redacted["lines"]) == len(text.split("\n"))
    assert redacted["after"] == ["x"]


@pytest.mark.acceptance("T10")
def test_the_arguments_of_a_command_are_read_as_options() -> None:
    given = ["run", "--password", "open sesame", "--verbose", "--token", "a1b2c3d4e5", "file.txt"]

    redacted = redact_json(given)

    assert redacted == [
        "run",
        "--password",
        "[redacted:password]",
        "--verbose",
        "--token",
        "[redacted:password]",
        "file.txt",
    ]


@pytest.mark.acceptance("T10")
def test_arguments_are_read_as_those_of_their_program() -> None:
    for command, secret in (
        (["curl", "-u", "me:hunter22", "https://x.test"], "hunter22"),
        (["mysql", "-u", "root", "-phunter22", "shop"], "hunter22"),
        (["/usr/bin/docker", "login", "-u", "me", "-p", "hunter22"], "hunter22"),
        (["aws", "configure", "set", "aws_secret_access_key", "wJalrXUtnFEMI7K7MDENG"], "wJalrXUtnFEMI7K7MDENG"),
    ):
        redacted = redact_json({"command": command})["command"]

        assert len(redacted) == len(command)
        assert secret not in str(redacted)
        assert redacted[:2] == command[:2]


@pytest.mark.acceptance("T10")
def test_a_variable_in_a_manifest_is_known_by_its_name() -> None:
    env = [{"name": "DB_PASSWORD", "value": "letters"}, {"name": "DB_HOST", "value": "db.test"}]

    assert redact_json(env)[0]["value"] == "[redacted:password]"
    assert redact_json(env)[1] == env[1]


@pytest.mark.acceptance("T10")
def test_two_secrets_as_names_of_fields_stay_two_fields() -> None:
    first, second = (SAMPLES[name].secrets[0] for name in ("github-classic", "github-app"))
    prefix = "gh" + "p_"

    redacted = redact_json({prefix + first: 1, prefix + second: 2})

    assert list(redacted.values()) == [1, 2]
    assert redact_json(redacted) == redacted
    assert not {first, second} & set("".join(redacted).split())


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("cut", range(60, 400, 37))
def test_a_key_that_is_cut_anywhere_is_still_redacted(cut: int) -> None:
    text, secrets = SAMPLES["rsa-key"]

    head, tail = redact(text[:cut]).text, redact(text[cut:]).text

    assert not [line for line in secrets if line in head or line in tail]


def test_ordinary_text_is_left_alone() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[2].glob("docs/**/*.md"))]

    assert sum(sum(redact(text).counts.values()) for text in texts) == 0
    assert sum(map(len, texts)) > 100_000


@pytest.mark.acceptance("T10")
def test_the_numbers_of_the_security_page_are_those_that_are_tried() -> None:
    page = " ".join((Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8").split())

    assert f"{len(SAMPLES)} of {len(SAMPLES)} shapes" in page
    assert f"0 of {len(ORDINARY)} lines" in page

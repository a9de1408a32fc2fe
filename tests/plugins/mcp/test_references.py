from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import ConfigError
from nexus_plugins.mcp._references import ConfigReference, find_references, resolve_references

FOLDER = Path("/project")
VARIABLES = {"TOKEN": "t", "EMPTY": "", "NEXUS_INPUT_API_KEY": "typed", "NESTED": "${TOKEN}"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("Bearer ${TOKEN}", "Bearer t"),
        ("${env:TOKEN}", "t"),
        ("${TOKEN:-other}", "t"),
        ("${MISSING:-other}", "other"),
        ("${env:MISSING:-other}", "other"),
        ("${MISSING:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("${input:api-key}", "typed"),
        ("${workspaceFolder}/run.sh", "/project/run.sh"),
        ("${workspaceFolderBasename}", "project"),
        ("${userHome}${/}run.sh", f"{Path.home()}{os.sep}run.sh"),
        ("${TOKEN}${TOKEN}", "tt"),
        ("${NESTED}", "${TOKEN}"),
        ("$TOKEN costs $5", "$TOKEN costs $5"),
    ],
)
def test_a_reference_is_looked_up(text: str, value: str) -> None:
    assert resolve_references(text, VARIABLES, FOLDER, "it") == value


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigError, match="header 'A' of server 'x' needs the variable KEY, which is not set"):
        resolve_references("secret-${KEY}", VARIABLES, FOLDER, "header 'A' of server 'x'")


def test_an_input_that_nobody_gave_names_its_variable() -> None:
    with pytest.raises(ConfigError, match="NEXUS_INPUT_OTHER_KEY"):
        resolve_references("${input:other key}", VARIABLES, FOLDER, "it")


@pytest.mark.parametrize("text", ["${}", "${command:date}", "${a b}", "${config:x}", "${input:}"])
def test_what_nobody_understands_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="unknown reference"):
        resolve_references(text, VARIABLES, FOLDER, "it")


def test_what_a_text_refers_to_is_known_without_looking_it_up() -> None:
    assert list(find_references("${A} ${env:B:-x} ${input:c} ${workspaceFolder} ${?}")) == [
        ConfigReference("variable", "A"),
        ConfigReference("variable", "B", "x"),
        ConfigReference("input", "c"),
        ConfigReference("place", "workspaceFolder"),
        ConfigReference("unknown", ""),
    ]


@given(st.text())
def test_an_error_never_shows_the_text(secret: str) -> None:
    text = f"<{secret}>${{MISSING}}"

    with pytest.raises(ConfigError) as caught:
        resolve_references(text, {}, FOLDER, "it")

    assert text not in str(caught.value)

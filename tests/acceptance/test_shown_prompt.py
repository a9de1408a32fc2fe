"""What `nexus show` prints is what a session sends, over all example and golden trees."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from nexus_core import Nexus, UnknownNameError
from nexus_core.context import ContextLoader
from nexus_core.testing import write_files
from tests.conftest import ROOT, Cli, InstallPlugin
from tests.trees import GOLDEN_TREES

ACME = ROOT / "examples/acme"
EXAMPLES = {
    "acme": "company",
    "acme-backend": "company/backend",
    "acme-auth-service": "company/backend/auth-service",
}
CIRCUMSTANCES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "usual": ([], {}),
    "manager": (["--role", "manager"], {"role": "manager"}),
    "worker": (
        ["--role", "worker", "--task", "Look.", "--skill", "logs"],
        {"role": "worker", "task": "Look.", "skills": ["logs"]},
    ),
    "repl": (["--mode", "repl"], {"mode": "repl"}),
    "server": (["--mode", "server"], {"mode": "server"}),
    "tagged": (["--renderer", "tagged"], {"renderer": "tagged"}),
    "granted": (
        ["--permissions", "May push.", "--permissions", "May pay."],
        {"permissions": ["May push.", "May pay."]},
    ),
    "all": (
        ["--role", "manager", "--mode", "server", "--renderer", "tagged", "--permissions", "May push."],
        {"role": "manager", "mode": "server", "renderer": "tagged", "permissions": ["May push."]},
    ),
}


@pytest.fixture(params=[*EXAMPLES, *GOLDEN_TREES])
def place(request: pytest.FixtureRequest, nexus_home: Path, work: Path) -> Path:
    """A directory of a tree, whose home is that of the user."""
    if request.param in EXAMPLES:
        copytree(ACME / "home/.nexus3", nexus_home, dirs_exist_ok=True)
        copytree(ACME / "company", work / "company")
        return work / EXAMPLES[request.param]
    tree = GOLDEN_TREES[request.param]
    write_files(nexus_home, tree.home)
    return write_files(work, tree.files) / tree.cwd


@pytest.mark.acceptance("Y-04", "C-27")
@pytest.mark.parametrize("circumstances", CIRCUMSTANCES)
def test_show_prints_the_system_prompt_of_a_session(place: Path, cli: Cli, circumstances: str) -> None:
    options, given = CIRCUMSTANCES[circumstances]
    with Nexus(place, ledger="memory:") as nexus:
        sent = nexus.session("auth", model="gpt-4o", **given).ask("Why?").system_prompt

        assert nexus.system_prompt(**given) == sent

    assert cli("-C", str(place), "show", *options).out.removesuffix("\n") == sent.removesuffix("\n")
    assert json.loads(cli("-C", str(place), "show", "--json", *options).out)["prompt"] == sent


SHOUTING = """
from nexus_core import hookimpl
from nexus_core.plugin import Renderer

def system(sections):
    return "\\n".join(section.title.upper() for section in sections)

def current(request, sections, now):
    return request.message

@hookimpl
def nexus_renderers():
    return [Renderer(name="labelled", system=system, current=current)]
"""


def test_show_uses_a_renderer_that_replaces_the_bundled_one(
    work: Path, cli: Cli, install_plugin: InstallPlugin
) -> None:
    install_plugin("shouting", SHOUTING)

    with Nexus(work, ledger="memory:") as nexus:
        sent = nexus.session("auth", model="gpt-4o").ask("Why?").system_prompt

    assert "\nENVIRONMENT\n" in f"\n{sent}\n"
    assert cli("show").out.removesuffix("\n") == sent


def test_assemble_understands_the_same_options(place: Path, cli: Cli) -> None:
    options, _ = CIRCUMSTANCES["all"]

    sent = json.loads(cli("-C", str(place), "assemble", *options, "--api", "openai").out)["messages"][0]["content"]

    assert cli("-C", str(place), "show", *options).out.removesuffix("\n") == sent.removesuffix("\n")


@pytest.mark.acceptance("P-10", "C-27")
@pytest.mark.parametrize("mode", ["repl", "server"])
def test_the_loaded_form_is_that_of_the_loader(place: Path, cli: Cli, mode: str) -> None:
    shown = cli("-C", str(place), "show", "--loaded", "--mode", mode).out

    if mode == "repl":
        assert shown == ContextLoader(place).load().system_prompt == cli("-C", str(place), "show", "--loaded").out
    assert ("Terminal: " in shown) is (mode == "repl")
    assert "## Active Configuration\n" in shown


@pytest.mark.parametrize("mode", ["", "repl", "server"])
def test_environment_lists_the_facts_of_the_prompt(place: Path, cli: Cli, mode: str) -> None:
    options = ["--mode", mode] if mode else []

    listed = json.loads(cli("-C", str(place), "environment", "--json", *options).out)["environment"]

    section = cli("-C", str(place), "show", *options).out.partition("\n## Environment\n")[2].partition("\n\n")[0]
    facts = [line.split(": ", 1) for line in section.splitlines()]
    assert listed == {name.lower().replace(" ", "_"): value for name, value in facts}
    assert {"architecture", "host"} <= listed.keys()


@pytest.mark.acceptance("Y-08", "P-10")
@pytest.mark.parametrize("form", [[], ["--loaded"]], ids=["session", "loaded"])
def test_a_prompt_has_one_section_about_permissions(place: Path, cli: Cli, form: list[str]) -> None:
    assert cli("-C", str(place), "show", *form).out.count("Permission level: ") == 1


@pytest.mark.parametrize("command", [("status", "--json"), ("context", "--json")])
def test_other_commands_speak_of_the_same_prompt(place: Path, cli: Cli, command: tuple[str, ...]) -> None:
    shown = json.loads(cli("-C", str(place), "show", "--json").out)

    told = json.loads(cli("-C", str(place), *command).out)["sections"]

    assert [each if isinstance(each, str) else each["title"] for each in told] == [
        each["title"] for each in shown["sections"]
    ]


def test_a_sentence_of_the_prompt_can_be_explained(cli: Cli) -> None:
    host = next(line for line in cli("show").out.splitlines() if line.startswith("Host: "))

    assert "plugin:environment" in cli("explain", host).out
    assert cli("explain", "## Active Configuration").code == 1


# ---- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mode", "sever"], "unknown mode 'sever'\n  did you mean 'server'?"),
        (["--role", "manger"], "unknown role 'manger'\n  did you mean 'manager'?"),
        (["--renderer", "taged"], "unknown renderer 'taged'\n  did you mean 'tagged'?"),
        (["--role", "worker"], "a worker needs a task\n  say what it is to do: --task TEXT"),
        (["--loaded", "--role", "manager"], "--role changes nothing with --loaded\n  leave out --role, or --loaded"),
        (["--loaded", "--skill", "x"], "--skill changes nothing with --loaded\n  leave out --skill, or --loaded"),
        (["--as", "claude", "--mode", "repl"], "--mode says nothing about what claude reads"),
        (["--as", "claude", "--loaded"], "--loaded says nothing about what claude reads"),
    ],
)
def test_an_option_that_means_nothing_is_refused(cli: Cli, options: list[str], words: str) -> None:
    outcome = cli("show", *options)

    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err


def test_an_argument_that_no_session_has_is_refused(work: Path) -> None:
    with Nexus(work) as nexus, pytest.raises(UnknownNameError, match="unknown argument of a session 'rol'") as caught:
        nexus.system_prompt(rol="manager")  # type: ignore[call-arg] # what is tested

    assert "did you mean 'role'?" in str(caught.value)

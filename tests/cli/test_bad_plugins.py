"""Whatever an installed plugin does, `nexus show` works and says whose fault it was."""

from typing import NamedTuple

import pytest

from tests.conftest import Cli, InstallPlugin


class Fault(NamedTuple):
    """What is wrong with the plugin `bad`, and how it is said."""

    source: str
    words: str
    hook: str = ""

    @property
    def culprit(self) -> str:
        return f"bad (nexus-bad 1.0){', ' * bool(self.hook)}{self.hook}: "


HOOKIMPL = "from nexus_core import hookimpl\n@hookimpl\n"
FAULTS = {
    "fails to import": Fault("raise ImportError('boom')", "it raised ImportError: boom while it was loaded"),
    "does not parse": Fault("def broken(:", "it raised SyntaxError"),
    "exits at import": Fault("import sys; sys.exit(7)", "it called sys.exit(7) while it was loaded"),
    "misspelt hook": Fault(
        f"{HOOKIMPL}def nexus_static_section(): return []",
        "nexus_static_section is not a hook; did you mean 'nexus_static_sections'?",
    ),
    "wrong signature": Fault(
        f"{HOOKIMPL}def nexus_static_sections(reqest): return []",
        "but the hook is nexus_static_sections(request, loaded); did you mean 'request'?",
    ),
    "raises in a hook": Fault(
        f"{HOOKIMPL}def nexus_static_sections(): raise ValueError('boom')",
        "it raised ValueError: boom",
        hook="nexus_static_sections",
    ),
    "exits in a hook": Fault(
        f"import sys\n{HOOKIMPL}def nexus_layers(): sys.exit(9)",
        "it called sys.exit(9)",
        hook="nexus_layers",
    ),
    "wrong type": Fault(
        f"{HOOKIMPL}def nexus_static_sections(): return ['text']",
        "it returned a list with str in it, expected a list of Section",
        hook="nexus_static_sections",
    ),
    "forgotten mark": Fault(
        "def nexus_static_sections(): return []", "nexus_static_sections is not marked @hookimpl, so it is never called"
    ),
}


@pytest.mark.acceptance("T21", "R17")
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_prompt_is_shown_and_the_culprit_named_once(cli: Cli, install_plugin: InstallPlugin, fault: Fault) -> None:
    healthy = cli("show").out
    install_plugin("bad", fault.source)

    outcome = cli("show")

    assert (outcome.code, outcome.out) == (0, healthy)
    assert outcome.err.count(f"plugin {fault.culprit}") == 1
    assert fault.words in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_strict_run_stops_without_a_traceback(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    install_plugin("bad", fault.source)
    monkeypatch.setenv("NEXUS_STRICT", "1")

    outcome = cli("show")

    assert (outcome.code, outcome.out) == (3, "")
    assert f"plugin {fault.culprit}" in outcome.err
    assert fault.words in outcome.err
    assert "Traceback" not in outcome.err


def test_of_two_distributions_with_one_name_the_second_is_named(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("twin", "", distribution="nexus-a")
    install_plugin("twin", "", distribution="nexus-b")

    outcome = cli("show")

    assert outcome.code == 0
    assert "plugin twin (nexus-b 1.0): it is left out, because its name is taken by twin (nexus-a 1.0)" in outcome.err


def test_a_plugin_cannot_take_the_name_of_a_bundled_one(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("environment", "raise AssertionError('imported')", distribution="evil")

    outcome = cli("show")

    assert "## Environment" in outcome.out
    assert "its name is taken by environment (nexusctx" in outcome.err


def test_a_plugin_that_prints_does_not_spoil_the_data(cli: Cli, install_plugin: InstallPlugin) -> None:
    healthy = cli("show").out
    install_plugin(
        "noisy",
        "print('at import')\n"
        "from nexus_core import hookimpl\n"
        "@hookimpl\n"
        "def nexus_static_sections(): print('in a hook')\n",
    )

    outcome = cli("show")

    assert outcome.out == healthy
    assert "at import\nin a hook\n" in outcome.err


def test_debug_shows_where_it_happened(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('boom')")

    outcome = cli("--debug", "show")

    assert "Traceback" in outcome.err
    assert "nexus_bad_bad.py" in outcome.err


def test_an_escape_sequence_in_a_message_does_not_reach_the_terminal(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise ImportError('\\x1b]0;owned\\x07')")

    outcome = cli("show")

    assert "\x1b" not in outcome.err
    assert "\\x1b]0;owned" in outcome.err

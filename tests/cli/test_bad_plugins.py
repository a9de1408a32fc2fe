"""Whatever an installed plugin does, `nexus show` works and says whose fault it was."""

import pytest

from tests.conftest import Cli, InstallPlugin

FAULTS = {
    "fails to import": ("raise ImportError('boom')", "raised ImportError: boom while it was loaded"),
    "does not parse": ("def broken(:", "raised SyntaxError"),
    "exits at import": ("import sys; sys.exit(7)", "called sys.exit(7) while it was loaded"),
    "misspelt hook": (
        "from nexus_core import hookimpl\n@hookimpl\ndef nexus_static_section(): return []",
        "nexus_static_section is not a hook; did you mean 'nexus_static_sections'?",
    ),
    "wrong signature": (
        "from nexus_core import hookimpl\n@hookimpl\ndef nexus_static_sections(reqest): return []",
        "but the hook is nexus_static_sections(request, loaded); did you mean 'request'?",
    ),
    "raises in a hook": (
        "from nexus_core import hookimpl\n@hookimpl\ndef nexus_static_sections(): raise ValueError('boom')",
        "nexus_static_sections: raised ValueError: boom",
    ),
    "exits in a hook": (
        "import sys\nfrom nexus_core import hookimpl\n@hookimpl\ndef nexus_layers(): sys.exit(9)",
        "nexus_layers: called sys.exit(9)",
    ),
    "wrong type": (
        "from nexus_core import hookimpl\n@hookimpl\ndef nexus_static_sections(): return ['text']",
        "nexus_static_sections: returned a list with str in it, expected a list of Section",
    ),
}


@pytest.mark.acceptance("T21", "R17")
@pytest.mark.parametrize(("source", "words"), FAULTS.values(), ids=FAULTS)
def test_the_prompt_is_shown_and_the_culprit_named_once(
    cli: Cli, install_plugin: InstallPlugin, source: str, words: str
) -> None:
    healthy = cli("show").out
    install_plugin("bad", source)

    outcome = cli("show")

    assert (outcome.code, outcome.out) == (0, healthy)
    assert outcome.err.count("plugin 'bad (nexus-bad 1.0)'") == 1
    assert words in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(("source", "words"), FAULTS.values(), ids=FAULTS)
def test_a_strict_run_stops_without_a_traceback(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch, source: str, words: str
) -> None:
    install_plugin("bad", source)
    monkeypatch.setenv("NEXUS_STRICT", "1")

    outcome = cli("show")

    assert (outcome.code, outcome.out) == (3, "")
    assert "plugin 'bad (nexus-bad 1.0)'" in outcome.err
    assert words.rpartition(": ")[2] in outcome.err
    assert "Traceback" not in outcome.err


def test_of_two_distributions_with_one_name_the_second_is_named(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("twin", "", distribution="nexus-a")
    install_plugin("twin", "", distribution="nexus-b")

    outcome = cli("show")

    assert outcome.code == 0
    assert "plugin 'twin (nexus-b 1.0)': its name is taken by twin (nexus-a 1.0)" in outcome.err


def test_a_plugin_cannot_take_the_name_of_a_bundled_one(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("environment", "raise AssertionError('imported')", distribution="evil")

    outcome = cli("show")

    assert "## Environment" in outcome.out
    assert "its name is taken by environment (nexus-core" in outcome.err


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

import pytest

from nexus_core import ConfigError
from nexus_core.host.policy import PluginPolicy, read_policy


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEXUS_PLUGINS", raising=False)
    monkeypatch.delenv("NEXUS_STRICT", raising=False)


def test_by_default_everything_loads_and_problems_do_not_stop_the_run() -> None:
    assert read_policy() == PluginPolicy(disabled=frozenset(), only_bundled=False, strict=False)


def test_names_with_a_minus_are_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "-git, -mcp")

    assert read_policy(["tagged"]).disabled == {"git", "mcp", "tagged"}


@pytest.mark.parametrize("value", ["git", "+git", "-", "none,all"])
def test_a_word_that_means_nothing_is_an_error_with_an_example(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", value)

    with pytest.raises(ConfigError, match="to disable a plugin") as caught:
        read_policy()

    assert caught.value.where == "the environment variable NEXUS_PLUGINS"


def test_none_leaves_the_bundled_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "none")

    assert read_policy().only_bundled


@pytest.mark.parametrize(("value", "strict"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_strictness_is_switched_on_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, *, strict: bool
) -> None:
    monkeypatch.setenv("NEXUS_STRICT", value)

    assert read_policy().strict is strict


def test_an_argument_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_STRICT", "1")

    assert read_policy(strict=False).strict is False

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nexus_core import FileError, Nexus, NexusClosedError, Section, UsageError, hookimpl
from nexus_core.errors import UnknownNameError
from nexus_core.plugin import Layer, LayerText
from nexus_core.testing import write_files
from tests.trees import COMPANY

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers, Problem
    from nexus_core.testing.fixtures import MakeNexus
    from tests.conftest import InstallPlugin

GOLDEN = Path(__file__).parent / "golden"


class Motto:
    @hookimpl
    def nexus_static_sections(self, request: Request) -> list[Section]:
        return [Section("motto", title="Motto", text=f"Measure twice in {request.cwd.name}.")]


@pytest.mark.acceptance("P-01", "P-02", "P-03", "P-04", "A-01", "A-02")
def test_the_whole_prompt_of_a_company_tree(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("nexus_plugins.environment.get_operating_system", lambda: "Linux")
    monkeypatch.setattr("nexus_plugins.environment.get_machine", lambda: ("build-7", "x86_64"))
    write_files(nexus_home, COMPANY.home)

    prompt = make_nexus(files=COMPANY.files, cwd=COMPANY.cwd).system_prompt()

    assert prompt.replace(str(tmp_path), "/home/user") == (GOLDEN / "company.md").read_text()


def test_a_given_object_contributes_without_packaging(make_nexus: MakeNexus) -> None:
    prompt = make_nexus(cwd="demo", plugins=[Motto()]).system_prompt()

    assert "## Motto\nMeasure twice in demo." in prompt


@pytest.mark.acceptance("A-03")
def test_an_installed_package_contributes_by_being_installed(
    install_plugin: InstallPlugin, make_nexus: MakeNexus
) -> None:
    install_plugin(
        "git",
        "from nexus_core import Section, hookimpl\n"
        "@hookimpl\n"
        "def nexus_static_sections(): return [Section('git', title='Git', text='clean')]\n",
    )

    assert "## Git\nclean" in make_nexus().system_prompt()


@pytest.mark.acceptance("A-01")
def test_a_plugin_can_replace_where_layers_are_looked_for(make_nexus: MakeNexus, tmp_path: Path) -> None:
    class Policy:
        """Layers from one place, texts under another name: what file_layers does, done differently."""

        @hookimpl
        def nexus_layers(self) -> list[Layer]:
            return [Layer("global:policy", tmp_path / "policy", "global")]

        @hookimpl
        def nexus_layer_texts(self, layer: Layer) -> list[LayerText]:
            path = layer.directory / "RULES.md"
            return [LayerText(path, path.read_text())]

    write_files(tmp_path / "policy", {"RULES.md": "No force pushes."})

    nexus = make_nexus(plugins=[Policy()], disable=["file_layers", "environment", "mcp", "readme_fallback", "skills"])

    prompt = nexus.system_prompt()

    source = tmp_path / "policy/RULES.md"
    assert prompt == (
        f"# System Configuration\n\n## Global Configuration (policy)\nSource: {source}\n\nNo force pushes.\n"
        "\n## Agent Permissions\nPermission level: trusted (from loosest to tightest: yolo, trusted, sandboxed)\n"
    )


def test_hooks_are_told_what_was_loaded(make_nexus: MakeNexus) -> None:
    seen: list[LoadedLayers] = []

    class Curious:
        @hookimpl
        def nexus_static_sections(self, loaded: LoadedLayers) -> None:
            seen.append(loaded)

    nexus = make_nexus(files={".nexus3/NEXUS.md": "hi"}, plugins=[Curious()])
    nexus.system_prompt()

    assert [text.text for text in seen[0].texts] == ["hi"]


def test_layers_can_be_switched_off(make_nexus: MakeNexus, tmp_path: Path) -> None:
    make_nexus(files={".nexus3/NEXUS.md": "hi"})

    with Nexus(tmp_path / "work", layers=False) as nexus:
        assert nexus.load().layers == ()
        assert "## Environment" in nexus.system_prompt()


def test_the_user_disables_a_plugin_in_the_home_configuration(make_nexus: MakeNexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": '{"plugins": {"disabled": ["environment"]}}'})

    nexus = make_nexus()

    assert "## Environment" not in nexus.system_prompt()
    assert {plugin.name: plugin.status for plugin in nexus.plugins}["environment"] == "disabled"


def test_a_project_cannot_disable_a_plugin(make_nexus: MakeNexus) -> None:
    files = {".nexus3/config.json": '{"plugins": {"disabled": ["environment"]}}'}

    assert "## Environment" in make_nexus(files=files).system_prompt()


def test_the_environment_disables_a_plugin(make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_PLUGINS", "none,-environment")

    assert "## Environment" not in make_nexus().system_prompt()


def test_no_installed_plugin_is_imported_when_none_is_asked_for(
    install_plugin: InstallPlugin, make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin("bomb", "raise AssertionError('imported')")
    monkeypatch.setenv("NEXUS_PLUGINS", "none")

    assert all(plugin.bundled for plugin in make_nexus().plugins)


def test_problems_are_kept(make_nexus: MakeNexus, nexus_problems: list[Problem]) -> None:
    class Broken:
        @hookimpl
        def nexus_static_sections(self) -> int:
            return 42

    nexus = make_nexus(plugins=[Broken()])
    nexus.system_prompt()

    assert nexus.problems == tuple(nexus_problems)
    assert len(nexus_problems) == 1


def test_sections_come_in_the_order_of_the_prompt(make_nexus: MakeNexus) -> None:
    titles = [section.title for section in make_nexus(plugins=[Motto()]).sections()]

    assert titles == ["Agent Permissions", "Nexus Environment", "Motto", "Environment"]


def test_home_has_one_path_and_keeps_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    given = f"{tmp_path}/work/../link"

    with Nexus(tmp_path, home=given) as nexus:
        assert nexus.home == tmp_path / "link"
    monkeypatch.setenv("NEXUS_HOME", given)
    (tmp_path / "project").mkdir()
    with Nexus(tmp_path / "project") as nexus:
        assert nexus.home == tmp_path / "link"


def test_home_can_be_given(tmp_path: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"NEXUS.md": "from the environment"})
    own = write_files(tmp_path / "own", {"NEXUS.md": "from the argument"})

    prompt = Nexus(tmp_path, home=own).system_prompt()

    assert ("from the argument" in prompt, "from the environment" in prompt) == (True, False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"disable": "environment"}, "disable must be a list, not 'environment'\n  write disable=['name']"),
        ({"disable": None}, "disable must be a list, not of type NoneType\n  write disable=['name']"),
        ({"plugins": "nexus_git"}, "plugins must be a list, not 'nexus_git'\n  write plugins=[module]"),
        ({"plugins": pytest}, "plugins must be a list, not of type module\n  write plugins=[module]"),
    ],
)
def test_one_thing_where_a_list_is_expected_is_an_error(
    nexus_home: Path, tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Nexus(tmp_path, home=nexus_home, **given)

    assert str(caught.value) == words


def test_a_mode_that_means_nothing_is_refused(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()

    asks: list[Callable[..., object]] = [nexus.request, nexus.context, nexus.sections, nexus.system_prompt]
    for ask in asks:
        with pytest.raises(UnknownNameError, match="unknown mode 'sever'") as caught:
            ask(mode="sever")
        assert "server" in str(caught.value.hint)


def test_a_nexus_shows_where_it_is(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()

    assert repr(nexus) == f"Nexus({str(nexus.cwd)!r})"


def test_a_closed_nexus_says_so(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()
    nexus.close()
    nexus.close()

    with pytest.raises(NexusClosedError):
        nexus.system_prompt()


def test_leaving_the_block_closes(nexus_home: Path, tmp_path: Path) -> None:
    with Nexus(tmp_path, home=nexus_home) as nexus:
        pass

    with pytest.raises(NexusClosedError):
        nexus.load()


def test_a_directory_that_does_not_exist_is_refused(nexus_home: Path, tmp_path: Path) -> None:  # noqa: ARG001 - the home must be in place
    with pytest.raises(FileError, match="no such directory"):
        Nexus(tmp_path / "missing")


def test_two_nexus_objects_share_nothing(make_nexus: MakeNexus) -> None:
    with_motto, without = make_nexus(plugins=[Motto()]), make_nexus()

    assert "## Motto" in with_motto.system_prompt()
    assert "## Motto" not in without.system_prompt()

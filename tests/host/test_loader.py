from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import nexus_core
from nexus_core import NexusError, PluginError, Section, hookimpl
from nexus_core.host.discovery import PluginCandidate, PluginPolicy, build_given_candidates, declare_bundled_plugin
from nexus_core.host.loader import find_contract_errors, find_implementations, find_uncalled_functions
from nexus_core.host.manager import Host
from nexus_core.plugin import Extra, PluginInfo, Problem

if TYPE_CHECKING:
    from collections.abc import Callable


@hookimpl
def nexus_layers() -> list[object]:
    return []


def test_marked_functions_are_found_by_hook() -> None:
    assert find_implementations(SimpleNamespace(nexus_layers=nexus_layers)) == {"nexus_layers": nexus_layers}


def test_a_function_may_say_which_hook_it_implements() -> None:
    @hookimpl(specname="nexus_layers")
    def find() -> list[object]:
        return []

    plugin = SimpleNamespace(find=find)

    assert find_implementations(plugin) == {"nexus_layers": find}
    assert list(find_contract_errors(plugin)) == []


def test_methods_of_an_instance_are_hooks() -> None:
    class Plugin:
        @hookimpl
        def nexus_layers(self, request: object) -> list[object]:  # noqa: ARG002 - part of the signature under test
            return []

    plugin = Plugin()

    assert list(find_implementations(plugin)) == ["nexus_layers"]
    assert list(find_contract_errors(plugin)) == []


def test_properties_are_not_run_when_a_plugin_is_looked_at() -> None:
    class Plugin:
        @property
        def explosive(self) -> None:
            raise AssertionError

    assert find_implementations(Plugin()) == {}


def test_a_class_instead_of_an_instance_is_explained() -> None:
    class Plugin: ...

    assert list(find_contract_errors(Plugin)) == ["Plugin is a class; pass an instance: Plugin()"]


def test_a_misspelt_hook_is_explained_with_the_nearest_name() -> None:
    @hookimpl
    def nexus_layer() -> None: ...

    found = list(find_contract_errors(SimpleNamespace(nexus_layer=nexus_layer)))

    assert found == ["nexus_layer is not a hook; did you mean 'nexus_layers'?"]


def test_an_optional_hook_of_another_version_is_neither_a_fault_nor_called() -> None:
    @hookimpl(optionalhook=True)
    def nexus_of_the_future() -> None: ...

    plugin = SimpleNamespace(nexus_of_the_future=nexus_of_the_future)

    assert list(find_contract_errors(plugin)) == []
    assert find_implementations(plugin) == {}


def test_a_wrong_parameter_is_explained_with_the_right_ones() -> None:
    @hookimpl
    def nexus_layers(reqest: object) -> None: ...

    (found,) = find_contract_errors(SimpleNamespace(nexus_layers=nexus_layers))

    assert "'reqest'" in found
    assert "nexus_layers(request)" in found
    assert "did you mean 'request'?" in found


def test_parameters_with_a_default_are_the_plugins_own_affair() -> None:
    @hookimpl
    def nexus_layers(request: object, depth: int = 3) -> None: ...

    assert list(find_contract_errors(SimpleNamespace(nexus_layers=nexus_layers))) == []


@pytest.mark.parametrize("options", [{"wrapper": True}, {"hookwrapper": True}])
def test_hook_wrappers_are_refused(options: dict[str, bool]) -> None:
    @hookimpl(**options)  # type: ignore[call-overload]
    def nexus_layers():  # type: ignore[no-untyped-def]  # noqa: ANN202 - a generator that never runs
        yield

    (found,) = find_contract_errors(SimpleNamespace(nexus_layers=nexus_layers))

    assert "wrappers are not supported" in found


def test_async_hooks_are_refused() -> None:
    @hookimpl
    async def nexus_layers() -> None: ...

    (found,) = find_contract_errors(SimpleNamespace(nexus_layers=nexus_layers))

    assert "async" in found


def test_a_hook_without_its_mark_is_noticed() -> None:
    found = find_uncalled_functions(SimpleNamespace(nexus_layers=print, nexus_models=nexus_layers))

    assert found == ["nexus_layers is not marked @hookimpl, so it is never called"]


def test_a_misspelt_hook_without_its_mark_is_noticed() -> None:
    found = find_uncalled_functions(SimpleNamespace(nexus_layerz=print))

    assert found == ["nexus_layerz looks like a hook but is not one; did you mean 'nexus_layers'?"]


def test_a_plugin_without_any_hook_is_noticed() -> None:
    assert find_uncalled_functions(SimpleNamespace(layers=print)) == [
        "it implements no hook; mark a function with @hookimpl"
    ]


def test_what_a_plugin_imports_and_its_helpers_are_not_taken_for_misspelt_hooks() -> None:
    plugin = SimpleNamespace(
        nexus_layers=nexus_layers, nexus_core=nexus_core, nexus_home="/home", nexus_layer_names=print
    )

    assert find_uncalled_functions(plugin) == []


@hookimpl
def nexus_static_sections() -> list[Section]:
    return [Section("fine", title="Fine", text="fine")]


FINE = SimpleNamespace(nexus_static_sections=nexus_static_sections)


def installed(name: str, load: Callable[[], object] = lambda: FINE, distribution: str = "dist") -> PluginCandidate:
    return PluginCandidate(name=name, origin="installed", load=load, distribution=distribution, version="1.0")


def broken(error: BaseException) -> Callable[[], object]:
    def load() -> object:
        raise error

    return load


def rows(host: Host) -> dict[str, PluginInfo]:
    return {plugin.name: plugin for plugin in host.plugins}


@pytest.mark.acceptance("T21")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ImportError("no module named x"), "raised ImportError: no module named x"),
        (SystemExit(7), "called sys.exit(7)"),
        (SystemExit(), "called sys.exit()"),
        (RuntimeError(), "raised RuntimeError"),
        (type("Mute", (Exception,), {"__str__": lambda _: 1 / 0})(), "raised Mute while"),
        (RecursionError("deep\nand long"), "raised RecursionError: deep while"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_named_and_the_others_go_on(error: BaseException, words: str) -> None:
    problems: list[Problem] = []

    host = Host([installed("bad", broken(error)), installed("good")], PluginPolicy(), report=problems.append)

    assert rows(host)["bad"].status == "failed"
    assert words in str(rows(host)["bad"].error)
    assert rows(host)["good"].status == "active"
    assert [problem.plugin for problem in problems] == ["bad (dist 1.0)"]
    assert problems[0].cause is error


def test_an_interrupt_while_loading_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt):
        Host([installed("bad", broken(KeyboardInterrupt()))], PluginPolicy())


@pytest.mark.acceptance("T21")
def test_a_faulty_plugin_is_left_out_whole() -> None:
    @hookimpl
    def nexus_layer() -> None: ...

    faulty = SimpleNamespace(nexus_static_sections=nexus_static_sections, nexus_layer=nexus_layer)

    host = Host([installed("faulty", lambda: faulty)], PluginPolicy(), report=lambda _: None)

    assert rows(host)["faulty"].status == "failed"
    assert rows(host)["faulty"].hooks == ()
    assert "did you mean 'nexus_layers'?" in str(rows(host)["faulty"].error)


def test_strictness_makes_a_broken_plugin_fatal() -> None:
    with pytest.raises(PluginError, match="raised ImportError") as caught:
        Host([installed("bad", broken(ImportError("x")))], PluginPolicy(strict=True))

    assert str(caught.value) == "plugin bad (dist 1.0): it raised ImportError: x while it was loaded"


def test_a_broken_bundled_plugin_is_fatal_when_it_is_used() -> None:
    host = Host([declare_bundled_plugin("bad", "no_such_module_at_all", hooks=("nexus_commands",))], PluginPolicy())

    with pytest.raises(PluginError, match="no_such_module_at_all"):
        host.commands()


def test_a_bundled_plugin_is_not_imported_before_one_of_its_hooks_is_called() -> None:
    host = Host([declare_bundled_plugin("bad", "no_such_module_at_all", hooks=("nexus_layers",))], PluginPolicy())

    assert len(host.commands()) == 0
    assert rows(host)["bad"].status == "active"


def test_of_two_plugins_with_one_name_the_first_stays() -> None:
    problems: list[Problem] = []

    host = Host(
        [installed("twin", distribution="alpha"), installed("twin", distribution="beta")],
        PluginPolicy(),
        report=problems.append,
    )

    assert [(row.distribution, row.status) for row in host.plugins] == [("alpha", "active"), ("beta", "failed")]
    assert "taken by twin (alpha 1.0)" in str(problems[0])


def test_a_disabled_plugin_is_listed_but_not_loaded() -> None:
    host = Host([installed("off", broken(AssertionError()))], PluginPolicy(disabled=frozenset({"off"})))

    assert rows(host)["off"].status == "disabled"


def test_disabling_a_name_that_is_nearly_one_is_questioned() -> None:
    problems: list[Problem] = []

    Host([installed("git")], PluginPolicy(disabled=frozenset({"gitt", "elsewhere"})), report=problems.append)

    assert [str(problem) for problem in problems] == ["plugin gitt: disabled, but not installed; did you mean 'git'?"]


def test_a_bundled_plugin_whose_extra_is_missing_says_what_to_install() -> None:
    needy = declare_bundled_plugin(
        "mcp", "no_such_module_at_all", hooks=("nexus_commands",), needs=Extra("mcp", modules=("no_such_sdk.client",))
    )

    host = Host([needy], PluginPolicy(strict=True))

    assert (rows(host)["mcp"].status, rows(host)["mcp"].error) == ("needs-extra", "needs nexusctx[mcp]")
    assert len(host.commands()) == 0


def test_an_installed_plugin_may_need_an_extra_of_its_own() -> None:
    needs = Extra("fast", modules=("no_such_library",), distribution="nexus-git")
    plugin = SimpleNamespace(NEEDS=needs, nexus_static_sections=nexus_static_sections)

    host = Host([installed("git", lambda: plugin)], PluginPolicy())

    assert rows(host)["git"].error == "needs nexus-git[fast]"


def test_a_plugin_whose_extra_is_installed_is_active() -> None:
    needs = Extra("json", modules=("json",))

    host = Host([declare_bundled_plugin("json", "json", hooks=(), needs=needs)], PluginPolicy())

    assert rows(host)["json"].status == "active"


def test_hooks_are_listed_in_the_order_of_the_contract() -> None:
    @hookimpl
    def nexus_layers() -> list[object]:
        return []

    plugin = SimpleNamespace(nexus_static_sections=nexus_static_sections, nexus_layers=nexus_layers)

    host = Host([installed("both", lambda: plugin)], PluginPolicy())

    assert rows(host)["both"].hooks == ("nexus_layers", "nexus_static_sections")


def test_plugins_without_hooks_do_not_get_in_each_others_way() -> None:
    problems: list[Problem] = []

    host = Host(
        [installed("one", SimpleNamespace), installed("two", SimpleNamespace)], PluginPolicy(), report=problems.append
    )

    assert [plugin.status for plugin in host.plugins] == ["active", "active"]
    assert [problem.plugin for problem in problems] == ["one (dist 1.0)", "two (dist 1.0)"]


def test_a_function_that_lacks_its_mark_is_named_and_the_others_are_called() -> None:
    problems: list[Problem] = []
    plugin = SimpleNamespace(nexus_static_sections=nexus_static_sections, nexus_layers=list)

    host = Host([installed("half", lambda: plugin)], PluginPolicy(), report=problems.append)

    assert [str(problem) for problem in problems] == [
        "plugin half (dist 1.0): nexus_layers is not marked @hookimpl, so it is never called"
    ]
    assert rows(host)["half"].hooks == ("nexus_static_sections",)


def test_two_given_instances_of_one_class_get_names_of_their_own() -> None:
    class Motto:
        @hookimpl
        def nexus_static_sections(self) -> None: ...

    host = Host(build_given_candidates([Motto(), Motto(), Motto()]), PluginPolicy())

    assert [plugin.name for plugin in host.plugins] == ["Motto", "Motto#2", "Motto#3"]


def test_a_given_plugin_that_breaks_the_contract_is_an_error_at_once() -> None:
    class Motto: ...

    with pytest.raises(PluginError, match=r"pass an instance: Motto\(\)"):
        Host(build_given_candidates([Motto]), PluginPolicy())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (5, "implements no hook"),
        ("nexus_git", "'nexus_git' is a name; import the module and pass that"),
        (SimpleNamespace(nexus_layers=list), "not marked @hookimpl"),
    ],
)
def test_a_given_object_that_can_do_nothing_is_an_error_at_once(given: object, words: str) -> None:
    with pytest.raises(PluginError, match=words):
        Host(build_given_candidates([given]), PluginPolicy())


def test_an_error_meant_for_the_user_while_loading_names_the_plugin_too() -> None:
    problems: list[Problem] = []

    Host([installed("bad", broken(NexusError("no licence")))], PluginPolicy(), report=problems.append)

    assert "no licence" in str(problems[0])

from types import SimpleNamespace

import pytest

import nexus_core
from nexus_core import hookimpl
from nexus_core.host.inspection import faults, idle, implementations


@hookimpl
def nexus_layers() -> list[object]:
    return []


def test_marked_functions_are_found_by_hook() -> None:
    assert implementations(SimpleNamespace(nexus_layers=nexus_layers)) == {"nexus_layers": nexus_layers}


def test_a_function_may_say_which_hook_it_implements() -> None:
    @hookimpl(specname="nexus_layers")
    def find() -> list[object]:
        return []

    plugin = SimpleNamespace(find=find)

    assert implementations(plugin) == {"nexus_layers": find}
    assert list(faults(plugin)) == []


def test_methods_of_an_instance_are_hooks() -> None:
    class Plugin:
        @hookimpl
        def nexus_layers(self, request: object) -> list[object]:  # noqa: ARG002 - part of the signature under test
            return []

    plugin = Plugin()

    assert list(implementations(plugin)) == ["nexus_layers"]
    assert list(faults(plugin)) == []


def test_properties_are_not_run_when_a_plugin_is_looked_at() -> None:
    class Plugin:
        @property
        def explosive(self) -> None:
            raise AssertionError

    assert implementations(Plugin()) == {}


def test_a_class_instead_of_an_instance_is_explained() -> None:
    class Plugin: ...

    assert list(faults(Plugin)) == ["Plugin is a class; pass an instance: Plugin()"]


def test_a_misspelt_hook_is_explained_with_the_nearest_name() -> None:
    @hookimpl
    def nexus_layer() -> None: ...

    found = list(faults(SimpleNamespace(nexus_layer=nexus_layer)))

    assert found == ["nexus_layer is not a hook; did you mean 'nexus_layers'?"]


def test_an_optional_hook_of_another_version_is_neither_a_fault_nor_called() -> None:
    @hookimpl(optionalhook=True)
    def nexus_of_the_future() -> None: ...

    plugin = SimpleNamespace(nexus_of_the_future=nexus_of_the_future)

    assert list(faults(plugin)) == []
    assert implementations(plugin) == {}


def test_a_wrong_parameter_is_explained_with_the_right_ones() -> None:
    @hookimpl
    def nexus_layers(reqest: object) -> None: ...

    (found,) = faults(SimpleNamespace(nexus_layers=nexus_layers))

    assert "'reqest'" in found
    assert "nexus_layers(request)" in found
    assert "did you mean 'request'?" in found


def test_parameters_with_a_default_are_the_plugins_own_affair() -> None:
    @hookimpl
    def nexus_layers(request: object, depth: int = 3) -> None: ...

    assert list(faults(SimpleNamespace(nexus_layers=nexus_layers))) == []


@pytest.mark.parametrize("options", [{"wrapper": True}, {"hookwrapper": True}])
def test_hook_wrappers_are_refused(options: dict[str, bool]) -> None:
    @hookimpl(**options)  # type: ignore[call-overload]
    def nexus_layers():  # type: ignore[no-untyped-def]  # noqa: ANN202 - a generator that never runs
        yield

    (found,) = faults(SimpleNamespace(nexus_layers=nexus_layers))

    assert "wrappers are not supported" in found


def test_async_hooks_are_refused() -> None:
    @hookimpl
    async def nexus_layers() -> None: ...

    (found,) = faults(SimpleNamespace(nexus_layers=nexus_layers))

    assert "async" in found


def test_a_hook_without_its_mark_is_noticed() -> None:
    found = idle(SimpleNamespace(nexus_layers=print, nexus_models=nexus_layers))

    assert found == ["nexus_layers is not marked @hookimpl, so it is never called"]


def test_a_misspelt_hook_without_its_mark_is_noticed() -> None:
    found = idle(SimpleNamespace(nexus_layerz=print))

    assert found == ["nexus_layerz looks like a hook but is none; did you mean 'nexus_layers'?"]


def test_a_plugin_without_any_hook_is_noticed() -> None:
    assert idle(SimpleNamespace(layers=print)) == ["it implements no hook; mark a function with @hookimpl"]


def test_what_a_plugin_imports_and_its_helpers_are_not_taken_for_misspelt_hooks() -> None:
    plugin = SimpleNamespace(
        nexus_layers=nexus_layers, nexus_core=nexus_core, nexus_home="/home", nexus_layer_names=print
    )

    assert idle(plugin) == []

from pathlib import Path
from typing import Any

import pytest

from nexus_core.plugin import Layer, LayerConfig, LayerText, LoadedLayers, SkippedFile

# Untyped, to be given what a type checker would refuse.
A_LAYER: Any = Layer
A_TEXT: Any = LayerText
A_CONFIG: Any = LayerConfig
A_SKIP: Any = SkippedFile


def test_layers_sort_from_defaults_to_local_with_the_farthest_ancestor_first() -> None:
    here = Path("/here")
    local = Layer("local", here, "local")
    parent = Layer("ancestor:parent", here, "ancestor", distance=1)
    grandparent = Layer("ancestor:grandparent", here, "ancestor", distance=2)
    own = Layer("global", here, "global")
    defaults = Layer("defaults", here, "defaults")

    ordered = sorted([local, parent, own, grandparent, defaults], key=lambda layer: layer.sort_key)

    assert ordered == [defaults, own, grandparent, parent, local]


def test_an_unknown_scope_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="defaults, global, ancestor, local, not 'team'"):
        Layer("team", Path("/here"), "team")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: A_LAYER("", Path("/here"), "local"), "Layer.name must not be empty"),
        (lambda: A_LAYER("x", "/here", "local"), "Layer.directory must be Path, not str"),
        (lambda: A_LAYER("x", Path("here"), "local"), "Layer.directory must be an absolute path, not 'here'"),
        (lambda: A_LAYER("x", Path("/here"), "local", distance="1"), "Layer.distance must be int, not str"),
        (lambda: A_LAYER("x", Path("/here"), "local", root=Path("up")), "Layer.root must be an absolute path"),
        (lambda: A_TEXT(Path("/a"), None), "LayerText.text must be str, not NoneType"),
        (lambda: A_TEXT(Path("/a"), b"abc"), "LayerText.text must be str, not bytes"),
        (lambda: A_TEXT("/a", "abc"), "LayerText.path must be Path, not str"),
        (lambda: A_TEXT(Path("/a"), "abc", "zzz"), "LayerText.purpose must be one of instructions, documentation"),
        (lambda: A_CONFIG(Path("/a"), []), "LayerConfig.settings must be dict, not list"),
        (lambda: A_TEXT(Path("/a"), "", pieces=[]), "LayerText.pieces must be tuple, not list"),
        (lambda: A_TEXT(Path("/a"), "", pieces=(1,)), "LayerText.pieces must be Piece, not int"),
        (lambda: A_SKIP(Path("/a"), ""), "SkippedFile.reason must not be empty"),
        (lambda: A_SKIP(Path("/a"), "x", line="3"), "SkippedFile.line must be int or None, not str"),
        (lambda: A_SKIP(Path("/a"), "x", line=True), "SkippedFile.line must be int or None, not bool"),
    ],
)
def test_a_value_that_would_fail_later_is_refused_where_it_is_made(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_a_layer_is_about_its_root_or_else_its_directory() -> None:
    assert Layer("global", Path("/home"), "global").project == Path("/home")
    assert Layer("local", Path("/project/.nexus3"), "local", root=Path("/project")).project == Path("/project")


def test_loaded_finds_the_texts_of_one_layer() -> None:
    one, two = Layer("global", Path("/one"), "global"), Layer("local", Path("/two"), "local")
    text = LayerText(Path("/two/NEXUS.md"), "hi", layer=two)

    loaded = LoadedLayers(layers=(one, two), texts=(text,))

    assert loaded.texts_of(one) == ()
    assert loaded.texts_of(two) == (text,)


def test_asking_for_the_texts_of_every_layer_does_not_compare_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [Layer(f"global:{n}", Path(f"/policy/{n}"), "global") for n in range(1000)]
    loaded = LoadedLayers(
        tuple(layers), tuple(LayerText(layer.directory / "x.md", "x", layer=layer) for layer in layers)
    )
    compared = 0

    def compare(one: Layer, other: object) -> bool:
        nonlocal compared
        compared += 1
        return one is other

    monkeypatch.setattr(Layer, "__eq__", compare)

    assert all(len(loaded.texts_of(layer)) == 1 for layer in layers)
    assert compared <= len(layers)


def test_a_skipped_part_of_a_file_has_a_place_that_editors_understand() -> None:
    assert [SkippedFile(Path("/a"), "x", line=line).place for line in (None, 3)] == ["/a", "/a:3"]

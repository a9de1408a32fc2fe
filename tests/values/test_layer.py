from pathlib import Path

import pytest

from nexus_core import Layer, LayerText, Loaded


def test_layers_sort_from_defaults_to_local_with_the_farthest_ancestor_first() -> None:
    here = Path("here")
    local = Layer("local", here, "local")
    parent = Layer("ancestor:parent", here, "ancestor", distance=1)
    grandparent = Layer("ancestor:grandparent", here, "ancestor", distance=2)
    own = Layer("global", here, "global")
    defaults = Layer("defaults", here, "defaults")

    ordered = sorted([local, parent, own, grandparent, defaults], key=lambda layer: layer.sort_key)

    assert ordered == [defaults, own, grandparent, parent, local]


def test_an_unknown_scope_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="defaults, global, ancestor, local, not 'team'"):
        Layer("team", Path("here"), "team")  # type: ignore[arg-type]


def test_a_layer_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        Layer("", Path("here"), "local")


def test_loaded_finds_the_texts_of_one_layer() -> None:
    one, two = Layer("global", Path("one"), "global"), Layer("local", Path("two"), "local")
    text = LayerText(Path("two/NEXUS.md"), "hi", layer=two)

    loaded = Loaded(layers=(one, two), texts=(text,))

    assert loaded.texts_of(one) == ()
    assert loaded.texts_of(two) == (text,)

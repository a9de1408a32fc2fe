"""The embedder `wordllama`: vectors of a small static model, computed on this machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.plugin import Embedder


@hookimpl
def nexus_embedders() -> list[Embedder]:
    """Return the embedder. The model is loaded when it is first used."""
    from nexus_core.plugin import Embedder

    return [Embedder(name="wordllama", embed=embed_texts)]


def embed_texts(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector of 256 numbers for each text."""
    vectors: list[list[float]] = _load_model().embed(list(texts)).tolist()
    return vectors


@cache
def _load_model() -> Any:  # noqa: ANN401 - WordLlama has no types
    import wordllama  # type: ignore[import-not-found,import-untyped,unused-ignore] # it has no types

    # The package itself is given as the cache, because it looks for its own tokenizer only there.
    return wordllama.WordLlama.load(dim=256, cache_dir=Path(wordllama.__file__).parent, disable_download=True)

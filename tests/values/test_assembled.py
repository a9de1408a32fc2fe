"""What one call of a model is made of can be copied, and says why it cannot be pickled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest

from nexus_core import Nexus
from nexus_core.context import AssembledContext


@pytest.fixture
def context() -> Iterator[AssembledContext]:
    with Nexus(ledger="memory:") as nexus:
        yield nexus.session("work", model="claude-opus-5").ask("Hello")


def test_a_copy_is_equal_and_writes_the_same_call(context: AssembledContext) -> None:
    for copied in (copy.copy(context), copy.deepcopy(context)):
        assert copied is not context
        assert copied == context
        assert copied.to("anthropic") == context.to("anthropic")
        assert copied.placements == context.placements


def test_a_deep_copy_shares_nothing_that_can_be_changed(context: AssembledContext) -> None:
    copied = copy.deepcopy(context)

    assert copied.model_config is not context.model_config
    assert copied.system_context is not context.system_context


def test_pickling_says_what_to_send_instead(context: AssembledContext) -> None:
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(context)

"""What one call of a model is made of can be copied, and says why it cannot be pickled."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Iterator

import pytest

from nexus_core import Nexus
from nexus_core.context import AssembledContext
from nexus_core.types.assembled import copy_on_read


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
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(context)


def test_a_context_apart_writes_the_same_call_and_shares_nothing_that_can_be_changed(context: AssembledContext) -> None:
    apart = copy_on_read(context)

    assert isinstance(apart, AssembledContext)
    assert (repr(apart), apart.to("anthropic")) == (repr(context), context.to("anthropic"))
    assert apart.model_config is apart.model_config
    assert apart.model_config is not context.model_config
    assert apart.current_message == context.current_message
    assert apart.current_message is not context.current_message


def test_a_context_apart_can_be_copied_and_replaced_like_any_other(context: AssembledContext) -> None:
    apart = copy_on_read(context)

    assert copy.deepcopy(apart).to("openai") == context.to("openai")
    assert dataclasses.replace(apart, model="gpt-4o").model == "gpt-4o"
    assert copy_on_read(apart).messages == context.messages


def test_a_context_apart_copies_only_what_somebody_looks_at(
    context: AssembledContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[object] = []
    monkeypatch.setattr("nexus_core.types.assembled.copy_value", copied.append)

    assert copy_on_read(context).model is None  # a copy, as it were

    assert copied == ["claude-opus-5"]


def test_a_context_apart_has_no_other_attributes(context: AssembledContext) -> None:
    with pytest.raises(AttributeError, match="no attribute 'modle'"):
        getattr(copy_on_read(context), "modle")  # noqa: B009 - a type checker would see it

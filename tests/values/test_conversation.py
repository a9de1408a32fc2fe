"""What goes to a model and what comes back."""

from __future__ import annotations

import pytest

from nexus_core.values.conversation import Tool


def test_a_scope_that_means_nothing_is_refused_with_the_name_of_the_tool() -> None:
    with pytest.raises(
        ValueError, match="the scope of the tool 'post' must be one of general, messaging, spawn, not 'mesaging'"
    ):
        Tool(name="post", scope="mesaging")  # type: ignore[arg-type]

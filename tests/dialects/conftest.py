"""A server that writes down what the SDKs' clients send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.dialects.support import Loopback, listening

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    """What a client of an API is told to talk to."""
    with listening() as heard:
        yield heard

"""Fixtures of sessions over a ledger, as in tests/session."""

from __future__ import annotations

from tests.session.conftest import clock, kept_in, ledger, open_nexus

__all__ = ["clock", "kept_in", "ledger", "open_nexus"]

"""Keeps the official SDK from printing.

It logs every misdeed of the other side, with a traceback, and Python prints what is logged where nobody set up a log.
"""

from __future__ import annotations

import logging

for name in ("mcp", "client"):  # the SDK's session calls itself that
    logging.getLogger(name).addHandler(logging.NullHandler())

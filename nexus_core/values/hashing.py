"""The hash by which everything in Nexus is addressed; `hashlib` has the same one, and loads OpenSSL besides."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython may keep it elsewhere
    from hashlib import blake2b

__all__ = ["blake2b"]

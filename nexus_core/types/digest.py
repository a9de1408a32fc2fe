"""BLAKE2b, the hash function of every digest, without loading OpenSSL as hashlib does."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # `_blake2` is a module of CPython only
    from hashlib import blake2b

__all__ = ["blake2b"]

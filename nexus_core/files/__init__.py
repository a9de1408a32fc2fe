"""Safe reading and atomic writing."""

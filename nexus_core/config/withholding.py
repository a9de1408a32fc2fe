"""Settings as they may be shown: without keys, passwords, and what may be one."""

from __future__ import annotations

from typing import Any

from nexus_core.config.servers import ALIAS, SETTING
from nexus_core.text.written_secrets import hide_secrets

_HIDDEN = "(hidden)"
_TABLES = frozenset({"env", "environment", "headers", "http_headers"})
"""What files call the variables and headers of a server."""
_SECRETS = ("api_key", "apikey", "access_key", "secret_key", "token", "password", "secret", "authorization", "cookie")
"""How the name of a setting ends whose value nobody should see; the name of a variable in its place is none."""


def withhold_secrets(value: Any, pointer: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """A value with words in the place of secrets.

    Args:
        value: All settings, or one.
        pointer: Where it stands among them, as a JSON pointer.
    """
    if isinstance(value, dict):
        return {key: withhold_secrets(item, f"{pointer}/{key}") for key, item in value.items()}
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):  # what a word is can be told from that before it
            return hide_secrets(value)
        return [withhold_secrets(item, f"{pointer}/{place}") for place, item in enumerate(value)]
    if _is_secret(pointer, value):
        return _HIDDEN
    return hide_secrets([value])[0] if isinstance(value, str) else value


def _is_secret(pointer: str, value: object) -> bool:
    path = pointer.split("/")
    # The values of a server's environment and headers often are, whatever they are called.
    if pointer.startswith((f"/{SETTING}/", f"/{ALIAS}/")) and not _TABLES.isdisjoint(path):
        return True
    if not isinstance(value, str) or not path[-1].lower().replace("-", "_").endswith(_SECRETS):
        return False
    return not ("_" in value and value.isupper() and value.isidentifier())

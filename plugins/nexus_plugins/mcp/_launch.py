"""Launch parameters of an approved server: command, environment, address."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from nexus_core import ConfigError, FileError
from nexus_core.plugin.files import file_lock, read_bytes
from nexus_core.plugin.settings import clear_for_start
from nexus_core.plugin.text import secrets_in
from nexus_plugins.mcp._errors import ServerRefusedError
from nexus_plugins.mcp._references import resolve_references

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from ipaddress import IPv4Address, IPv6Address

    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers
    from nexus_core.plugin.settings import MCPServerConfig, MCPServerWithOrigin

PASSED_VARIABLES = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE"),
)
"""The environment variables that every server gets; none of them holds a secret."""
MIN_SECRET_CHARACTERS = 4  # masking shorter values would make messages unreadable


class ServerLaunch(NamedTuple):
    """Resolved launch parameters of a server. They hold secrets: never print or store them.

    Attributes:
        name: The server's name.
        command: The program and its arguments; empty for a remote server.
        env: The complete environment of the program.
        cwd: Working directory of the program.
        url: The URL; "" for a program.
        headers: HTTP headers of every request.
        is_own: True if the definition is the user's, False if it is a project's.
        is_stream: True if the URL uses the older SSE protocol with two channels.
        secrets: The values that must not appear in messages.
        still_holds: Returns True if everything that was approved is unchanged since the launch was prepared.
        token_file: The file for the tokens of a remote server (OAuth); None if it has a token of its own, or is a
            program.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    url: str
    headers: Mapping[str, str]
    is_own: bool
    is_stream: bool
    secrets: frozenset[str]
    still_holds: Callable[[], bool]
    token_file: Path | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def mask(self, text: str) -> str:
        """Return a text with the secrets replaced by `***`."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def prepare_launch(server: MCPServerWithOrigin, loaded: LoadedLayers, request: Request) -> ServerLaunch:
    """Return the launch parameters of an approved server.

    Raises:
        ServerRefusedError: The server is disabled, not approved or changed since, or its URL is unsafe.
        ConfigError: Its definition refers to a variable or file that does not exist.
    """
    config = server.config
    clearance = clear_for_start(server, loaded, request)
    _require_approved(server, clearance.decision)
    layer = next((layer for layer in loaded.layers if layer.name == server.origin), None)
    is_own = layer is not None and layer.is_own
    folder = request.cwd if layer is None or is_own else layer.project

    def resolve(text: str, what: str) -> str:
        return resolve_references(text, os.environ, folder, f"{what} of server {config.name!r}")

    url = resolve(config.url, "the address")
    if config.url and (error := find_address_error(url, own=is_own)):
        raise ServerRefusedError(config.name, f"is not connected to: its address {error}")
    env = {
        name: resolve(value, f"variable {name!r}")
        for name, value in config.env.items()
        if not _is_unset_passthrough(name, value)
    }
    if config.env_file:
        path = folder / os.path.expanduser(resolve(config.env_file, "the file with variables"))  # noqa: PTH111 - never fails
        env = read_env_file(path, config.name, None if is_own else folder) | env
    headers = {name: resolve(value, f"header {name!r}") for name, value in config.headers.items()}
    command = tuple(resolve(word, "the command") for word in config.command)
    return ServerLaunch(
        name=config.name,
        command=command,
        env={name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ} | clearance.variables | env,
        cwd=folder / resolve(config.cwd, "the directory") if config.cwd else folder,
        url=url,
        headers=headers,
        is_own=is_own,
        is_stream=config.type == "sse",
        secrets=_collect_secrets(config, (*env.values(), *headers.values()), (*command, url)),
        still_holds=clearance.still_holds,
        token_file=None if command or has_own_token(headers) else find_token_file(request.home, config.name, url),
    )


TOKENS_DIRECTORY = "mcp-tokens"


def has_own_token(headers: Mapping[str, str]) -> bool:
    """Return True if a server's definition has a header for its authorization."""
    return "authorization" in map(str.lower, headers)


def find_token_file(home: Path, name: str, url: str) -> Path:
    """Return the file for the tokens of a server. Another address has another file, so no token goes elsewhere."""
    return home / TOKENS_DIRECTORY / f"{_digest(name)}-{_digest(url)}.json"


def find_token_lock(path: Path) -> Path:
    """Return the lock file of a file for tokens."""
    return path.with_suffix(".lock")


def delete_token_files(home: Path, name: str) -> int:
    """Delete the tokens of a server, for every address that it had, and return how many files that were.

    Raises:
        FileError: A file cannot be deleted, or another process renews its tokens for ten seconds.
    """
    found = sorted((home / TOKENS_DIRECTORY).glob(f"{_digest(name)}-*.json"))
    for path in found:
        with file_lock(find_token_lock(path)):  # a process that is renewing them must not store them later
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise FileError(f"cannot delete: {error.strerror}", where=str(path)) from error
    return len(found)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_unset_passthrough(name: str, value: str) -> bool:
    """Return True if a variable is only passed through and is not set."""
    return value == f"${{{name}:-}}" and name not in os.environ


def _require_approved(server: MCPServerWithOrigin, decision: str) -> None:
    name = server.config.name
    if not server.config.enabled:
        raise ServerRefusedError(name, "is switched off", hint=f"nexus mcp enable {name}")
    if decision == "changed":
        hint = "`nexus trust diff` shows how, `nexus trust allow` decides"
        raise ServerRefusedError(name, "has changed since you allowed it", hint=hint)
    if decision != "allowed" or not server.approved:
        raise ServerRefusedError(
            name, "is not approved", hint="`nexus trust allow` shows what it would do, and decides"
        )


def _collect_secrets(config: MCPServerConfig, values: Sequence[str], words: Sequence[str]) -> frozenset[str]:
    """Return all values of variables and headers, and resolved or password-like parts of command and URL."""
    unresolved = (*config.command, config.url)
    resolved = [word for word, before in zip(words, unresolved, strict=True) if word != before]
    addresses = [config.url] if "@" in config.url or "?" in config.url else []
    tokens = [value.split()[-1] for value in values if value.strip()]  # without a scheme such as `Bearer`
    parts = [part for each in secrets_in(words) for part in each]
    found = (*values, *tokens, *resolved, *addresses, *parts)
    return frozenset(each for each in found if len(each) >= MIN_SECRET_CHARACTERS)


MAX_ENV_FILE_BYTES = 1024 * 1024
_ASSIGNMENT = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*
        (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>[^"'\s#][^#]*?|(?=\s*$)|(?=\#)) )
        \s*(?:\#.*)?""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
# Approval covers the file, but not the code that these variables would load.
_CODE_LOADING_VARIABLES = re.compile(
    r"PATH|BASH_ENV|ENV|JAVA_TOOL_OPTIONS|(?:LD|DYLD|NODE|PERL5?|PYTHON|RUBY)_?[A-Z0-9_]*"
)


def read_env_file(path: Path, server: str, inside: Path | None) -> dict[str, str]:
    """Read environment variables from a file of lines such as `TOKEN=value`.

    Args:
        path: The file.
        server: The name of the server that uses it.
        inside: The project's directory, which must contain the file; None for a server of the user.

    Raises:
        ServerRefusedError: The file is outside the project, or sets a variable that loads code.
        ConfigError: The file cannot be read, or has an invalid line. No line is shown: it may hold a secret.
    """
    if inside is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(inside)):
        raise ServerRefusedError(server, "is not started: its variables are in a file outside the project")
    try:
        data = read_bytes(path, max_bytes=MAX_ENV_FILE_BYTES)
        text = None if data is None else data.decode("utf-8-sig")
    except (FileError, UnicodeDecodeError):
        text = None
    if text is None:
        hint = "make it readable, or remove 'env_file'"
        raise ConfigError(f"the variables of server {server!r} cannot be read", where=str(path), hint=hint)
    variables = _parse_env_file(text, path, server)
    for name in variables if inside is not None else ():
        if _CODE_LOADING_VARIABLES.fullmatch(name):
            raise ServerRefusedError(
                server, f"is not started: the file with its variables sets {name}, which may load code"
            )
    return variables


def _parse_env_file(text: str, path: Path, server: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match is None:
            hint = "write NAME=value, with quotation marks around a value that has blanks"
            raise ConfigError(f"a variable of server {server!r} is invalid", where=f"{path}:{number}", hint=hint)
        variables[match["name"]] = _unquote_value(match)
    return variables


def _unquote_value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), match["double"])
    return str(match["single"] if match["single"] is not None else match["bare"] or "").strip()


LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


def find_address_error(url: str, *, own: bool) -> str:
    """Return why Nexus does not connect to a URL, or "" if it may.

    Args:
        url: The URL, with all references resolved.
        own: True if the definition is the user's. A project's URL is restricted, because it could make the user's
            machine send requests to hosts that only that machine can reach.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in {"http", "https"} or not host:
        return "is not a URL: it must start with https:// or http:// and name a host"
    if own or host in LOOPBACK_HOSTS:
        return ""
    if parts.scheme != "https":
        return "is not encrypted; the server of a project must use https"
    if any(map(_is_internal_address, _resolve_host(host))):
        return "leads to this machine or to a link-local address"
    return ""


def resolve_safe_address(host: str) -> str | None:
    """Return the IP address to connect to for a project's server, or None if a name resolves to an internal one.

    A name that cannot be resolved here is returned as it is: a proxy may resolve it.
    """
    if host in LOOPBACK_HOSTS:
        return host
    found = _resolve_host(host)
    if any(map(_is_internal_address, found)):
        return None
    return str(found[0]) if found else host


def _resolve_host(host: str) -> list[IPv4Address | IPv6Address]:
    try:
        return [ip_address(host)]
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError):
        return []  # the connection fails as well and reports it
    return [ip_address(str(each[4][0]).partition("%")[0]) for each in found]


def _is_internal_address(address: IPv4Address | IPv6Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    return address.is_link_local or address.is_loopback or address.is_unspecified or address.is_multicast

"""Digests of the code that an approval covers: named files and whole directories.

The content of a setting names them (`code`). Reading them takes longer than everything else about an approval, so it
happens when a program is about to be started or approved, and not when a prompt is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.files.read import open_beneath, parts_beneath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_COVERED_FILES = 2_000
"""Files of directories that are covered: a program's package has hundreds, a whole small repository 1,400."""
MAX_COVERED_BYTES = 64 * 1024 * 1024
"""Bytes of those files. Reading up to both limits takes about 0.2 s."""
MAX_NAMED_BYTES = 1024 * 1024 * 1024
"""Bytes of the files that a command names itself; larger ones are identified by inode and times (ctime)."""
MAX_QUICK_BYTES = 1024 * 1024
"""The largest named file whose bytes are read when nothing is about to be started."""
MAX_LISTED_FILES = 50_000
"""Files that are listed; those beyond `MAX_COVERED_FILES` are covered by their names and sizes only."""

# No program loads code from there: version control, caches of checkers, and Nexus's own settings and texts.
_SKIPPED_DIRECTORIES = frozenset({".git", ".hg", ".jj", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
_NEXUS_DIRECTORY, _NEXUS_FILES = ".nexus3", (".md", "config.json", "mcp.json")
_BYTECODE = "__pycache__"
_BYTECODE_HEADER = 8  # bytes: magic number of the Python version, then flags for the comparison with the source
# Listed after everything else, so that the program itself is covered first.
_LATE_DIRECTORIES = frozenset({"node_modules", "site-packages", "vendor", ".venv", "venv", ".tox", ".nox"})
_CHUNK_BYTES = 1024 * 1024
_SETTLED_NANOSECONDS = 2_000_000_000  # nanoseconds after which another change is sure to set another time


class _CodeFile(NamedTuple):
    """A file or a link of the code, and its `lstat` result."""

    name: str
    status: os.stat_result


class CodeDifferences(NamedTuple):
    """Names of files whose bytes differ from the approved ones, that are new, and that are missing."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def add_code_digests(content: str, *, is_fresh: bool = False) -> str:
    """Return a content with the digests of the code that it runs, or the same content if it runs none.

    Args:
        content: As `fingerprint` writes it.
        is_fresh: True to read all bytes, even of files that this process has read and that seem unchanged.
    """
    data = _parse_content(content)
    code = _get_code(data)
    if code is None or "digests" in code:
        return content
    digests, uncovered = _digest_code(code, is_fresh=is_fresh)
    return _serialize_content({**data, "code": {**code, "digests": digests, "uncovered": uncovered}})


def matches_quickly(approved: str, present: str) -> bool:
    """Return True if a content equals the approved one, without reading the files of directories."""
    old, new = _parse_content(approved), _parse_content(present)
    old_code, new_code = _get_code(old), _get_code(new)
    if old_code is None or new_code is None:
        return approved == present
    digests = old_code.get("digests", {})
    outline = {key: value for key, value in old_code.items() if key in new_code}
    if {**old, "code": None} != {**new, "code": None} or outline != new_code or not isinstance(digests, dict):
        return False
    root = str(new_code["root"])
    for name in new_code["files"]:
        status = _lstat_path(os.path.join(root, name))  # noqa: PTH118 - names
        if (
            status is not None
            and status.st_size <= MAX_QUICK_BYTES
            and digests.get(name) != _digest_file(root, name, status)
        ):
            return False
    return True


def is_unchanged(content: str) -> bool:
    """Return True if the code is unchanged since its digests were added. Reads every byte."""
    data = _parse_content(content)
    code = _get_code(data)
    if code is None or "digests" not in code:
        return code is None
    outline = {key: value for key, value in code.items() if key not in {"digests", "uncovered"}}
    return add_code_digests(_serialize_content({**data, "code": outline}), is_fresh=True) == content


def digest_code_stats(content: str) -> str:
    """Return a digest of the stat results of the code, which detects files that were swapped and put back.

    The bytes would not show that. But no program can reset the time of a file's last inode change (ctime).
    """
    code = _get_code(_parse_content(content))
    signature = hashlib.sha256()
    if code is not None:
        paths = ((name, os.path.join(code["root"], name)) for name in code["files"])  # noqa: PTH118 - bytes stay bytes
        named = (_CodeFile(name, status) for name, path in paths if (status := _lstat_path(path)))
        for name, status in (*named, *_list_trees(code)):
            times = status.st_mtime_ns, status.st_ctime_ns
            signature.update(repr((name, status.st_dev, status.st_ino, status.st_size, *times)).encode())
    return signature.hexdigest()


def describe_uncovered_code(content: str) -> str:
    """Describe the code that an approval of a content with digests does not cover, or "" if it covers everything."""
    code = _get_code(_parse_content(content)) or {}
    uncovered = code.get("uncovered") or {}
    parts = []
    if count := uncovered.get("files", 0):
        size = f"{uncovered['bytes'] / 1e6:,.0f} MB"
        more = "more than " if uncovered.get("more") else ""
        parts.append(
            f"{more}{count:,} files ({size}), the first of them {uncovered['first']}, are beyond the "
            f"{MAX_COVERED_FILES:,} files and {MAX_COVERED_BYTES >> 20} MiB that an approval covers; "
            "of these, only names and sizes are"
        )
    if links := uncovered.get("links"):
        named = ", ".join(links[:3]) + (f" and {len(links) - 3:,} more" if len(links) > 3 else "")  # noqa: PLR2004
        parts.append(f"links that lead outside the project: {named}")
    return "; ".join(parts)


def describe_covered_code(content: str) -> str:
    """Describe the code that an approval of a content with digests covers, or "" if it runs none of the project."""
    code = _get_code(_parse_content(content)) or {}
    digests = code.get("digests") or {}
    if not digests:
        return ""
    trees = ", ".join(f"{tree}/" if tree else "the whole project" for tree in code["trees"])
    count = f"{len(digests):,} file{'s' if len(digests) > 1 else ''}"
    return f"{count}, all of {trees}" if trees else f"{count}: {', '.join(sorted(digests)[:5])}"


def compare_code(approved: str, present: str) -> CodeDifferences:
    """Return the files that differ between two contents with digests."""
    old, new = ((_get_code(_parse_content(each)) or {}).get("digests") or {} for each in (approved, present))
    return CodeDifferences(
        tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
    )


def predates_code_coverage(approved: str, present: str) -> bool:
    """Return True if an approval is older than the coverage of the code that this content runs."""
    return (
        _get_code(_parse_content(present)) is not None
        and _get_code(_parse_content(approved)) is None
        and bool(approved)
    )


def _digest_code(code: dict[str, Any], *, is_fresh: bool) -> tuple[dict[str, object], dict[str, object]]:
    """Return the digests of all code, and a summary of the files that they do not cover."""
    root = str(code["root"])
    digests: dict[str, object] = {}
    left = MAX_NAMED_BYTES
    for name in code["files"]:
        status = _lstat_path(os.path.join(root, name))  # noqa: PTH118 - names
        if status is not None:
            digests[name] = _digest_file(root, name, status, max_bytes=left, is_fresh=is_fresh)
            left -= status.st_size
    count, left = 0, MAX_COVERED_BYTES
    beyond: list[_CodeFile] = []
    for entry in _list_trees(code):
        if entry.name in digests:
            continue
        size = 0 if stat.S_ISLNK(entry.status.st_mode) else entry.status.st_size
        if count >= MAX_COVERED_FILES or size > left:
            beyond.append(entry)
            continue
        digests[entry.name] = _digest_file(root, entry.name, entry.status, is_fresh=is_fresh)
        count, left = count + 1, left - size
    links = sorted(name for name, digest in digests.items() if isinstance(digest, dict) and "outside" in digest)
    return digests, _summarize_uncovered(beyond) | ({"links": links} if links else {})


def _summarize_uncovered(entries: list[_CodeFile]) -> dict[str, object]:
    if not entries:
        return {}
    names = hashlib.sha256()
    for name, status in sorted((entry.name, entry.status.st_size) for entry in entries):
        names.update(f"{name}\0{status}\0".encode("utf-8", "surrogatepass"))
    size = sum(entry.status.st_size for entry in entries)
    found: dict[str, object] = {"files": len(entries), "bytes": size, "names": f"sha256:{names.hexdigest()}"}
    return {
        **found,
        "first": entries[0].name,
        **({"more": True} if len(entries) >= MAX_LISTED_FILES - MAX_COVERED_FILES else {}),
    }


def _list_trees(code: dict[str, Any]) -> Iterator[_CodeFile]:
    """Yield the files and links of the code's directories, sorted: near ones first, installed packages last."""
    root = str(code["root"])
    soon = deque(tree for tree in code["trees"] if os.path.basename(tree) not in _LATE_DIRECTORIES)  # noqa: PTH119 - names
    late = deque(tree for tree in code["trees"] if tree not in soon)
    seen: set[tuple[int, int]] = set()
    with_bytecode = bool(code.get("with_bytecode"))
    listed = 0
    while (soon or late) and listed < MAX_LISTED_FILES:
        tree = soon.popleft() if soon else late.popleft()
        path = os.path.join(root, tree) if tree else root  # noqa: PTH118 - names
        status = _lstat_path(path)
        if status is None or (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        files: list[_CodeFile] = []
        for name, entry in _scan_directory(path):
            inside = f"{tree}/{name}" if tree else name
            if stat.S_ISDIR(entry.st_mode):
                if name not in _SKIPPED_DIRECTORIES:
                    (late if name in _LATE_DIRECTORIES else soon).append(inside)
                continue
            if stat.S_ISLNK(entry.st_mode):
                target = _relative_name(root, os.path.realpath(os.path.join(path, name)))  # noqa: PTH118 - names
                if target is not None and os.path.isdir(os.path.join(root, target)):  # noqa: PTH112, PTH118 - names
                    late.append(target)
            if _is_skipped(root, tree, name, with_bytecode=with_bytecode):
                continue
            if stat.S_ISREG(entry.st_mode) or stat.S_ISLNK(entry.st_mode):
                files.append(_CodeFile(inside, entry))
        listed += len(files)
        yield from files[: MAX_LISTED_FILES + len(files) - listed] if listed > MAX_LISTED_FILES else files


def _is_skipped(root: str, tree: str, name: str, *, with_bytecode: bool) -> bool:
    """Return True if no program loads the file.

    Python rewrites its bytecode whenever the source has another time, and servers that Nexus starts do not read it.
    Bytecode that is flagged to need no such comparison was put there by something else, so it counts.
    """
    folder = os.path.basename(tree)  # noqa: PTH119 - a name
    if folder == _NEXUS_DIRECTORY:
        return name.endswith(_NEXUS_FILES)
    if folder != _BYTECODE or with_bytecode or not name.endswith(".pyc"):
        return False
    return _first_bytes(root, f"{tree}/{name}")[4:] == bytes(4)


def _first_bytes(root: str, name: str) -> bytes:
    try:
        descriptor, _ = open_beneath(root, name.split("/"))
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, _BYTECODE_HEADER) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _scan_directory(path: str) -> list[tuple[str, os.stat_result]]:
    """Return the entries of a directory, sorted by name, or [] if it cannot be listed."""
    found = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
                except OSError:
                    continue
    except OSError:
        return []
    return sorted(found, key=lambda each: each[0])


def _digest_file(
    root: str, name: str, status: os.stat_result, *, max_bytes: int = MAX_NAMED_BYTES, is_fresh: bool = False
) -> object:
    """Return the record of a file: the digest of its bytes, and the target of a link."""
    real = name
    if stat.S_ISLNK(status.st_mode):
        path = os.path.join(root, name)  # noqa: PTH118 - names
        target = os.path.realpath(path)
        inside = _relative_name(root, target)
        if inside is None:  # nothing outside is read on behalf of a project
            return {"outside": target}
        followed = _lstat_path(target)
        if followed is None or not stat.S_ISREG(followed.st_mode):
            return {"link": inside}
        real, status = inside, followed
    if status.st_size <= max_bytes:
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        # A file that changed a moment ago may change again without a new time.
        is_settled = 0 < status.st_ctime_ns < time.time_ns() - _SETTLED_NANOSECONDS
        digest = _read_digest_cached(root, real, key) if is_settled and not is_fresh else _read_digest(root, real)
        if digest:
            return digest if real == name else {"link": real, "digest": digest}
    # Not the bytes, but a change of them changes these values.
    times = {"modified": status.st_mtime_ns, "changed": status.st_ctime_ns}
    return {"unread": True, "size": status.st_size, "inode": status.st_ino, **times}


@lru_cache(maxsize=4 * MAX_COVERED_FILES)
def _read_digest_cached(root: str, name: str, _key: tuple[int, ...]) -> str:
    return _read_digest(root, name)


def _read_digest(root: str, name: str) -> str:
    """Return the digest of a regular file's bytes, following no link on the way, or "" if it cannot be read."""
    try:
        descriptor, _ = open_beneath(root, name.split("/"))
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        digest = hashlib.sha256()
        while data := os.read(descriptor, _CHUNK_BYTES):
            digest.update(data)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return f"sha256:{digest.hexdigest()}"


def _relative_name(root: str, real: str) -> str | None:
    if real == root:
        return ""
    names: Iterable[str] | None = parts_beneath(root, real)
    return None if names is None else "/".join(names)


def _lstat_path(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _parse_content(content: str) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _get_code(data: dict[str, Any]) -> dict[str, Any] | None:
    code = data.get("code")
    if not isinstance(code, dict) or not isinstance(code.get("root"), str):
        return None
    return code if all(isinstance(code.get(key), list) for key in ("files", "trees")) else None


def _serialize_content(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)

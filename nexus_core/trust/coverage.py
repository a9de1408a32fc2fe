"""The bytes that an approval covers: of every file that a command names, and of the directories its code lies in.

A definition says which these are (`code` in its content); here they are looked at, which takes longer than everything
else about an approval. So it is done when a program is about to be started or approved, and not when a prompt is built.
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

from nexus_core.files.beneath import names_beneath, open_beneath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_FILES = 2_000
"""Files of directories that are covered: the package of a program has hundreds, a whole small repository 1,400."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of those files. Both limits together take about 0.2 s."""
MAX_NAMED_BYTES = 1024 * 1024 * 1024
"""Bytes of the files that a command names itself; what is larger is recognised by facts that cannot be set back."""
QUICK_BYTES = 1024 * 1024
"""The largest named file whose bytes are looked at when nothing is about to be started."""
MAX_ENTRIES = 50_000
"""Files that are listed; the ones beyond `MAX_FILES` are covered by their names and sizes only."""

# No program loads code from there: records of version control, what checkers keep, and Nexus's own settings and texts.
_LEFT_OUT = frozenset({".git", ".hg", ".jj", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
_OWN_DIRECTORY, _OWN_FILES = ".nexus3", (".md", "config.json", "mcp.json")
_BYTECODE = "__pycache__"
_BYTECODE_HEADER = 8  # bytes: who wrote it, then how it is compared with its source
# Looked at after everything else, so that the program itself is covered first.
_LATE = frozenset({"node_modules", "site-packages", "vendor", ".venv", "venv", ".tox", ".nox"})
_CHUNK = 1024 * 1024
_SETTLED = 2_000_000_000  # nanoseconds after which a file that changes has another time for sure


class _Entry(NamedTuple):
    """A file or a link of the code, and the facts about it, a link not followed."""

    name: str
    facts: os.stat_result


class CodeDifferences(NamedTuple):
    """Names of files whose bytes are others than approved, that are new, and that are gone."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def measure(content: str, *, is_fresh: bool = False) -> str:
    """A content with the digests of the code that it says is run; the same content if it says nothing of the kind.

    Args:
        content: As `fingerprint` writes it.
        is_fresh: Whether all bytes are read, even of files that this process has read and that seem to be the same.
    """
    data = _parse(content)
    code = _code(data)
    if code is None or "digests" in code:
        return content
    digests, uncovered = _look(code, is_fresh=is_fresh)
    return _canonical({**data, "code": {**code, "digests": digests, "uncovered": uncovered}})


def is_alike(approved: str, present: str) -> bool:
    """Return True if a content equals the approved one, without reading the files of directories."""
    old, new = _parse(approved), _parse(present)
    old_code, new_code = _code(old), _code(new)
    if old_code is None or new_code is None:
        return approved == present
    digests = old_code.get("digests", {})
    outline = {key: value for key, value in old_code.items() if key in new_code}
    if {**old, "code": None} != {**new, "code": None} or outline != new_code or not isinstance(digests, dict):
        return False
    root = str(new_code["root"])
    for name in new_code["files"]:
        facts = _facts(os.path.join(root, name))  # noqa: PTH118 - names
        if facts is not None and facts.st_size <= QUICK_BYTES and digests.get(name) != _digest(root, name, facts):
            return False
    return True


def is_unchanged(content: str) -> bool:
    """Return True if the code is unchanged since it was measured; reads every byte."""
    data = _parse(content)
    code = _code(data)
    if code is None or "digests" not in code:
        return code is None
    outline = {key: value for key, value in code.items() if key not in {"digests", "uncovered"}}
    return measure(_canonical({**data, "code": outline}), is_fresh=True) == content


def sign(content: str) -> str:
    """A digest of the facts about the code: what is exchanged and put back leaves a trace in it, unlike in the bytes.

    Nobody can set back the time at which the system last changed a file's entry (ctime).
    """
    code = _code(_parse(content))
    signature = hashlib.sha256()
    if code is not None:
        named = (_Entry(name, facts) for name in code["files"] if (facts := _facts(os.path.join(code["root"], name))))  # noqa: PTH118
        for name, facts in (*named, *_list_trees(code)):
            times = facts.st_mtime_ns, facts.st_ctime_ns
            signature.update(repr((name, facts.st_dev, facts.st_ino, facts.st_size, *times)).encode())
    return signature.hexdigest()


def describe_uncovered(content: str) -> str:
    """The code that an approval of a measured content does not cover, in words; "" when it covers everything."""
    code = _code(_parse(content)) or {}
    uncovered = code.get("uncovered") or {}
    told = []
    if count := uncovered.get("files", 0):
        size = f"{uncovered['bytes'] / 1e6:,.0f} MB"
        more = "more than " if uncovered.get("more") else ""
        told.append(
            f"{more}{count:,} files ({size}), the first of them {uncovered['first']}, are beyond the {MAX_FILES:,} "
            f"files and {MAX_BYTES >> 20} MiB that an approval covers; of these, only names and sizes are"
        )
    if links := uncovered.get("links"):
        named = ", ".join(links[:3]) + (f" and {len(links) - 3:,} more" if len(links) > 3 else "")  # noqa: PLR2004
        told.append(f"links that lead outside the project: {named}")
    return "; ".join(told)


def describe_covered(content: str) -> str:
    """The code that an approval of a measured content covers, in words; "" when none of the project's is run."""
    code = _code(_parse(content)) or {}
    digests = code.get("digests") or {}
    if not digests:
        return ""
    trees = ", ".join(f"{tree}/" if tree else "the whole project" for tree in code["trees"])
    count = f"{len(digests):,} file{'s' if len(digests) > 1 else ''}"
    return f"{count}, all of {trees}" if trees else f"{count}: {', '.join(sorted(digests)[:5])}"


def compare_code(approved: str, present: str) -> CodeDifferences:
    """The files that differ between two measured contents."""
    old, new = ((_code(_parse(each)) or {}).get("digests") or {} for each in (approved, present))
    return CodeDifferences(
        tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
    )


def is_outdated(approved: str, present: str) -> bool:
    """Return True if an approval is older than the coverage of the code that this content runs."""
    return _code(_parse(present)) is not None and _code(_parse(approved)) is None and bool(approved)


def _look(code: dict[str, Any], *, is_fresh: bool) -> tuple[dict[str, object], dict[str, object]]:
    """The digests of all code, and what they do not cover."""
    root = str(code["root"])
    digests: dict[str, object] = {}
    left = MAX_NAMED_BYTES
    for name in code["files"]:
        facts = _facts(os.path.join(root, name))  # noqa: PTH118 - names
        if facts is not None:
            digests[name] = _digest(root, name, facts, most=left, is_fresh=is_fresh)
            left -= facts.st_size
    count, left = 0, MAX_BYTES
    beyond: list[_Entry] = []
    for entry in _list_trees(code):
        if entry.name in digests:
            continue
        size = 0 if stat.S_ISLNK(entry.facts.st_mode) else entry.facts.st_size
        if count >= MAX_FILES or size > left:
            beyond.append(entry)
            continue
        digests[entry.name] = _digest(root, entry.name, entry.facts, is_fresh=is_fresh)
        count, left = count + 1, left - size
    links = sorted(name for name, digest in digests.items() if isinstance(digest, dict) and "outside" in digest)
    return digests, _beyond(beyond) | ({"links": links} if links else {})


def _beyond(entries: list[_Entry]) -> dict[str, object]:
    if not entries:
        return {}
    names = hashlib.sha256()
    for name, facts in sorted((entry.name, entry.facts.st_size) for entry in entries):
        names.update(f"{name}\0{facts}\0".encode("utf-8", "surrogatepass"))
    size = sum(entry.facts.st_size for entry in entries)
    found: dict[str, object] = {"files": len(entries), "bytes": size, "names": f"sha256:{names.hexdigest()}"}
    return {**found, "first": entries[0].name, **({"more": True} if len(entries) >= MAX_ENTRIES - MAX_FILES else {})}


def _list_trees(code: dict[str, Any]) -> Iterator[_Entry]:
    """The files and links of the directories of the code: what is near first, what others made last, sorted."""
    root = str(code["root"])
    soon = deque(tree for tree in code["trees"] if os.path.basename(tree) not in _LATE)  # noqa: PTH119 - names
    late = deque(tree for tree in code["trees"] if tree not in soon)
    seen: set[tuple[int, int]] = set()
    with_bytecode = bool(code.get("with_bytecode"))
    listed = 0
    while (soon or late) and listed < MAX_ENTRIES:
        tree = soon.popleft() if soon else late.popleft()
        path = os.path.join(root, tree) if tree else root  # noqa: PTH118 - names
        facts = _facts(path)
        if facts is None or (facts.st_dev, facts.st_ino) in seen:
            continue
        seen.add((facts.st_dev, facts.st_ino))
        files: list[_Entry] = []
        for name, entry in _scan(path):
            inside = f"{tree}/{name}" if tree else name
            if stat.S_ISDIR(entry.st_mode):
                if name not in _LEFT_OUT:
                    (late if name in _LATE else soon).append(inside)
                continue
            if stat.S_ISLNK(entry.st_mode):
                target = _inside(root, os.path.realpath(os.path.join(path, name)))  # noqa: PTH118 - names
                if target is not None and os.path.isdir(os.path.join(root, target)):  # noqa: PTH112, PTH118 - as above
                    late.append(target)
            if _is_left_out(root, tree, name, with_bytecode=with_bytecode):
                continue
            if stat.S_ISREG(entry.st_mode) or stat.S_ISLNK(entry.st_mode):
                files.append(_Entry(inside, entry))
        listed += len(files)
        yield from files[: MAX_ENTRIES + len(files) - listed] if listed > MAX_ENTRIES else files


def _is_left_out(root: str, tree: str, name: str, *, with_bytecode: bool) -> bool:
    """Return True if no program loads the file.

    Bytecode that Python writes is made anew whenever its source has another time, and not looked at by servers that
    Nexus starts. Bytecode that claims to need no such comparison is what somebody else put there.
    """
    folder = os.path.basename(tree)  # noqa: PTH119 - a name
    if folder == _OWN_DIRECTORY:
        return name.endswith(_OWN_FILES)
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


def _scan(path: str) -> list[tuple[str, os.stat_result]]:
    """Return the entries of a directory, sorted by name; none if it cannot be listed."""
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


def _digest(
    root: str, name: str, facts: os.stat_result, *, most: int = MAX_NAMED_BYTES, is_fresh: bool = False
) -> object:
    """Return the record of a file: the digest of its bytes, and the target of a link."""
    real = name
    if stat.S_ISLNK(facts.st_mode):
        path = os.path.join(root, name)  # noqa: PTH118 - names
        target = os.path.realpath(path)
        inside = _inside(root, target)
        if inside is None:  # of which nothing is read on behalf of a project
            return {"outside": target}
        followed = _facts(target)
        if followed is None or not stat.S_ISREG(followed.st_mode):
            return {"link": inside}
        real, facts = inside, followed
    if facts.st_size <= most:
        key = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        # A file that was changed a moment ago may change again without a new time.
        is_settled = 0 < facts.st_ctime_ns < time.time_ns() - _SETTLED
        digest = _read_remembered(root, real, key) if is_settled and not is_fresh else _read(root, real)
        if digest:
            return digest if real == name else {"link": real, "digest": digest}
    # Not the bytes, but a change of them leaves a trace here.
    times = {"modified": facts.st_mtime_ns, "changed": facts.st_ctime_ns}
    return {"unread": True, "size": facts.st_size, "inode": facts.st_ino, **times}


@lru_cache(maxsize=4 * MAX_FILES)
def _read_remembered(root: str, name: str, _key: tuple[int, ...]) -> str:
    return _read(root, name)


def _read(root: str, name: str) -> str:
    """The digest of the bytes of a regular file, no link on the way being followed; "" when they cannot be read."""
    try:
        descriptor, _ = open_beneath(root, name.split("/"))
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        digest = hashlib.sha256()
        while data := os.read(descriptor, _CHUNK):
            digest.update(data)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return f"sha256:{digest.hexdigest()}"


def _inside(root: str, real: str) -> str | None:
    if real == root:
        return ""
    names: Iterable[str] | None = names_beneath(root, real)
    return None if names is None else "/".join(names)


def _facts(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _parse(content: str) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _code(data: dict[str, Any]) -> dict[str, Any] | None:
    code = data.get("code")
    if not isinstance(code, dict) or not isinstance(code.get("root"), str):
        return None
    return code if all(isinstance(code.get(key), list) for key in ("files", "trees")) else None


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)

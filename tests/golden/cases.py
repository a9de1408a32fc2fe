"""What a golden is made of: commands in a tree, with a ledger, and what they print and write."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nexus_core import __version__
from nexus_plugins.tagged import CORE_IDENTITY
from tests.golden.trees import ROOT, TREES
from tests.golden.world import World


class Case(NamedTuple):
    """Commands, one on each line, as they are typed after `nexus`.

    `@tools:reply:1` in one is the id of a step: the second reply of the session `tools`. `< FILE` at the end of one is
    what it reads.

    Attributes:
        commands: The lines.
        tree: The files they find.
        ledger: The conversations they find: none, those that are stored beside the goldens, which were held in a
            directory that is gone, or those that were recorded a moment ago in `work`.
        files: More files.
        words: Whether what they print is a message to a person, of which only what counts is kept.
        mute: Names in JSON whose values are left out: texts of the documentation, times that differ.
        fails: Whether a command is meant to fail, or to find something.
    """

    commands: str
    tree: str = "plain"
    ledger: Literal["", "stored", "fresh"] = ""
    files: Mapping[str, str] = {}
    words: bool = False
    mute: frozenset[str] = frozenset()
    fails: bool = False

    @property
    def lines(self) -> list[str]:
        """The commands."""
        return [line.strip() for line in self.commands.strip().splitlines()]


def produce(world: World, case: Case, ledger: Path | None) -> str:
    """Everything that the commands of a case print and write; they work with a copy of the ledger."""
    world.write({**TREES[case.tree], **case.files})
    database = world.home / "ledger.db"
    if ledger is not None:
        shutil.copy(ledger, database)
    before = _files(world)
    told = []
    for line in case.lines:
        world.clock.move(60)
        arguments, source = _arguments(line, database)
        ran = world.run(*arguments, stdin=(world.root / source).read_bytes() if source else b"")
        assert case.fails or not ran.code, ran
        told += [f"$ nexus {line}", f"[exit {ran.code}]", _printed(ran.out, case)]
        told += ["[stderr]", gist_of_lines(ran.err)] if ran.err else []
    after = _files(world)
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            told += [f"[file {path}]", after.get(path, "(removed)")]
    return without_install(world.mask("\n".join(each.removesuffix("\n") for each in told) + "\n"))


def without_install(text: str) -> str:
    """The text without the directory and the interpreter that Nexus is installed in, and without its version."""
    version = f'"version": "{__version__}"'
    return text.replace(sys.executable, "/python").replace(str(ROOT), "/checkout").replace(version, '"version": "0"')


def without_identity(text: str) -> str:
    """The text without the long one that the tagged renderer begins with; the goldens of `show` have it."""
    identity = CORE_IDENTITY.strip()
    written = json.dumps(identity, ensure_ascii=False)[1:-1]
    return text.replace(written, "<CORE_IDENTITY>").replace(identity, "<CORE_IDENTITY>")


def _arguments(line: str, database: Path) -> tuple[list[str], str]:
    words = [find_step(database, word) if word.startswith("@") else word for word in shlex.split(line)]
    if "<" in words:
        return words[: words.index("<")], words[-1]
    return words, ""


def _files(world: World) -> dict[str, str]:
    """What is written in files, except databases and locks."""
    found = {}
    for path in sorted(world.root.rglob("*")):
        if path.is_file() and ".db" not in path.name and path.suffix != ".lock":
            text = path.read_text(encoding="utf-8", errors="backslashreplace")
            found[str(path.relative_to(world.root))] = _in_order(text) if path.name == "trust.json" else text
    return found


def _in_order(approvals: str) -> str:
    """The same approvals, not in the order of their digests, which depend on the directory."""
    document = json.loads(approvals)
    document["allowed"] = dict(
        sorted(document["allowed"].items(), key=lambda item: (item[1]["path"], item[1]["pointer"]))
    )
    return _dumped(document)


def find_step(database: Path, name: str) -> str:
    """The id of a step that is named by its session, its kind and its place among those: `@tools:reply:-1`."""
    label, kind, place = name.removeprefix("@").split(":")
    return [step for step, its_kind in thread(database, label) if its_kind == kind][int(place)]


def thread(database: Path, label: str) -> list[tuple[str, str]]:
    """The steps of a session, oldest first: id and kind."""
    walk = (
        "with recursive line(id, parent, kind, depth) as ("
        " select steps.id, steps.parent, steps.kind, 0 from sessions join steps on steps.id = sessions.tip"
        " where label = ?"
        " union all select steps.id, steps.parent, steps.kind, depth + 1"
        " from line join steps on steps.id = line.parent)"
        " select id, kind from line order by depth desc"
    )
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return list(connection.execute(walk, (label,)))


# Words ----------------------------------------------------------------------------------------------------------------

WORDY = frozenset(
    {"hint", "message", "note", "notes", "reason", "remark", "rule", "skipped", "unknown", "warnings", "why"}
)
"""Names in JSON whose values are sentences to a person, and may be worded better one day."""
_COUNTS = re.compile(
    r"`[^`]*`|'[^']*'|\"[^\"]*\"|\[[a-z][a-z-]*\]|--[a-z-]+|\w*(?:/[\w.@:+=-]+)+|\b[\w-]+\.(?:\w+\.)*[a-z]\w*(?::\d+)*"
    r"|\b\d[\d,.]*\d%?|\b\d%?|\b(?:Warning|Error):"
)
"""What counts in a sentence: code, quotations, findings, options, paths with lines, settings, numbers."""
_SENTENCE = 3
"""A value with so many spaces is a sentence; `always` and `not there` are not."""


def gist(sentence: str) -> str:
    """What counts in a sentence, however it is worded."""
    return f"~ {' '.join(_COUNTS.findall(sentence))}".rstrip()


def gist_of_lines(text: str) -> str:
    """The same for each line that is not blank."""
    return "\n".join(gist(line) for line in text.splitlines() if line.strip())


def _printed(out: str, case: Case) -> str:
    try:
        document = json.loads(out)
    except ValueError:
        return gist_of_lines(out) if case.words else out
    # Characters that cannot be seen are written in another way than `json` writes them, so lines stay as they are.
    plain, masked = (_dumped(each).splitlines() for each in (document, without_words(document, case.mute)))
    printed = out.splitlines()
    if len(printed) != len(plain):  # it is not indented, and is no document for a person
        return out
    return "\n".join(each if old == new else new for each, old, new in zip(printed, plain, masked, strict=True))


def _dumped(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def without_words(value: Any, mute: frozenset[str], name: str = "") -> Any:
    """A document in which sentences are their gist, and `~` stands for whatever is below a name that is muted."""
    if isinstance(value, dict):
        # An error has `what` and `hint`; alone, `what` is what a server would start.
        names = {key: "message" if key == "what" and "hint" in value else key for key in value}
        return {key: without_words(each, mute, name if name in mute else names[key]) for key, each in value.items()}
    if isinstance(value, list):
        return [without_words(each, mute, name) for each in value]
    if name in mute:
        return "~"
    if name in WORDY and isinstance(value, str) and value.count(" ") >= _SENTENCE:
        return gist(value)
    return value

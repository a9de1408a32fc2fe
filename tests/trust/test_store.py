import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from nexus_core import ConfigError, FileError, NexusError
from nexus_core.trust.store import MAX_STORE_BYTES, TrustStore
from nexus_core.types.mcp import ActiveSetting
from tests.trust.conftest import BEARER, HTTP, STDIO, TOKEN, plain_part, server_part


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


# ---- decisions ------------------------------------------------------------------------------------------


def test_without_a_decision_a_part_is_pending_and_nothing_is_written(home: Path, project: Path) -> None:
    store = TrustStore(home)

    decision = store.decide(plain_part(project))

    assert (decision, store.problem) == ("pending", None)
    assert not home.exists()


def test_an_allowed_part_is_allowed_for_this_store_and_the_next(home: Path, project: Path) -> None:
    store = TrustStore(home)

    store.allow([plain_part(project)])

    assert store.decide(plain_part(project)) == "allowed"
    assert TrustStore(home).decide(plain_part(project)) == "allowed"


def test_only_the_part_that_was_allowed_is(home: Path, project: Path) -> None:
    store = TrustStore(home)

    store.allow([plain_part(project, "one")])

    assert store.decide(plain_part(project, "two")) == "pending"


def test_other_content_under_an_approved_name_is_a_change(home: Path, project: Path) -> None:
    store = TrustStore(home)

    store.allow([plain_part(project, content="old")])

    assert store.decide(plain_part(project, content="new")) == "changed"
    assert store.approved_content(plain_part(project, content="new")) == "old"


def test_nothing_is_approved_content_of_a_part_that_was_never_allowed(home: Path, project: Path) -> None:
    assert TrustStore(home).approved_content(plain_part(project)) is None


def test_a_denied_part_is_denied_whatever_its_content(home: Path, project: Path) -> None:
    store = TrustStore(home)

    store.deny([plain_part(project, content="old")])

    assert store.decide(plain_part(project, content="old")) == "denied"
    assert store.decide(plain_part(project, content="new")) == "denied"


def test_denying_takes_back_an_approval(home: Path, project: Path) -> None:
    store = TrustStore(home)
    store.allow([plain_part(project)])

    store.deny([plain_part(project)])

    assert TrustStore(home).decide(plain_part(project)) == "denied"


def test_a_denial_beats_an_approval_that_stands_beside_it(home: Path, project: Path) -> None:
    part = plain_part(project)
    TrustStore(home).allow([part])
    document = json.loads((home / "trust.json").read_text())
    document["denied"] = [{"path": str(part.path), "pointer": part.pointer}]

    (home / "trust.json").write_text(json.dumps(document))

    assert TrustStore(home).decide(part) == "denied"


def test_allowing_takes_back_a_denial(home: Path, project: Path) -> None:
    store = TrustStore(home)
    store.deny([plain_part(project)])

    store.allow([plain_part(project)])

    assert TrustStore(home).decide(plain_part(project)) == "allowed"


def test_a_forgotten_part_is_pending_again_and_others_stay_decided(home: Path, project: Path) -> None:
    store = TrustStore(home)
    store.allow([plain_part(project, "one"), plain_part(project, "two")])
    store.deny([plain_part(project, "three")])

    store.forget([plain_part(project, "one"), plain_part(project, "three")])

    decisions = [TrustStore(home).decide(plain_part(project, name)) for name in ("one", "two", "three")]
    assert decisions == ["pending", "allowed", "pending"]


def test_deciding_about_nothing_writes_nothing(home: Path) -> None:
    TrustStore(home).allow([])

    assert not home.exists()


def test_an_approval_is_named_by_path_pointer_and_content(home: Path, project: Path) -> None:
    TrustStore(home).allow([plain_part(project, content="C")])

    document = json.loads((home / "trust.json").read_text())

    path = project / ".nexus3/mcp.json"
    key = sha256(f"{path}\n/mcp_servers/files\nC".encode()).hexdigest()
    assert document == {
        "version": 2,
        "allowed": {key: {"path": str(path), "pointer": "/mcp_servers/files", "content": "C"}},
        "denied": [],
    }


def test_a_line_break_in_a_path_does_not_make_it_another_setting(home: Path, tmp_path: Path) -> None:
    def part(path: str, pointer: str) -> ActiveSetting:
        return ActiveSetting(path=tmp_path / path, layer="local", pointer=pointer, line=1, summary="", content="C")

    TrustStore(home).allow([part("a\n/b", "/c")])

    assert TrustStore(home).decide(part("a", "/b\n/c")) == "pending"


def test_a_path_that_is_not_text_can_be_allowed(home: Path, tmp_path: Path) -> None:
    part = plain_part(tmp_path / os.fsdecode(b"\xff"))

    TrustStore(home).allow([part])

    assert TrustStore(home).decide(part) == "allowed"


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(("server", "secret"), [(STDIO, TOKEN), (HTTP, BEARER)], ids=["environment", "header"])
def test_secrets_are_not_in_the_store(home: Path, project: Path, server: dict[str, object], secret: str) -> None:
    TrustStore(home).allow([server_part(server, project)])

    text = "".join(path.read_text() for path in home.iterdir())

    assert secret not in text
    assert secret.rsplit(maxsplit=1)[-1] not in text


# ---- files that nobody else may write or see --------------------------------------------------------------


@pytest.mark.acceptance("T24")
@pytest.mark.usefixtures("open_umask")
def test_store_and_directory_are_private_whatever_the_umask(home: Path, project: Path) -> None:
    TrustStore(home).allow([plain_part(project)])

    assert {path.name: mode(path) for path in home.iterdir()} == {"trust.json": 0o600, "trust.lock": 0o600}
    assert (mode(home), mode(home.parent)) == (0o700, 0o700)


def test_a_directory_that_is_there_keeps_its_mode(home: Path, project: Path) -> None:
    home.mkdir(parents=True)
    home.chmod(0o755)

    TrustStore(home).allow([plain_part(project)])

    assert mode(home) == 0o755


# ---- a store that cannot be relied upon ---------------------------------------------------------------------


def _damage(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere.json"))
    path.symlink_to("elsewhere.json")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


FAULTS = {
    "empty": (lambda path: _damage(path, b""), "damaged"),
    "cut off": (lambda path: _damage(path, path.read_bytes()[:-9]), "damaged"),
    "not UTF-8": (lambda path: _damage(path, b"\xff\xfe\xfd"), "damaged"),
    "another document": (lambda path: _damage(path, b"[]"), "damaged"),
    "without decisions": (lambda path: _damage(path, b'{"version": 1}'), "damaged"),
    "with decisions of the wrong kind": (
        lambda path: _damage(path, b'{"version": 1, "allowed": [], "denied": []}'),
        "damaged",
    ),
    "nested without end": (lambda path: _damage(path, b"[" * 500_000), "damaged"),
    "of another version": (lambda path: _edit(path, '"version": 2', '"version": 3'), "another version"),
    "with other content under a key": (lambda path: _edit(path, '"content": "{}"', '"content": "x"'), "damaged"),
    "too large": (lambda path: _damage(path, b" " * MAX_STORE_BYTES + path.read_bytes()), "larger than 16 MiB"),
    "a link": (_link, "is a link"),
    "a FIFO": (_fifo, "not a regular file"),
    "a directory": (_directory, "not a regular file"),
    "writable for the group": (lambda path: path.chmod(0o620), "other users may write"),
    "writable for all": (lambda path: path.chmod(0o602), "other users may write"),
}


@pytest.mark.parametrize(("spoil", "words"), FAULTS.values(), ids=FAULTS)
def test_a_store_that_is_not_as_we_left_it_trusts_nothing(home: Path, project: Path, spoil: object, words: str) -> None:
    TrustStore(home).allow([plain_part(project)])
    assert callable(spoil)
    spoil(home / "trust.json")

    store = TrustStore(home)

    assert store.decide(plain_part(project)) == "pending"
    assert store.approved_content(plain_part(project)) is None
    assert store.problem is not None
    assert words in store.problem
    assert str(home / "trust.json") in store.problem


@pytest.mark.parametrize(("spoil", "words"), FAULTS.values(), ids=FAULTS)
def test_a_store_that_is_not_as_we_left_it_is_not_written_over(
    home: Path, project: Path, spoil: object, words: str
) -> None:
    TrustStore(home).allow([plain_part(project)])
    assert callable(spoil)
    spoil(home / "trust.json")
    before = (home / "trust.json").lstat()
    store = TrustStore(home)

    for decide in (store.allow, store.deny, store.forget):
        with pytest.raises(ConfigError, match=words) as caught:
            decide([plain_part(project, "new")])

        assert caught.value.hint

    after = (home / "trust.json").lstat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)


def test_a_store_of_somebody_else_trusts_nothing(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TrustStore(home).allow([plain_part(project)])
    if os.geteuid() == 0:
        os.chown(home / "trust.json", 4242, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4242)

    store = TrustStore(home)

    assert store.decide(plain_part(project)) == "pending"
    assert "belongs to another user" in str(store.problem)


def test_what_can_be_read_again_is_allowed_to_be_readable_for_others(home: Path, project: Path) -> None:
    TrustStore(home).allow([plain_part(project)])

    (home / "trust.json").chmod(0o644)

    assert TrustStore(home).decide(plain_part(project)) == "allowed"


def test_a_store_that_was_put_right_can_be_used_again(home: Path, project: Path) -> None:
    TrustStore(home).allow([plain_part(project, "one")])
    (home / "trust.json").chmod(0o666)
    store = TrustStore(home)
    assert store.problem

    (home / "trust.json").chmod(0o600)
    store.allow([plain_part(project, "two")])

    assert [store.decide(plain_part(project, name)) for name in ("one", "two")] == ["allowed", "allowed"]
    assert store.problem is None


def test_a_store_does_not_grow_beyond_what_can_be_read(home: Path, project: Path) -> None:
    store = TrustStore(home)
    store.allow([plain_part(project, "small")])

    with pytest.raises(ConfigError, match="would grow beyond 16 MiB"):
        store.allow([plain_part(project, "big", "x" * MAX_STORE_BYTES)])

    assert TrustStore(home).decide(plain_part(project, "small")) == "allowed"


# ---- a project cannot approve itself ------------------------------------------------------------------------


@pytest.mark.parametrize("place", [".", ".nexus3", "deep/er/.home"])
def test_a_home_inside_the_workspace_trusts_nothing(project: Path, place: str) -> None:
    home = project / place
    TrustStore(home).allow([plain_part(project)])

    store = TrustStore(home, workspace=project)

    assert store.decide(plain_part(project)) == "pending"
    assert "inside the project" in str(store.problem)
    with pytest.raises(ConfigError, match="inside the project"):
        store.allow([plain_part(project)])


def test_a_home_that_is_a_link_into_the_workspace_trusts_nothing(project: Path, tmp_path: Path) -> None:
    TrustStore(project / "store").allow([plain_part(project)])
    (tmp_path / "home").symlink_to(project / "store")

    store = TrustStore(tmp_path / "home", workspace=project)

    assert store.decide(plain_part(project)) == "pending"


def test_a_home_beside_the_workspace_with_a_longer_name_is_not_inside(project: Path) -> None:
    home = project.with_name(f"{project.name}-home")
    store = TrustStore(home, workspace=project)

    store.allow([plain_part(project)])

    assert store.decide(plain_part(project)) == "allowed"


def test_a_store_in_the_project_is_not_looked_at(home: Path, project: Path) -> None:
    TrustStore(project / ".nexus3").allow([plain_part(project)])

    decision = TrustStore(home, workspace=project).decide(plain_part(project))

    assert decision == "pending"


# ---- several writers, and writers that die ------------------------------------------------------------------

ALLOW = """
import sys, time
from pathlib import Path
from nexus_core.trust.store import TrustStore
from nexus_core.types.mcp import ActiveSetting

home, root, writer = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
for n in range(5):
    TrustStore(home).allow([ActiveSetting(path=root / ".nexus3/mcp.json", layer="local",
        pointer=f"/mcp_servers/{writer}-{n}", line=1, summary="", content="{}")])
"""


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_writers_at_the_same_time_lose_no_decision(home: Path, project: Path, count: int) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", ALLOW, home, project, str(writer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for writer in range(count)
    ]
    for process in writers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in writers:  # all of them, before anybody is waited for
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in writers:
        process.communicate(timeout=60)

    store = TrustStore(home)
    decisions = [store.decide(plain_part(project, f"{writer}-{n}")) for writer in range(count) for n in range(5)]
    assert [process.returncode for process in writers] == [0] * count
    assert decisions == ["allowed"] * 5 * count


def test_a_lock_that_is_never_released_is_an_error_in_words(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    store = TrustStore(home)
    store.allow([plain_part(project, "one")])
    monkeypatch.setattr("nexus_core.files.write._LOCK_TIMEOUT_SECONDS", 0.05)

    with (home / "trust.lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(FileError, match="another process holds the lock"):
            store.allow([plain_part(project, "two")])


def test_a_lock_that_is_a_link_is_not_followed(home: Path, project: Path, tmp_path: Path) -> None:
    home.mkdir(parents=True)
    (home / "trust.lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileError, match="cannot lock"):
        TrustStore(home).allow([plain_part(project)])

    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.acceptance("T24")
@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_failed_write_leaves_the_old_decisions_and_nothing_else(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = TrustStore(home)
    store.allow([plain_part(project, "old")])
    before = (home / "trust.json").read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        if call == "chmod":
            broken.setattr(os, "supports_fd", {fail})
        with pytest.raises(NexusError, match="No space left"):
            store.allow([plain_part(project, "new")])

    assert (home / "trust.json").read_bytes() == before
    assert sorted(path.name for path in home.iterdir()) == ["trust.json", "trust.lock"]
    assert store.decide(plain_part(project, "new")) == "pending"


KILL = ALLOW.replace(
    'print("ready", flush=True)\nsys.stdin.readline()\n',
    """
import os, signal
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[4], die)
""",
)


@pytest.mark.acceptance("T24")
@pytest.mark.parametrize("call", ["fsync", "replace", "fdopen"])
def test_a_writer_killed_half_way_leaves_the_old_decisions_and_no_lock(home: Path, project: Path, call: str) -> None:
    TrustStore(home).allow([plain_part(project, "old")])

    killed = subprocess.run([sys.executable, "-c", KILL, home, project, "0", call], check=False)

    store = TrustStore(home)
    assert killed.returncode == -9
    assert (store.problem, store.decide(plain_part(project, "old"))) == (None, "allowed")
    store.allow([plain_part(project, "next")])
    assert TrustStore(home).decide(plain_part(project, "next")) == "allowed"

"""Search for the transcripts of a working directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nexus_core.errors import UnknownNameError
from nexus_core.testing import write_files
from nexus_core.transcripts.locations import find_transcripts, get_transcripts_directory


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any variables."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory with a name that programs write differently."""
    directory = tmp_path / "my_shop.v2"
    directory.mkdir()
    return directory


def line(cwd: Path | str, **more: object) -> str:
    return json.dumps({"cwd": str(cwd), **more}) + "\n"


def dashes(path: Path) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in str(path))


def names(program: str, cwd: Path) -> list[str]:
    return [each.path.name for each in find_transcripts(program, cwd)]


def test_claude_sessions_are_found_in_the_folder_of_the_directory(home: Path, work: Path) -> None:
    folder = f".claude/projects/{dashes(work)}"
    write_files(
        home,
        {
            f"{folder}/one.jsonl": line(work),
            f"{folder}/one/subagents/agent-1.jsonl": line(work),
            f"{folder}/notes.txt": "x",
            ".claude/projects/-elsewhere/two.jsonl": line("/elsewhere"),
        },
    )

    assert names("claude", work) == ["one.jsonl", "agent-1.jsonl"]


def test_claude_folder_of_two_directories_is_filtered(home: Path, work: Path) -> None:
    folder = f".claude/projects/{dashes(work)}"
    other = str(work).replace("my_shop.v2", "my-shop-v2")
    write_files(home, {f"{folder}/a.jsonl": line(other), f"{folder}/b.jsonl": '{"type":"summary"}\n' + line(work)})

    assert names("claude", work) == ["b.jsonl"]


def test_claude_session_without_a_directory_is_found(home: Path, work: Path) -> None:
    write_files(home, {f".claude/projects/{dashes(work)}/a.jsonl": "{broken\n" + '{"type":"summary"}\n'})

    assert names("claude", work) == ["a.jsonl"]


def test_codex_sessions_are_found_by_their_directory(home: Path, work: Path) -> None:
    head = {"timestamp": "t", "type": "session_meta"}
    write_files(
        home,
        {
            ".codex/sessions/2025/11/02/rollout-1.jsonl": json.dumps({**head, "payload": {"cwd": str(work)}}) + "\n",
            ".codex/sessions/2025/11/03/rollout-2.jsonl": json.dumps({**head, "payload": {"cwd": "/x"}}) + "\n",
            ".codex/sessions/2025/11/03/rollout-3.jsonl": json.dumps({"id": "x", "timestamp": "t"}) + "\n",
            ".codex/archived_sessions/rollout-4.jsonl": json.dumps({**head, "payload": {"cwd": str(work)}}) + "\n",
        },
    )

    assert sorted(names("codex", work)) == ["rollout-1.jsonl", "rollout-4.jsonl"]


def test_pi_sessions_are_found_in_the_folder_of_the_directory(home: Path, work: Path) -> None:
    folder = f"--{str(work).removeprefix('/').replace('/', '-')}--"
    write_files(home, {f".pi/agent/sessions/{folder}/x.jsonl": line(work, type="session")})

    assert names("pi", work) == ["x.jsonl"]


@pytest.mark.parametrize(
    "kept",
    [
        ("claude", "CLAUDE_CONFIG_DIR", "projects"),
        ("codex", "CODEX_HOME", "sessions"),
        ("pi", "PI_CODING_AGENT_DIR", "sessions"),
    ],
)
def test_environment_variable_moves_the_transcripts_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: tuple[str, str, str]
) -> None:
    program, variable, folder = kept
    assert get_transcripts_directory(program).is_relative_to(home)

    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))

    assert get_transcripts_directory(program) == tmp_path / "elsewhere" / folder


def test_oldest_transcript_comes_first(home: Path, work: Path) -> None:
    folder = home / ".claude" / "projects" / dashes(work)
    write_files(folder, {"a.jsonl": line(work), "b.jsonl": line(work)})
    os.utime(folder / "a.jsonl", (2_000_000_000, 2_000_000_000))

    assert names("claude", work) == ["b.jsonl", "a.jsonl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are none here")
def test_pipes_folders_and_broken_links_are_skipped(home: Path, work: Path) -> None:
    folder = home / ".claude" / "projects" / dashes(work)
    write_files(folder, {"a.jsonl": line(work), "b.jsonl/x": ""})
    os.mkfifo(folder / "c.jsonl")
    (folder / "d.jsonl").symlink_to("nowhere")

    assert names("claude", work) == ["a.jsonl"]


def test_missing_directories_have_no_transcripts(home: Path, work: Path) -> None:
    assert not home.exists()
    assert [names(program, work) for program in ("claude", "codex", "pi")] == [[], [], []]


def test_truncated_claude_folder_name_is_found(home: Path, tmp_path: Path) -> None:
    work = tmp_path / ("x" * 120) / ("y" * 120)
    work.mkdir(parents=True)
    write_files(home, {f".claude/projects/{dashes(work)[:200]}-k3f/a.jsonl": line(work)})

    assert names("claude", work) == ["a.jsonl"]


def test_unknown_program_is_rejected_with_a_suggestion(home: Path, work: Path) -> None:
    assert not home.exists()
    with pytest.raises(UnknownNameError, match="did you mean 'codex'"):
        find_transcripts("codexx", work)

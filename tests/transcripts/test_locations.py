"""Search for the transcripts of a working directory."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from nexus_core.errors import UnknownNameError
from nexus_core.testing import write_files
from nexus_core.transcripts.locations import (
    find_newest_transcripts,
    find_transcripts,
    get_transcripts_directory,
)
from nexus_core.types.transcripts import TranscriptLocation, TranscriptReader


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any variables."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR"):
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


def test_gemini_sessions_are_found_by_hash_and_by_named_directory(home: Path, work: Path) -> None:
    hashed = sha256(str(work).encode()).hexdigest()
    write_files(
        home,
        {
            f".gemini/tmp/{hashed}/chats/session-old.json": "{}",
            ".gemini/tmp/my-shop/.project_root": f"{work}\n",
            ".gemini/tmp/my-shop/chats/session-new.jsonl": "{}\n",
            ".gemini/tmp/my-shop/chats/c1f0/agent.jsonl": "{}\n",
            ".gemini/tmp/my-shop/logs.json": "[]",
            ".gemini/tmp/other/.project_root": "/elsewhere\n",
            ".gemini/tmp/other/chats/session-x.jsonl": "{}\n",
            ".gemini/tmp/bin/rg": "",
        },
    )

    found = find_transcripts("gemini", work)

    assert sorted(each.path.name for each in found[:2]) == ["session-new.jsonl", "session-old.json"]
    assert [each.path.name for each in found[2:]] == ["agent.jsonl"]


@pytest.mark.parametrize(
    "kept",
    [
        ("claude", "CLAUDE_CONFIG_DIR", "projects"),
        ("codex", "CODEX_HOME", "sessions"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/tmp"),
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
    assert [names(program, work) for program in ("claude", "codex", "gemini", "pi")] == [[], [], [], []]


def test_truncated_claude_folder_name_is_found(home: Path, tmp_path: Path) -> None:
    work = tmp_path / ("x" * 120) / ("y" * 120)
    work.mkdir(parents=True)
    write_files(home, {f".claude/projects/{dashes(work)[:200]}-k3f/a.jsonl": line(work)})

    assert names("claude", work) == ["a.jsonl"]


def test_unknown_program_is_rejected_with_a_suggestion(home: Path, work: Path) -> None:
    assert not home.exists()
    with pytest.raises(UnknownNameError, match="did you mean 'codex'"):
        find_transcripts("codexx", work)


def set_age(path: Path, seconds: int) -> None:
    os.utime(path, (1_700_000_000 - seconds,) * 2)


def test_newest_transcripts_of_all_programs_come_newest_first(home: Path) -> None:
    files = {
        ".claude/projects/-srv-shop/old.jsonl": (line("/srv/shop"), 30),
        ".claude/projects/-srv-shop/old/subagents/agent-1.jsonl": (line("/srv/shop"), 1),
        ".claude/projects/-srv-shop/empty.jsonl": ("", 0),
        ".codex/sessions/2026/01/02/rollout-1.jsonl": (json.dumps({"payload": {"cwd": "/srv/api"}}) + "\n", 20),
        ".pi/agent/sessions/--srv-web--/new.jsonl": (line("/srv/web"), 10),
        ".pi/agent/sessions/--srv-web--/nameless.jsonl": ("{}\n", 40),
        ".gemini/tmp/app/chats/session-1.jsonl": ("{}\n", 15),
        ".gemini/tmp/app/chats/s/subagent.jsonl": ("{}\n", 0),
        ".gemini/tmp/app/.project_root": ("/srv/app\n", 0),
        ".gemini/tmp/app/logs.json": ("[]", 0),
    }
    write_files(home, {name: text for name, (text, _) in files.items()})
    for name, (_, age) in files.items():
        set_age(home / name, age)

    newest, more = find_newest_transcripts(4)

    assert [(each.program, each.path.name, each.directory) for each in newest] == [
        ("pi", "new.jsonl", "/srv/web"),
        ("gemini", "session-1.jsonl", "/srv/app"),
        ("codex", "rollout-1.jsonl", "/srv/api"),
        ("claude", "old.jsonl", "/srv/shop"),
    ]
    assert more == 1


@pytest.mark.parametrize(
    ("limit", "names", "more"),
    [(1, ["older"], 3), (2, ["older", "new"], 2), (4, ["older", "new", "newer", "oldest"], 0)],
)
def test_newest_transcript_of_the_working_directory_comes_first(
    home: Path, work: Path, limit: int, names: list[str], more: int
) -> None:
    files = {"new": "/srv/web", "newer": "/srv/api", "older": str(work), "oldest": str(work)}
    for age, (name, directory) in enumerate(files.items()):
        write_files(home, {f".claude/projects/-srv/{name}.jsonl": line(directory)})
        set_age(home / f".claude/projects/-srv/{name}.jsonl", age)

    newest, left = find_newest_transcripts(limit, cwd=work)

    assert ([each.path.stem for each in newest], left) == (names, more)


def test_link_is_not_a_transcript(home: Path, tmp_path: Path) -> None:
    write_files(home, {".claude/projects/-srv/one.jsonl": line("/srv")})
    (home / ".claude/projects/-srv/two.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (tmp_path / "elsewhere.jsonl").write_text(line("/srv"))

    assert [each.path.name for each in find_newest_transcripts(9)[0]] == ["one.jsonl"]


def test_machine_without_transcripts_has_none(home: Path) -> None:
    assert not home.exists()
    assert find_newest_transcripts(9) == ([], 0)


@pytest.mark.parametrize("name", ["/srv/\0", "/srv/\ud800"])
@pytest.mark.parametrize("program", ["codex", "droid"])
def test_a_file_with_an_impossible_directory_hides_no_other(home: Path, work: Path, program: str, name: str) -> None:
    folder = {"codex": ".codex/sessions/2026/01/02", "droid": ".factory/sessions/x"}[program]
    write_files(home, {f"{folder}/bad.jsonl": line(name), f"{folder}/good.jsonl": line(work)})
    reader = TranscriptReader("droid", "Droid", "m:FORMAT", (TranscriptLocation("~/.factory", "sessions/*/*.jsonl"),))

    assert [each.path.name for each in find_transcripts(program, work, [reader])] == ["good.jsonl"]


def test_the_state_of_openhands_names_its_directory(home: Path, work: Path) -> None:
    state = json.dumps({"id": "oh-1", "workspace": {"working_dir": str(work)}})
    write_files(home, {".openhands/conversations/1/base_state.json": state})
    place = TranscriptLocation("~/.openhands", "conversations/*/base_state.json")

    found = find_transcripts("openhands", work, [TranscriptReader("openhands", "OpenHands", "m:FORMAT", (place,))])

    assert [each.path.name for each in found] == ["base_state.json"]


def test_a_document_and_an_escaped_folder_name_their_directory(home: Path, work: Path) -> None:
    other = json.dumps({"cwd": "/elsewhere"})
    document = {"id": "h", "cwd": str(work), "messages": [{"cwd": "/elsewhere"}]}
    nested = {"id": "n", "messages": [{"cwd": str(work)}]}
    write_files(
        home,
        {
            f".agent/{quote(str(work), safe='')}/1/escaped.jsonl": '{"type": "user"}\n',
            f".agent/{quote(str(work), safe='')}/1/another.jsonl": other,
            ".agent/x/1/document.jsonl": json.dumps(document, indent=2),
            ".agent/x/1/nested.jsonl": json.dumps(nested, indent=2),
            ".agent/x/1/deep.jsonl": '{\n  "cwd": ' + "[" * 100_000,
        },
    )
    place = TranscriptLocation("~/.agent", "*/*/*.jsonl")

    found = find_transcripts("agent", work, [TranscriptReader("agent", "Agent", "m:FORMAT", (place,))])

    assert sorted(each.path.name for each in found) == ["document.jsonl", "escaped.jsonl"]


def test_the_newest_transcripts_are_also_those_of_readers(home: Path) -> None:
    write_files(home, {".claude/projects/-srv/one.jsonl": line("/srv"), ".other/two.jsonl": line("/srv/api")})
    set_age(home / ".other/two.jsonl", 0)
    set_age(home / ".claude/projects/-srv/one.jsonl", 60)
    reader = TranscriptReader("other", "Other", "m:FORMAT", (TranscriptLocation(str(home / ".other"), "*.jsonl"),))

    newest, more = find_newest_transcripts(1, [reader])

    assert [(each.program, each.path.name) for each in newest] == [("other", "two.jsonl")]
    assert more == 1

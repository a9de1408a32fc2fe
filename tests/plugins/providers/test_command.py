"""A program is asked for a summary: what it is given, what is made of what it does, and when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from nexus_core.compaction.extractive import extractive_summarizer
from nexus_core.compaction.summarize import SummaryTask, ask_summarizers
from nexus_core.plugin import Summarizer, estimate
from nexus_core.runner import run
from nexus_core.types.messages import Message
from nexus_plugins.providers import CommandError, _command
from nexus_plugins.providers._command import CommandSummarizer
from tests.plugins.providers.endpoints import request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="written for a shell")


def shell(script: str, **fields: tuple[str, ...]) -> CommandSummarizer:
    return CommandSummarizer(("sh", "-c", script), **fields)  # type: ignore[arg-type]


def failure(command: CommandSummarizer, *, seconds: float = 30.0) -> CommandError:
    with pytest.raises(CommandError) as caught:
        command(request(timeout=seconds))
    assert caught.value.where == "compaction.command"
    return caught.value


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has asked about yet counts."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_prompt_is_what_it_reads_and_the_summary_what_it_prints() -> None:
    summary = shell("tr a-z A-Z")(request("He fixed login.py: é \U0001f600.\n"))

    assert summary == "HE FIXED LOGIN.PY: é \U0001f600."


def test_a_prompt_of_any_length_is_read_as_a_whole() -> None:
    assert shell("wc -c")(request("x" * 3_000_000)).strip() == "3000000"


def test_who_does_not_read_the_prompt_may_still_answer() -> None:
    assert shell("echo Done.")(request("x" * 1_000_000)) == "Done."


def test_half_characters_reach_it_whole() -> None:
    assert shell("cat")(request("a \ud83d b")) == "a \ufffd b"


def test_no_shell_reads_the_words_of_the_command() -> None:
    assert CommandSummarizer(("echo", "$HOME; `id` && x > y"))(request()) == "$HOME; `id` && x > y"


def test_it_knows_little_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("WANTED", "here")

    lines = shell("env", variables=("WANTED", "MISSING"))(request()).splitlines()

    known = {line.partition("=")[0] for line in lines}
    assert known <= {*_command.PASSED_VARIABLES, "NO_COLOR", "TERM", "WANTED", "PWD", "SHLVL", "_", "OLDPWD"}
    assert "WANTED=here" in lines


def test_a_program_is_not_looked_for_where_it_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted = tmp_path / "summarize-now"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}bin{os.pathsep}{os.environ['PATH']}")

    error = failure(CommandSummarizer(("summarize-now",), directory=tmp_path))

    assert error.what == "there is no program 'summarize-now'"


def test_a_failure_is_told_with_its_last_words() -> None:
    error = failure(shell("echo one >&2; echo two >&2; echo; echo three >&2; echo four >&2; exit 3"))

    assert (error.exit_code, error.what) == (3, "the command ended with 3: two three four")


def test_last_words_may_be_in_what_it_printed() -> None:
    assert failure(shell("echo No credit.; exit 1")).what == "the command ended with 1: No credit."


def test_last_words_have_no_secrets_and_steer_no_terminal() -> None:
    key = f"sk-ant-{'a1' * 12}"

    error = failure(shell(rf"printf 'key {key} \033[2J' >&2; exit 1"))

    assert error.what == r"the command ended with 1: key [redacted:anthropic-key] \x1b[2J"


def test_a_signal_is_named() -> None:
    assert failure(shell("kill -9 $$")).what == "the command was ended by signal 9"


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("true", "the command printed nothing"),
        ("echo; echo ' '", "the command printed nothing"),
        (r"printf '\377\376x'", "the command printed something that is not UTF-8 text"),
    ],
)
def test_what_is_no_summary_is_told_as_what_it_is(script: str, what: str) -> None:
    assert failure(shell(script)).what == what


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_who_prints_without_end_is_ended(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    monkeypatch.setattr(_command, "MAX_OUTPUT_BYTES", 2**20)

    assert "printed more than" in failure(shell(f"yes {stream}")).what


def test_who_printed_too_much_and_ended_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_command, "MAX_OUTPUT_BYTES", 1000)

    assert "printed more than" in failure(shell("head -c 2000 /dev/zero | tr '\\0' x")).what


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_when_the_time_is_over_it_ends_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM INT HUP; sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
    # After it has begun, the time is over as soon as all are there who have to end.
    looks = count()
    monkeypatch.setattr(
        _command, "time", SimpleNamespace(monotonic=lambda: 600.0 if next(looks) and pids.exists() else 0.0)
    )

    error = failure(shell(script), seconds=60)

    assert error.what == "the command took longer than 60 s"
    assert [is_gone(int(pid)) for pid in pids.read_text().split()] == [True, True]


def test_what_it_leaves_running_keeps_nobody_waiting(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    summary = shell(f"sleep 600 & echo $! > {pid}; echo Done.")(request())

    os.kill(int(pid.read_text()), 9)
    assert summary == "Done."


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize(
    "end",
    [
        pytest.param("", marks=pytest.mark.slow),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", marks=pytest.mark.slow),
        "os.kill(os.getpid(), signal.SIGKILL)",
    ],
    ids=["by itself", "terminated", "killed"],
)
def test_it_does_not_outlive_a_program_that_ends_meanwhile(tmp_path: Path, end: str) -> None:
    program = f"""
import os, signal, threading, time
from pathlib import Path
from tests.plugins.providers.endpoints import request
import nexus_plugins.providers._command
is_watched, wait = threading.Event(), nexus_plugins.providers._command._wait_for_exit
nexus_plugins.providers._command._wait_for_exit = lambda *given: (is_watched.set(), wait(*given))[1]
script = "sleep 600 & echo $! $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"
summarise = nexus_plugins.providers._command.CommandSummarizer(("sh", "-c", script))
threading.Thread(target=summarise, args=(request(),), daemon=True).start()
is_watched.wait()
while not Path("{tmp_path}/pid").exists():
    time.sleep(0.01)
{end}
"""

    subprocess.run([sys.executable, "-c", program], check=not end, cwd=Path(__file__).parents[3], timeout=120)

    assert [is_gone(int(pid)) for pid in (tmp_path / "pid").read_text().split()] == [True, True]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("no-such-program-here",), "there is no program 'no-such-program-here'"),
        (("/",), "the command could not be started"),
        (("sh", "a\0b"), "the command could not be started"),
    ],
)
def test_what_cannot_be_started_is_said(words: tuple[str, ...], what: str) -> None:
    error = failure(CommandSummarizer(words))

    assert error.what.startswith(what)
    assert error.exit_code is None


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("script", ["exit 1", "true", "sleep 600", "cat", r"printf '\377'"])
def test_the_chain_goes_on_after_every_fault(script: str) -> None:
    messages = [
        Message("user", f"Fix login number {number}, please, in login.py and elsewhere.") for number in range(40)
    ]
    command = Summarizer(name="command", summarise=shell(script))

    summary = run(
        ask_summarizers(SummaryTask(messages, 200, timeout=1.0), [command, extractive_summarizer()], estimate)
    )

    assert (summary.summarizer, [name for name, _ in summary.failures]) == ("extractive", ["command"])

"""Files for other agents, read by the agents themselves.

NEXUS_AGENTS names a folder with `node_modules` (`npm install @anthropic-ai/claude-code @openai/codex @google/gemini-cli
@mariozechner/pi-coding-agent opencode-ai`) and with `harbor`, an environment of Python 3.12 or newer that has the
package `harbor`. What is not there is skipped. An agent that calls a model gets a server on this machine, which keeps
the request and refuses it.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from nexus_core.transcripts.base import Transcript
from nexus_core.transcripts.read import read_transcript
from nexus_core.transfer.agent_export import AgentExport, export_transcript
from tests.transcripts.support import SAMPLES
from tests.transfer.round_trips import WRITERS

AGENTS = Path(os.environ.get("NEXUS_AGENTS") or "no-agents")
MAX_SECONDS = 300
"""An agent that takes longer hangs."""

pytestmark = pytest.mark.slow

REFUSAL = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": "no", "code": 400}})


def find(pattern: str) -> Path:
    """A file of an agent; skips the test if it is not installed."""
    found = sorted(AGENTS.glob(pattern)) if AGENTS.is_dir() else []
    if not found:
        pytest.skip(f"NEXUS_AGENTS names no folder with {pattern}")
    return found[0].absolute()


def sample() -> Transcript:
    """A session with tool calls, a compaction that keeps messages, and an image."""
    return read_transcript((SAMPLES / "pi.jsonl").read_text(encoding="utf-8"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "bakery"
    project.mkdir()
    return project


@pytest.fixture
def export(project: Path, tmp_path: Path) -> Callable[[str], AgentExport]:
    """Writes the sample to the file that the agent expects, in a home of its own."""

    def write(form: str) -> AgentExport:
        exported = export_transcript(replace(sample(), cwd=str(project)), WRITERS[form], name="s")
        file = tmp_path / (exported.hint.file.removeprefix("~/") or "file.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(exported.text, encoding="utf-8")
        return exported

    return write


class _Recorder(BaseHTTPRequestHandler):
    requests: ClassVar[list[bytes]]

    def do_POST(self) -> None:
        self.requests.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(REFUSAL.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def requests() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server that refuses every call, and the bodies that it got."""

    class Handler(_Recorder):
        requests: ClassVar[list[bytes]] = []

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", Handler.requests
        server.shutdown()
        thread.join()


def run(command: list[str], cwd: Path, home: Path, **variables: str) -> str:
    """What a program prints; the agents end with an error, because the model refuses."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", **variables}
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
    )
    return done.stdout


def find_request(bodies: list[bytes]) -> Mapping[str, Any]:
    """The first request that continues the conversation."""
    return next(json.loads(body) for body in bodies if b"What now?" in body and b"Bed 1 needs water" in body)


def assert_continued(messages: object) -> None:
    """The model gets the summary, what the compaction kept, and everything since, and nothing from before."""
    text = json.dumps(messages)
    order = [text.index(each) for each in ("Bed 1 needs water", "It will rain tonight", "Is rain enough?", "Yes, rain")]
    assert order == sorted(order)
    assert "Which beds need water?" not in text


def test_claude_code_continues(
    export: Callable[[str], AgentExport], project: Path, tmp_path: Path, requests: tuple[str, list[bytes]]
) -> None:
    program = find("node_modules/@anthropic-ai/claude-code-*/claude")
    session = export("claude-code").hint.command.split()[-1]
    settings = {"ANTHROPIC_BASE_URL": requests[0], "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1"}

    run(
        [str(program), "-p", "--resume", session, "What now?"],
        project,
        tmp_path,
        **settings,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )

    assert_continued(find_request(requests[1])["messages"])


def test_codex_continues(
    export: Callable[[str], AgentExport], project: Path, tmp_path: Path, requests: tuple[str, list[bytes]]
) -> None:
    program = find("node_modules/@openai/codex-*/vendor/*/*/codex")
    session = export("codex").hint.command.split()[-1]
    provider = f'{{name="local",base_url="{requests[0]}/v1",wire_api="responses",request_max_retries=0}}'
    options = ["-c", 'model_provider="local"', "-c", f"model_providers.local={provider}"]

    run([str(program), "exec", "--skip-git-repo-check", *options, "resume", session, "What now?"], project, tmp_path)

    assert_continued(find_request(requests[1])["input"])


def test_gemini_cli_continues(
    export: Callable[[str], AgentExport], project: Path, tmp_path: Path, requests: tuple[str, list[bytes]]
) -> None:
    program = find("node_modules/@google/gemini-cli/bundle/gemini.js")
    session = export("gemini-cli").hint.command.split()[-1]
    settings = tmp_path / ".gemini/settings.json"
    settings.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}', encoding="utf-8")

    run(
        ["node", str(program), "--resume", session, "-p", "What now?"],
        project,
        tmp_path,
        GOOGLE_GEMINI_BASE_URL=requests[0],
        GEMINI_API_KEY="none",
        GEMINI_CLI_TRUST_WORKSPACE="true",
    )

    assert_continued(find_request(requests[1])["contents"])


def test_pi_loads_the_session(export: Callable[[str], AgentExport], project: Path, tmp_path: Path) -> None:
    package = find("node_modules/@mariozechner/pi-coding-agent/dist/core")
    file = tmp_path / export("pi").hint.file.removeprefix("~/")
    script = (
        f"import {{SessionManager}} from {json.dumps(str(package / 'session-manager.js'))};"
        f"import {{convertToLlm}} from {json.dumps(str(package / 'messages.js'))};"
        f"const found = SessionManager.open({json.dumps(str(file))}).buildSessionContext();"
        "console.log(JSON.stringify(convertToLlm(found.messages)));"
    )

    messages = json.loads(run(["node", "--input-type=module", "-e", script], project, tmp_path))

    assert_continued(messages)


def test_opencode_imports_and_exports_the_same_messages(
    export: Callable[[str], AgentExport], project: Path, tmp_path: Path
) -> None:
    program = str(find("node_modules/opencode-*/bin/opencode"))
    text = export("opencode").text
    session = json.loads(text)["info"]["id"]

    told = run([program, "import", str(tmp_path / "file.json")], project, tmp_path)
    exported = json.loads(run([program, "export", session], project, tmp_path))

    assert f"Imported session: {session}" in told
    assert exported["messages"] == json.loads(text)["messages"]


def test_harbor_validates_the_trajectory(export: Callable[[str], AgentExport], project: Path, tmp_path: Path) -> None:
    python = find("harbor/bin/python")
    export("atif")
    script = (
        "import sys; from harbor.utils.trajectory_validator import TrajectoryValidator; "
        "found = TrajectoryValidator(); print(found.validate(sys.argv[1]), found.errors)"
    )

    assert run([str(python), "-c", script, str(tmp_path / "file.json")], project, tmp_path).strip() == "True []"

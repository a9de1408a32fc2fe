"""`nexus context` and `nexus explain`: where the tokens go, and where a text comes from."""

from __future__ import annotations

import pytest

from tests.golden.cases import Case
from tests.golden.conftest import GoldenCase
from tests.golden.trees import ROOT

SAMPLES = ROOT / "tests/transcripts/samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir())
FILES = {name: (SAMPLES / name).read_text(encoding="utf-8") for name in NAMES}
SESSIONS = ("tools", "chat", "tagged", "media", "compacted", "automatic", "cut", "interrupted", "manager")


def _transcript(name: str, options: str = "") -> Case:
    return Case(f"context {name} {options}".strip(), "empty", files={name: FILES[name]})


def _id(name: str) -> str:
    return name.replace(".", "-").replace("_", "-")


CONTEXT = {
    **{_id(name): _transcript(name) for name in NAMES},
    **{f"{_id(name)}-json": _transcript(name, "--json") for name in NAMES},
    **{f"{_id(name)}-all": _transcript(name, "--include-compacted --limit 3") for name in NAMES},
    **{f"{_id(name)}-gpt-4o": _transcript(name, "-m gpt-4o --limit 2") for name in NAMES},
    "here": Case("-C work/api context", "shop"),
    "here-json": Case("-C work/api context --json", "shop"),
    "here-tree": Case("-C work/api context --tree", "shop"),
    "acme": Case("--home acme/home/.nexus3 -C acme/company/backend/auth-service context", "acme"),
    "estimated": Case("-C work context -m home-made"),
    "claude": Case("-C work context -m claude-sonnet-4 --tree"),
    **{f"as-{agent}": Case(f"-C work/api context --as {agent}", "shop") for agent in ("claude", "codex", "gemini")},
    **{f"session-{name}": Case(f"-C work context --session {name}", ledger="fresh") for name in SESSIONS},
    **{f"session-{name}-json": Case(f"-C work context --session {name} --json", ledger="fresh") for name in SESSIONS},
    **{
        f"session-{name}-tree": Case(f"-C work context --session {name} --tree", ledger="fresh")
        for name in ("tools", "compacted", "tagged")
    },
    **{
        f"imported-{name}": Case(f"-C work context --session {label}", ledger="fresh")
        for name, label in (("claude", "claude-bakery-1"), ("codex", "codex-0199-weather"), ("pi", "pi-5d0c-garden"))
    },
}

QUERIES = {
    "sentence": "'- Never log a token.'",
    "imported-sentence": "'100 characters'",
    "other-agents-sentence": "'Indent with tabs'",
    "bullet-cut-short": "'Run `make…'",
    "file": "../AGENTS.md",
    "passed-over-file": "../CLAUDE.md",
    "directory": "../api",
    "setting": "permissions.level",
    "protected-setting": "provider.base_url",
    "merged-setting": "provider.model",
    "default-setting": "budget.reserve_response",
    "server": "docs",
    "disabled-server": "old",
    "skill-text": "'Ships a service.'",
    "hidden-characters": "'zerowidth space'",
    "nowhere": "'nobody wrote this anywhere'",
}
EXPLAIN = {
    **{name: Case(f"-C work/api explain {query}", "shop", fails=name == "nowhere") for name, query in QUERIES.items()},
    **{
        f"{name}-json": Case(f"-C work/api explain {query} --json", "shop", fails=name == "nowhere")
        for name, query in QUERIES.items()
    },
    **{
        f"sentence-as-{agent}": Case(f"-C work/api explain '- Never log a token.' --as {agent}", "shop")
        for agent in ("claude", "codex", "gemini")
    },
    "session-sentence": Case("-C work explain 'rounds each line' --session tools", ledger="fresh"),
    "session-instruction": Case("-C work explain 'make check' --session tools --json", ledger="fresh"),
    "session-compacted": Case("-C work explain 'SHOP-4711' --session compacted --json", ledger="fresh"),
    "session-cut": Case("-C work explain 'Question 0' --session cut --json", ledger="fresh"),
    "session-step": Case("-C work explain @compacted:reply:0 --session compacted --json", ledger="fresh"),
    "session-step-sent": Case("-C work explain @tools:reply:-1 --session tools", ledger="fresh"),
}


@pytest.mark.parametrize("name", CONTEXT)
def test_the_picture_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case("context", name, CONTEXT[name])


@pytest.mark.parametrize("name", EXPLAIN)
def test_the_explanation_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case("explain", name, EXPLAIN[name])

"""`nexus show`: the system prompt, byte for byte."""

from __future__ import annotations

import pytest

from tests.golden.cases import Case
from tests.golden.conftest import GoldenCase

AREA = "show"
ACME = "--home acme/home/.nexus3 -C acme/company/backend/auth-service show"
API = "-C work/api show"
WORKER = "--role worker --task 'Find out why the build fails.'"
CASES = {
    "acme": Case(ACME, "acme"),
    "acme-tagged": Case(f"{ACME} --renderer tagged", "acme"),
    "acme-json": Case(f"{ACME} --json", "acme"),
    "acme-loaded": Case(f"{ACME} --loaded", "acme"),
    "defaults": Case("-C work show", "empty"),
    "defaults-tagged": Case("-C work show --renderer tagged", "empty"),
    "company": Case("-C work/company/backend/auth show", "company"),
    "company-above": Case("-C work/company show", "company"),
    "full-context": Case("-C work/company/backend/auth-service show", "full_context"),
    "full-context-tagged": Case("-C work/company/backend/auth-service show --renderer tagged", "full_context"),
    "full-context-loaded": Case("-C work/company/backend/auth-service show --loaded", "full_context"),
    "full-context-loaded-server": Case(
        "-C work/company/backend/auth-service show --loaded --mode server", "full_context"
    ),
    "full-context-below": Case("-C work/company/backend/auth-service/sub show", "full_context"),
    "specification": Case("-C work/company/backend/auth-service show", "specification"),
    "specification-loaded": Case("-C work/company/backend/auth-service show --loaded", "specification"),
    "specification-approved": Case(
        """-C work/company/backend/auth-service trust allow --all --yes
        -C work/company/backend/auth-service show --loaded""",
        "specification",
        words=False,
    ),
    "worker": Case(f"-C work show {WORKER} --skill logs", "worker"),
    "worker-all-skills": Case(f"-C work show {WORKER}", "worker"),
    "worker-tagged": Case(f"-C work show {WORKER} --renderer tagged", "worker"),
    "manager": Case("-C work show --role manager", "worker"),
    "manager-tagged": Case("-C work show --role manager --renderer tagged", "worker"),
    "shop": Case(API, "shop"),
    "shop-tagged": Case(f"{API} --renderer tagged", "shop"),
    "shop-json": Case(f"{API} --json", "shop"),
    "shop-tagged-json": Case(f"{API} --renderer tagged --json", "shop"),
    "shop-root": Case("-C work show", "shop"),
    "shop-repl": Case(f"{API} --mode repl", "shop"),
    "shop-server": Case(f"{API} --mode server", "shop"),
    "shop-permissions": Case(f"{API} --permissions 'read files' --permissions mail.send", "shop"),
    "shop-permissions-tagged": Case(f"{API} --permissions 'read files' --renderer tagged", "shop"),
    "shop-worker": Case(f"{API} {WORKER} --skill deploy --skill nothing", "shop"),
    "shop-manager": Case(f"{API} --role manager --mode server", "shop"),
    "shop-loaded": Case(f"{API} --loaded", "shop"),
    "shop-approved": Case(f"-C work/api trust allow --all --yes\n{API}", "shop"),
    "shop-denied": Case(f"-C work/api trust deny --all\n{API}", "shop"),
    "shop-readme": Case(API, "shop", files={"work/api/.nexus3/config.json": '{"context": {"include_readme": true}}\n'}),
    "shop-instruction-files": Case(
        API,
        "shop",
        files={"work/api/.nexus3/config.json": '{"context": {"instruction_files": ["CLAUDE.md", "README.md"]}}\n'},
    ),
    "shop-deep": Case(API, "shop", files={"work/api/.nexus3/config.json": '{"context": {"ancestor_depth": 0}}\n'}),
    "shop-bullets": Case(
        API, "shop", files={"work/api/.nexus3/config.json": '{"plugins": {"mcp": {"form": "bullets"}}}\n'}
    ),
    "shop-tagged-chinese": Case(
        f"{API} --renderer tagged",
        "shop",
        files={"work/api/.nexus3/config.json": '{"plugins": {"tagged": {"language": "zh"}}}\n'},
    ),
    **{
        f"{tree}-as-{agent}": Case(f"-C {directory} show --as {agent}", tree.replace("-", "_"))
        for agent in ("claude", "codex", "gemini")
        for tree, directory in (("shop", "work/api"), ("full-context", "work/company/backend/auth-service"))
    },
    **{f"shop-as-{agent}-json": Case(f"{API} --as {agent} --json", "shop") for agent in ("claude", "codex", "gemini")},
}


@pytest.mark.parametrize("name", CASES)
def test_the_prompt_is_as_it_was(name: str, golden_case: GoldenCase) -> None:
    golden_case(AREA, name, CASES[name])

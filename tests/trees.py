"""The directories whose prompts are kept in `tests/golden`, as files: the user's own and those of the work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple


class Tree(NamedTuple):
    """Files by relative path.

    Attributes:
        home: The user's own directory.
        files: The work.
        cwd: Where the agent works.
    """

    home: Mapping[str, str]
    files: Mapping[str, str]
    cwd: str


def servers(**definitions: Mapping[str, object]) -> str:
    """The text of an `mcp.json`."""
    return json.dumps({"servers": [{"name": name, **value} for name, value in definitions.items()]})


COMPANY = Tree(
    {"NEXUS.md": "Be brief.\n"},
    {
        "company/.nexus3/NEXUS.md": "You work at Acme Corp.\n",
        "company/backend/.nexus3/NEXUS.md": "This is the backend monorepo.\n",
        "company/backend/auth/.nexus3/NEXUS.md": "The auth service issues JWTs.\n",
    },
    "company/backend/auth",
)

FULL_CONTEXT = Tree(
    {
        "NEXUS.md": "You are NEXUS3, an AI-powered CLI agent.\n",
        "config.json": '{"provider": {"model": "anthropic/claude-sonnet-4", "context_window": 200000}}',
        "mcp.json": servers(filesystem={"command": ["npx", "fs"]}),
    },
    {
        "company/.nexus3/NEXUS.md": "You work at Acme Corp.\n",
        "company/.nexus3/mcp.json": servers(postgres={"url": "http://localhost:9000"}),
        "company/backend/.nexus3/NEXUS.md": "This is the backend monorepo.\n",
        "company/backend/auth-service/.nexus3/NEXUS.md": "The auth-service handles authentication.\n",
        "company/backend/auth-service/.nexus3/mcp.json": servers(
            auth={"command": ["auth"]}, old={"command": ["old"], "enabled": False}
        ),
        "company/backend/auth-service/AGENTS.md": "Run the tests.\n",
        "company/backend/auth-service/README.md": "# auth-service\n",
        "company/backend/auth-service/sub/.nexus3/NEXUS.md": "Only in sub.\n",
        "company/backend/auth-service/docs/README.md": "# Docs\n",
    },
    "company/backend/auth-service",
)

SPECIFICATION = Tree(
    {
        "NEXUS.md": "You are NEXUS3, an AI-powered CLI agent...\n[rest of global prompt]\n",
        "config.json": json.dumps(
            {
                "provider": {"model": "anthropic/claude-sonnet-4", "context_window": 200_000},
                "permissions": {"level": "trusted"},
            }
        ),
        "mcp.json": servers(filesystem={"command": ["npx", "@anthropic/mcp-server-filesystem"]}),
    },
    {
        "company/.nexus3/NEXUS.md": (
            "You work at Acme Corp. Our codebase uses:\n- Python 3.11+ with type hints\n"
            "- PostgreSQL for data storage\n- Docker for deployment\n"
        ),
        "company/.nexus3/mcp.json": servers(postgres={"url": "http://localhost:9000", "enabled": True}),
        "company/backend/.nexus3/NEXUS.md": (
            "This is the backend monorepo. Key services:\n- auth-service: OAuth2/OIDC\n"
            "- api-gateway: GraphQL federation\n- user-service: User management\n"
        ),
        "company/backend/auth-service/.nexus3/NEXUS.md": (
            "The auth-service handles authentication:\n- JWT token issuance\n- OAuth2 provider integration\n"
            "- Session management\n"
        ),
        "company/backend/auth-service/.nexus3/mcp.json": servers(**{"auth-tools": {"command": ["auth-tools"]}}),
    },
    "company/backend/auth-service",
)

WORKER = Tree(
    {
        "IDENTITY.md": "I am Ada.\n",
        **{f"skills/{name}/SKILL.md": f"---\ndescription: {name}\n---\nGuide.\n" for name in ("logs", "mail")},
    },
    {
        ".nexus3/NEXUS.md": "The auth-service issues JWTs.\n",
        ".nexus3/SOUL.md": "Be kind.\n",
        ".nexus3/IDENTITY.md": "Name: Atlas\n",
        "AGENTS.md": "Run the tests.\n",
    },
    ".",
)

GOLDEN_TREES = {"company": COMPANY, "full_context": FULL_CONTEXT, "specification": SPECIFICATION, "worker": WORKER}
"""By the name of the golden file."""

"""What other tools write about a server and Nexus does not do, and why; each is told to whoever wrote it."""

from __future__ import annotations

ASKING = "what runs without asking is your decision, not a file's"
_SIGNING_IN = "Nexus does not sign in; put a token into 'headers', as ${NAME}"
_SANDBOX = "Nexus has no sandbox: the server runs with all your rights"
_FAILING = "a server that fails stops nothing else"
_ENVIRONMENT = "servers are started on this machine"
_DEVELOPING = "Nexus neither watches nor debugs servers"
_LOADING = "Nexus offers all tools from the start"
_PARALLEL = "calls to a server run as they come"

UNHEEDED = {
    "alwaysAllow": ASKING,
    "always_allow": ASKING,
    "approval_mode": ASKING,
    "autoApprove": ASKING,
    "auto_approve": ASKING,
    "default_tools_approval_mode": ASKING,
    "trust": ASKING,
    "auth": _SIGNING_IN,
    "authProviderType": _SIGNING_IN,
    "bearer_token": _SIGNING_IN,
    "headersHelper": _SIGNING_IN,
    "oauth": _SIGNING_IN,
    "oauth_resource": _SIGNING_IN,
    "scopes": _SIGNING_IN,
    "targetAudience": _SIGNING_IN,
    "targetServiceAccount": _SIGNING_IN,
    "sandbox": _SANDBOX,
    "sandboxEnabled": _SANDBOX,
    "fail_if_no_tools": _FAILING,
    "required": _FAILING,
    "experimental_environment": _ENVIRONMENT,
    "dev": _DEVELOPING,
    "alwaysLoad": _LOADING,
    "supports_parallel_tool_calls": _PARALLEL,
}
"""By the name of a field, why it is not used. Where it says no or nothing, nobody has to be told."""

FOR_READERS = frozenset({"description", "displayName", "gallery", "icon", "title", "version"})
"""What is written for people and shops, and has no effect anywhere."""

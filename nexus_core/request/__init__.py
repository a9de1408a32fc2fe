"""One model call: built from prefix, history and input, and written for an API.

runtime.py         SessionRuntime: plugins, ledger and caches shared by all sessions of a Nexus
static_context.py  role, renderer, tools and static sections of a session
static_cache.py    loads and static contexts, cached until a file changes
tools.py           the tools that are offered, by role and permissions
prefix.py          the frozen system prompt and tools, as they are stored
renderer.py        calls of renderers, with their contract enforced
input.py           the user message, rendered with sections and memories
window.py          the context window of a model, and what fits into it
build.py           the call: planned, fitted and assembled
placements.py      source, tokens and decision of each piece of a call
write.py           a call in the format of an API, with cache breakpoints
writer.py          the same, loaded when the format is first asked for
cache_report.py    how much of a call came from the provider's prompt cache, and why not more
diff.py            the first difference between two calls
"""

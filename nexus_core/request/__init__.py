"""One model call: built from prefix, history and input, and written for an API.

runtime.py         SessionRuntime, shared by all sessions of a Nexus, and the context window of a model in one of them
static_context.py  role, renderer, tools and static sections of a session, cached until a file changes
prefix.py          the frozen system prompt and tools, as they are offered and stored
input.py           the user message, rendered with sections and memories
memories.py        memories that are recalled for a user message, and those of earlier ones
build.py           the call: planned, fitted and assembled
write.py           a call in the format of an API, with cache breakpoints
placements.py      source, tokens and decision of each piece of a call
cache_report.py    how much of a call came from the provider's prompt cache, and why not more
diff.py            the first difference between two calls
"""

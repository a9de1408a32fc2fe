"""Frozen value types of all packages, without I/O, raising only ValueError.

base.py          dataclass decorator, argument checks and copies
messages.py      messages, their parts, tools, usage and replies in the neutral format
prompt.py        sections, sources, placements and renderers
layers.py        layers with their texts and settings, and the result of a load
settings.py      merged settings with origins, and the settings that plugins declare
mcp.py           MCP servers and approvals
budget.py        models, token counters, budgets and truncation strategies
request.py       the request that hooks receive
assembled.py     the assembled call, cache breakpoints and cache reports
payloads.py      typed contents of steps and sessions, around the JSON that a ledger stores
ledger.py        steps, sessions and the ledger protocol
compaction.py    compaction plans, summarizers and reports
memory.py        memories, queries and memory sources
api.py           rules of an API, and the dialect protocol
providers.py     providers of models, and the events of a call
transcripts.py   readers of transcripts, and where programs keep them
plugins.py       plugin information, commands, extras, findings and problems
"""

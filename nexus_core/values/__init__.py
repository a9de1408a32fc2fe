"""The frozen values that every other module speaks in. They do no I/O and raise only ValueError.

request.py       what is asked of Nexus; assembled.py: what one call of a model is made of
placement.py     where each piece of a call comes from; source.py: a file or a plugin
section.py       a titled piece of the prompt; rendering.py, arrangement.py: who puts it into words
message.py       one message; parts.py: what it is made of; conversation.py: tools, usage, replies
api.py           what an API accepts, and the dialect that speaks it
counting.py      tokens and who counts them; budget.py: what fits, and what was decided so that it does
breakpoint.py    up to where a call is cached; cache.py: what became of that
ledger.py        conversations as they are kept; compaction.py: what takes the place of their beginning
agent_result.py  what an agent brings back from a whole turn
layer.py         places on disk; piece.py: files inside one text; loaded.py: everything that was found
settings.py      merged settings; declarations.py: what plugins say about theirs
servers.py       MCP servers; trust.py: what the user decided about them
finding.py       something a person should know; events.py: what happens while plugins are at work
plugin.py        facts about a plugin; command.py: one it adds to the command line; extra.py: what it needs
checks.py        checks of what a stranger puts into a value
fast_dataclass.py, hashing.py: what values are made with; copying.py: how they are copied
"""

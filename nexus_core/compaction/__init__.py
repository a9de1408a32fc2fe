"""Compaction: earlier turns of a session are replaced by a summary.

options.py     settings of compaction, and the token limits that they give
trigger.py     when a session is compacted, and every reason why it is not
plan.py        plan of a compaction: the steps to summarize and to keep
compact.py     compaction on request and before a call; its step and report
summarize.py   summarizers, asked in order until one has written a valid summary
prompts.py     prompts for models, and the removal of secrets
extractive.py  summarizer without a model
facts.py       facts of messages: paths, commands, errors, identifiers, links, numbers
quotes.py      facts and the user's own words as text blocks
compose.py     summary as it is sent, its evidence, and its fidelity
undo.py        undo, the steps that a compaction replaced, and pins
overflow.py    provider errors about requests that are too long
recovery.py    compaction after such an error
messages.py    compaction of a conversation that is only in memory
"""

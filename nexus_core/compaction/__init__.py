"""Compaction: replacement of earlier turns by a summary. Modules in the order in which things happen.

trigger.py     when a session is compacted by its settings, and every reason why it is not
plan.py        the steps or messages to summarize and to keep
compact.py     compaction on request, before a call and after an overflow; its step and report
overflow.py    provider errors about requests that are too long
summarize.py   summarizers, asked in order until one has written a valid summary
prompts.py     prompts for models, and the removal of secrets
extractive.py  summarizer without a model
evidence.py    facts and the user's own words as text blocks, and the index of facts that do not fit
compose.py     summary as it is sent, its evidence, and its fidelity
undo.py        undo, the steps that a compaction replaced, and pins
"""

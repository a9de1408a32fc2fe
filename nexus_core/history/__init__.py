"""Message lists: grouping, repair, token budgets and selection.

groups.py              messages that are kept or dropped together, and their sizes
select.py              select(): the items that fit a budget, chosen by a truncation strategy
truncation.py          the messages of a session with their sizes, those that fit, and where its history begins
repair/                repair and check of message lists against the rules of an API
fit.py                 fit_messages(): the messages that fit a model's context window
budget.py              token budgets, and the fixed cost of instructions and tools
counted_messages.py    a caller's list, read and counted one message at a time
shorten.py             long tool results cut to head and tail, and placeholders for images and documents
manager.py             ContextManager: a conversation in memory that always fits
breakdown.py           tokens of a conversation by role, kind, tool and message
"""

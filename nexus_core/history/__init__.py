"""Message lists: grouping, repair, token budgets and truncation.

groups.py              messages that are kept or dropped together, and matching of tool results with calls
repair/                repair and check of message lists against the rules of an API
fit.py                 fit(): the messages that fit a model's context window
allowance.py           token budgets, and the fixed cost of instructions and tools
window.py              a caller's list, read and counted one message at a time
message_cache.py       cache of messages that were read and counted before
lazy_groups.py         groups of a list that is read only as far as needed
chooser.py             choice of the messages that fit and are valid
truncation.py          calls of truncation strategies, and validation of their results
media_placeholders.py  text placeholders for images and documents in requests that are too large
shorten.py             long tool results shortened to their head and tail
sums.py                running sums of group sizes
growing_history.py     a growing conversation, with its groups and their sizes
manager.py             ContextManager: a conversation in memory that always fits
breakdown.py           tokens of a conversation by role, kind, tool and message
"""

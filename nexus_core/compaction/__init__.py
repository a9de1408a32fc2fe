"""Earlier turns replaced by a summary: when, which, by whom, and what must not be lost.

options.py     settings of compaction
trigger.py     why a session is compacted, and why not
plan.py        which steps are summarized, and which stay
compact.py     compact, undo, pin: appended as one step
prompts.py     what a model is asked, without secrets
summarize.py   summarizers, one after the other until one has written a summary
extractive.py  a summary without a model
facts.py       facts of messages: paths, commands, errors, identifiers
quotes.py      the user's own words, and facts as text
compose.py     the summary as it is sent, and how much it retains
coverage.py    the steps that a compaction replaced
overflow.py    whether a provider refused a call because of its length
recovery.py    a shorter call after such a refusal
messages.py    compaction of a conversation in memory
"""

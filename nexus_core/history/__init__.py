"""A conversation on its way to a model: what belongs together, what an API would refuse, what fits.

groups.py        messages that live or die together; waiting.py: which call a result answers
repair.py        makes a list what an API accepts; check.py: says what repair would do; sound_runs.py: the turns of a
                 list that need neither
findings.py      what they may find, by code
mending/         the rules of repair, one step each; soundness.py: a quick look that spares most lists all of them
fit.py           makes a list fit a model's window; choosing.py: which messages stay; allowance.py: how much room
window.py        a caller's list, read one message at a time; lazy.py: its groups; shortening.py: long results cut
telling.py       a list of which it is not known yet whose it is; memory.py: what was read of it before
asking.py        asks a truncation which groups stay; hiding.py: pictures and documents told in words
sums.py          sizes of groups as running sums
growing.py       a conversation that grows, in groups
breakdown.py     where the tokens of a conversation go
manager.py       ContextManager: a conversation in memory that always fits
ledger/          conversations as they are kept
"""

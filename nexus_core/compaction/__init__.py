"""What takes the place of an earlier conversation: which part of it, in whose words, and what must not get lost.

Nothing here writes to a ledger or calls anybody by itself; sessions do.

options                what the settings say
outline, planning      a thread in turns and groups; which steps are summarised, and which stay
selection, summary     the same for a conversation in memory; the message that stands for what was said
redaction              secrets are taken out before
prompts, pieces        what a model is asked; what it cannot read at once goes in pieces
summarizers, chain     who summarises, one after the other; calling waits no longer than one may, judging refuses what
                       is no summary; extractive needs no model
evidence/              facts and the user's own words, found without a model
composing, fidelity    the summary as it is sent; what became of the facts
overflow, breaker      whether a provider refused a request because of its length; when to stop
"""

"""The steps of repair. Each is a function that takes the work, changes its drafts, and notes what it found.

steps.py         the steps in their order, and mend(), which takes them
work.py          the work: drafts of the messages, the rules of the API, the findings
texts.py         characters and texts that are refused
parts.py         parts that are refused, wherever they stand; misplaced.py: parts in the wrong message
thoughts.py      reasoning of others, unsigned, or without what it led to
blocks.py        a provider's own blocks: calls without results, too many cache marks
pairing.py       which result answers which call
naming.py        ids and names of calls and results
placing.py       results where the API wants them, made up where none was recorded
turns.py         who speaks when: empty messages, instructions, the first and the last word
"""

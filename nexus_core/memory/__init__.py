"""Memory: search past sessions and notes, and inject the best of them into calls.

words.py                words of texts and questions, stems, names that a question asks for
statements.py           rules and decisions in texts, and text that programs add to user messages
facts.py                facts of messages: decisions, paths, commands, errors, identifiers, links, numbers
facets.py               facets of steps, such as a command or an error, and questions that ask for them
step_index.py           words and facts of a step, ids of steps, the protocol of an index
step_scores.py          the score of steps for a question
in_memory_index.py      an index in memory, for ledgers without one of their own
search.py               search_steps: the best steps of a ledger for a question
text_scores.py          ranking of a few texts, such as notes and rules, for a question
distinctive_words.py    words of a fact, by which a text that repeats it is recognized
recall.py               memories of all sources: asked, fused, checked, and rendered as sections
forgotten_memories.py   the list of memories that the user asked to forget
"""

"""The commands about what goes to a model in one call: `nexus assemble`, `nexus diff`.

assemble.py   assemble; asked.py: the message, the tools and the circumstances, as they were given
shown.py      a request for a reader; facts.py: all of it as JSON; left_out.py: what is not in it, and why
remarks.py    what an API may refuse in it
diff.py       diff; operands.py: what A and B stand for; written.py: requests that were written into files
comparing.py  two of them held against each other; twice.py: the same one made again; compared.py: what is printed
"""

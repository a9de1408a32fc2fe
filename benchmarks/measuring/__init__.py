"""What the benchmarks share.

rows        a measured number, its goals and its verdict
reports     what a script found: rows, versions, what is missing; as text and as JSON
script      the options, the printing and the exit code of every script
timing      medians of works that are done in turns
processes   the CPU time of fresh processes
venvs       environments for Nexus and for its peers
tables      tiktoken's own files, for tiktoken to find
dialogues   long dialogues with facts planted in them
sessions    made-up transcripts of other programs
threads     ledgers with a long thread
loopback_model  a model server that answers every call with the same reply
goals       the goals P1 to P12 in words, and why some of them are missed
document    `RESULTS.md`, made of reports
"""

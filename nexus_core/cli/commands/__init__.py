"""The commands of `nexus`. A module is imported when its command runs.

assemble.py            nexus assemble
check.py               nexus check
config.py              nexus config
context.py             nexus context, and its report on a request
context_shares.py      tokens of a request by zone, kind, layer, file and tool
context_transcript.py  nexus context FILE
diff.py                nexus diff
diff_operand.py        the steps, sessions, models and files that nexus diff compares
doctor.py              nexus doctor
explain.py             nexus explain
init.py                nexus init
layers.py              nexus layers
ledger.py              nexus ledger
plugin.py              nexus plugin
scaffold.py            the plugin package that nexus plugin new writes
session/               nexus session
show.py                nexus show
status.py              nexus status, which is also nexus alone
tokens.py              nexus tokens
trust.py               nexus trust
"""

"""The commands of `nexus`. A module is imported when its command runs.

acp.py                 nexus acp, and the recorder between an editor and another agent
acp_agent.py           agents of Nexus for editors, over the Agent Client Protocol
acp_servers.py         MCP servers that an editor passes with a session
assemble.py            nexus assemble
chat.py                nexus chat, and its form for one answer
chat_commands.py       the commands at the prompt of nexus chat
chat_prompt.py         nexus chat at a terminal
chat_setup.py          help for nexus chat without a model: settings, and local servers
check.py               nexus check
config.py              nexus config
context.py             nexus context, and its report on a request
context_menu.py        the transcripts that nexus context offers at a terminal
context_shares.py      tokens of a request by zone, kind, layer, file and tool
context_transcript.py  nexus context FILE
diff.py                nexus diff
diff_operand.py        the steps, sessions, models and files that nexus diff compares
doctor.py              nexus doctor
explain.py             nexus explain
init.py                nexus init
layers.py              nexus layers
ledger.py              nexus ledger
memory.py              nexus memory
plugin.py              nexus plugin
rpc.py                 nexus rpc
scaffold.py            the plugin package that nexus plugin new writes
serve.py               nexus serve
session/               nexus session
show.py                nexus show
status.py              nexus status, which is also nexus alone
tokens.py              nexus tokens
trust.py               nexus trust
"""

"""Adapters for other frameworks, based on the ledger and `fit_messages`.

openai_agents.py   OpenAI Agents SDK: a session over a ledger, and a filter that makes each call fit
langgraph.py       LangGraph and LangChain: messages that fit, as a function, a hook and middleware

None of these frameworks is a dependency; import a module only if its framework is installed.
"""

"""Other frameworks' own interfaces, so that a project can adopt the ledger and `fit` and keep its loop.

openai_agents.py   for the OpenAI Agents SDK: a session over a ledger, and a filter that makes each call fit
kept_items.py      a list of OpenAI's items as steps of a ledger
langgraph.py       for LangGraph and LangChain: messages that fit, as a function, a hook and middleware

None of these frameworks is a dependency; each module is for those who have its framework.
"""

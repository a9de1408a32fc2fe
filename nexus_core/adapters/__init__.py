"""Other frameworks' own interfaces, so that a project can adopt the ledger and `fit` without moving its loop.

openai_agents.py   a Session of the OpenAI Agents SDK over a ledger, and a filter for what a model is sent
langgraph.py       what fits, in LangChain's messages: as a function, a pre-model hook, and middleware

Neither framework is a dependency; each module is for those who have installed its framework.
"""

"""Adapters for other frameworks, based on the ledger and `fit_messages`.

openai_agents.py              OpenAI Agents SDK: a session over a ledger, and a filter that makes each call fit
langgraph.py                  LangGraph and LangChain: messages that fit, as a function, a hook and middleware
langgraph_checkpoints.py      LangGraph: a checkpointer, whose threads are sessions
langgraph_store.py            LangGraph: a store of items in a session
pydantic_ai.py                pydantic-ai: a history processor that makes each call fit, and its messages as ours
pydantic_ai_conversations.py  pydantic-ai: a store of conversations, which are sessions
synced_messages.py            messages of a framework that a session shows, and the steps that change them
framework_sessions.py         sessions in which an adapter keeps a framework's state

None of these frameworks is a dependency; import a module only if its framework is installed.
"""

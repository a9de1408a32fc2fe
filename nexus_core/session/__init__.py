"""Conversations that outlive the program: a tool loop in which every step is kept before it counts.

session.py       Session: ask, record, next; async_session.py: the same, awaited; drivers.py: how both run one pipeline
pipeline.py      what each verb does, written once; spawning.py: workers, and what they bring back
compacting/      earlier turns give way to a summary: when, which, by whom; also after a provider refused a call
thread/          how a session gets on in its ledger, whoever else writes there
recording/       what a model answered and tools brought becomes steps, and never the same one twice
asking/          what is said, and what is to be sent then
steps/           what the steps of a thread say: messages, turns, sums
opening.py       what a Nexus gives its callers; options.py: what they say about a session; arguments.py: checked
place.py         what all sessions of a Nexus have in common; announcing.py: plugins that watch are told
replaying.py     what was sent before a reply; caching.py: what became of the provider's cache
explaining.py    where a sentence comes from, and why a step is not sent
"""

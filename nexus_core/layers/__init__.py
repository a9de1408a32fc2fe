"""From a request to the layers on disk, what they say and set, and the sections that become of it.

loading.py       asks the plugins and puts everything together
guarding.py      keeps a project's settings within what a project may decide
texts.py         which texts are used, made safe; pieces.py: in which file a part of one stands
servers.py       the MCP servers among the settings; rechecking.py: whether one may still be started
sections.py      texts and settings become sections
context.py       the result for a directory, and what a subagent gets of it; context_layer.py: one layer by itself
profiles.py      what another agent would read here; profile_context.py: as a context
explaining.py    where something comes from; diagnosis.py: what is wrong with it; initialising.py: a new layer
"""

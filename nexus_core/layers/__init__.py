"""From a request to the layers on disk, what they say and set, and the sections that become of it.

loader.py        from a directory to its context, for one Nexus; loading.py: asks the plugins, puts everything together
guarding.py      keeps a project's settings within what a project may decide; names.py: settings that name something;
                 faults.py: what is wrong with settings, as findings
texts.py         which texts are used, made safe; pieces.py: in which file a part of one stands
servers.py       the MCP servers among the settings; rechecking.py: whether one may still be started
sections.py      texts and settings become sections
context.py       the result for a directory, and what a subagent gets of it; context_layer.py: one layer by itself
profiles.py      what another agent would read here; other_agents.py: as a context; agent_settings.py: its own settings
explaining.py    where something comes from; agent_access.py: which agents read a file; initialising.py: a new layer
diagnosis.py     what is wrong with what was loaded; volatile.py: what in it changes from day to day
"""

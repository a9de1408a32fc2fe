"""The contract between Nexus and its plugins: every hook, in the order of a run.

starting.py      nexus_commands, nexus_init_files, nexus_settings, nexus_merge_policies
layers.py        nexus_layers, nexus_layer_config, nexus_layer_texts
prompt.py        nexus_static_sections, nexus_current_sections, nexus_tools, nexus_renderers, nexus_dialects,
                 nexus_roles
conversation.py  nexus_models, nexus_token_counter, nexus_truncations, nexus_compaction_plan, nexus_summarisers,
                 nexus_ledger
announcing.py    nexus_assembled, nexus_recorded
diagnosis.py     nexus_diagnose
markers.py       hookspec and hookimpl, which mark a function as a hook

A plugin is a module (or any object) with functions that are named after hooks and marked `@hookimpl`:

    from nexus_core import Section, hookimpl


    @hookimpl
    def nexus_static_sections(request):
        return [Section("motto", title="Motto", text="Measure twice, cut once.")]

Name only the parameters you need. Every type can be imported from `nexus_core` or `nexus_core.plugin`. The second
paragraph about each hook says how answers are used:

- Collects: every plugin is asked, and all answers are used. They are sorted, so the order of installation never shows.
- First answer wins: plugins are asked until one returns something other than None; installed plugins are asked before
  bundled ones.
- Announces: every plugin is told what has happened, in the order of their names, and there is nothing to answer.

A `NexusError` raised in a hook reaches the user as it is, unless the hook announces. After any other exception, or an
answer of the wrong type, that answer is left out: Nexus names the plugin and the hook and goes on (with
`NEXUS_STRICT=1` it stops instead). Hook wrappers are refused, because they would change answers that carry another
plugin's name.
"""

from nexus_core.hookspecs import announcing, conversation, diagnosis, layers, prompt, starting
from nexus_core.hookspecs.markers import PROJECT, hookimpl

__all__ = ["PROJECT", "STAGES", "hookimpl"]

STAGES = (starting, layers, prompt, conversation, announcing, diagnosis)
"""The modules that specify hooks, in the order of a run."""

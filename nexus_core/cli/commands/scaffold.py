"""The package that `nexus plugin new` writes, with a template for each hook.

In the templates, `{name}`, `{module}`, `{title}` and `{command}` are replaced by those of the new plugin.
"""

from __future__ import annotations

import re
from textwrap import dedent

import tomli_w

from nexus_core._version import __version__
from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.calls import get_hooks
from nexus_core.types.base import dataclass

DEFAULT_HOOK = "nexus_static_sections"

_PLUGIN_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# Their distributions or packages would be called like ours, or their plugins could not load beside ours.
_RESERVED_NAMES = {"core", "plugins", *(candidate.name for candidate in BUNDLED)}

_README_TEMPLATE = """# {distribution}

A plugin for Nexus (`nexusctx`) that {does}.

    pip install -e '.[test]'
    nexus plugin list      # {name} is active
    nexus plugin test {name}
    pytest

The hook is in `{module}/__init__.py`. `nexus plugin hooks {hook}` prints its reference, and
`nexus plugin hooks` lists all the others.
"""

_TESTS_TEMPLATE = """{imports}

pytest_plugins = ["nexus_core.testing.fixtures"]


def test_the_plugin_keeps_the_contract():
    assert check_plugin({module}) == []


def test_{test}
"""


@dataclass(frozen=True, slots=True)
class PluginPackage:
    """A plugin package: names of its distribution and plugin, and its files by relative path."""

    distribution: str
    plugin: str
    files: dict[str, str]


def build_plugin_package(name: str, hook: str = DEFAULT_HOOK) -> PluginPackage:
    """Return the package of a plugin: one hook, its tests and a README, ready to be installed.

    Args:
        name: The plugin's name: lower case letters, digits and single hyphens.
        hook: The hook that it implements.

    Raises:
        UsageError: It cannot be the name of a plugin.
        UnknownNameError: There is no such hook.
    """
    if hook not in get_hooks():
        raise UnknownNameError("hook", hook, get_hooks())
    if not _PLUGIN_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a plugin",
            hint="use lower case letters, digits and single hyphens, starting with a letter: git-status",
        )
    if name.replace("-", "_") in _RESERVED_NAMES:
        raise UsageError(f"{name!r} is taken: it would replace a part of Nexus", hint="choose another name")
    distribution, module = f"nexus-{name}", f"nexus_{name.replace('-', '_')}"
    sample = HOOK_TEMPLATES[hook]
    words = {
        "distribution": distribution,
        "module": module,
        "name": name.replace("-", "_"),
        "title": name.replace("-", " ").title(),
        "command": name,
        "hook": hook,
    }

    def fill(text: str) -> str:
        for word, value in words.items():
            text = text.replace(f"{{{word}}}", value)
        return text

    does, code = fill(sample.does), fill(dedent(sample.code).strip())
    files = {
        "pyproject.toml": tomli_w.dumps(_build_pyproject(distribution, module, words["name"], does)),
        "README.md": fill(_README_TEMPLATE.replace("{does}", does)),
        f"{module}/__init__.py": f'"""{words["title"]}: a plugin for Nexus that {does}."""\n\n{code}\n',
        f"{module}/py.typed": "",
        f"tests/test_{module}.py": fill(_build_tests(sample)),
    }
    for file, text in sample.files:
        files[f"{module}/{file}"] = fill(dedent(text).strip()) + "\n"
    return PluginPackage(distribution, words["name"], files)


def _build_tests(sample: HookTemplate) -> str:
    """Return the test module of a sample: that it keeps the contract, and what it does."""
    imports = "\n".join(
        filter(None, [sample.imports, "from nexus_core.testing import check_plugin\n\nimport {module}"])
    )
    return _TESTS_TEMPLATE.replace("{imports}", imports).replace("{test}", dedent(sample.test).strip())


def _build_pyproject(distribution: str, module: str, name: str, does: str) -> dict[str, object]:
    return {
        "build-system": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
        "project": {
            "name": distribution,
            "version": "0.1.0",
            "description": f"A plugin for Nexus that {does}.".replace("`", ""),
            "readme": "README.md",
            "requires-python": ">=3.11",
            "dependencies": [f"nexusctx>={__version__}"],
            "optional-dependencies": {"test": ["pytest"]},
            "entry-points": {"nexus.plugins": {name: module}},
        },
        "tool": {
            "hatch": {"build": {"targets": {"wheel": {"packages": [module]}}}},
            "pytest": {"ini_options": {"testpaths": ["tests"]}},
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTemplate:
    """An implementation of one hook, and a test of it.

    Attributes:
        does: What the plugin does, for a sentence about it.
        code: The module, without its docstring.
        test: A test function, from behind `def test_`.
        imports: The first lines of the test module.
        files: The names and texts of further modules.
    """

    does: str
    code: str
    test: str
    imports: str = ""
    files: tuple[tuple[str, str], ...] = ()


HOOK_TEMPLATES: dict[str, HookTemplate] = {
    "nexus_commands": HookTemplate(
        does="adds the command `nexus {command}`",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import Command


            @hookimpl
            def nexus_commands() -> list[Command]:
                return [Command("{command}", "Say where you are.", "{module}._cli:app")]
        """,
        files=(
            (
                "_cli.py",
                '''
                """`nexus {command}`, imported when it runs."""

                import typer

                app = typer.Typer()


                @app.command()
                def say(ctx: typer.Context) -> None:
                    """Say where you are."""
                    ctx.obj.console.text(f"{title}: {ctx.obj.cwd.name}")
                ''',
            ),
        ),
        imports=(
            "from types import SimpleNamespace\n\nfrom typer.testing import CliRunner\n\nfrom {module}._cli import app"
        ),
        test="""
            the_command_says_where_you_are(tmp_path):
                printed = []
                context = SimpleNamespace(cwd=tmp_path, console=SimpleNamespace(text=printed.append))

                outcome = CliRunner().invoke(app, obj=context)

                assert (outcome.exit_code, printed) == (0, [f"{title}: {tmp_path.name}"])
        """,
    ),
    "nexus_init_files": HookTemplate(
        does="adds a file to what `nexus init` writes",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import InitFile


            @hookimpl
            def nexus_init_files(scope: str) -> list[InitFile]:
                return [InitFile("{title}.md", "Write down what matters.\\n")] if scope == "local" else []
        """,
        test="""
            only_projects_get_the_file():
                (file,) = {module}.nexus_init_files("local")

                assert file.name == "{title}.md"
                assert {module}.nexus_init_files("global") == []
        """,
    ),
    "nexus_settings": HookTemplate(
        does="has settings of its own, `plugins.{name}`",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import PluginSettings


            @hookimpl
            def nexus_settings() -> list[PluginSettings]:
                return [PluginSettings("{module}._settings:Settings")]
        """,
        files=(
            (
                "_settings.py",
                '''
                """The settings `plugins.{name}`, imported when there are some to check."""

                from nexus_core.plugin.settings import StrictModel


                class Settings(StrictModel):
                    """What can be set."""

                    depth: int = 3
                ''',
            ),
        ),
        imports="import pytest\nfrom nexus_core import ConfigError",
        test="""
            a_setting_of_the_wrong_type_is_refused(make_nexus):
                nexus = make_nexus(
                    {".nexus3/config.json": '{"plugins": {"{module}": {"depth": "deep"}}}'}, plugins=[{module}]
                )

                with pytest.raises(ConfigError, match="depth"):
                    nexus.load()
        """,
    ),
    "nexus_merge_policies": HookTemplate(
        does="decides how values of several layers are merged",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import MergePolicy


            @hookimpl
            def nexus_merge_policies() -> list[MergePolicy]:
                return [MergePolicy("plugins.{module}.depth", max)]  # the larger one, whichever layer has it
        """,
        test="""
            the_larger_number_wins(make_nexus, nexus_home):
                (nexus_home / "config.json").write_text('{"plugins": {"{module}": {"depth": 5}}}')
                nexus = make_nexus(
                    {".nexus3/config.json": '{"plugins": {"{module}": {"depth": 2}}}'}, plugins=[{module}]
                )

                assert nexus.load().settings.get("plugins.{module}.depth") == 5
        """,
    ),
    "nexus_layers": HookTemplate(
        does="finds another directory with instructions",
        code="""
            from nexus_core import Request, hookimpl
            from nexus_core.plugin import Layer


            @hookimpl
            def nexus_layers(request: Request) -> list[Layer]:
                directory = request.home / "{name}"  # its NEXUS.md is read by Nexus itself
                return [Layer("global:{name}", directory, "global")] if directory.is_dir() else []
        """,
        test="""
            its_instructions_are_in_the_prompt(make_nexus, nexus_home):
                (nexus_home / "{name}").mkdir()
                (nexus_home / "{name}/NEXUS.md").write_text("Measure twice.")

                assert "Measure twice." in make_nexus(plugins=[{module}]).system_prompt()
        """,
    ),
    "nexus_layer_config": HookTemplate(
        does="reads settings from `{name}.json`",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import Layer, LayerConfig, SkippedFile
            from nexus_core.plugin.files import LayerReader, read_layer_json


            @hookimpl
            def nexus_layer_config(layer: Layer) -> list[LayerConfig | SkippedFile]:
                path = layer.directory / "{name}.json"
                document = read_layer_json(path, LayerReader(layer), empty={})
                if isinstance(document, SkippedFile):
                    return [document]
                return [LayerConfig(path, document.value, document.position)]
        """,
        test="""
            its_file_has_settings(make_nexus):
                nexus = make_nexus(
                    {".nexus3/NEXUS.md": "Hi.", ".nexus3/{name}.json": '{"provider": {"model": "gpt-4o"}}'},
                    plugins=[{module}],
                )

                assert nexus.load().settings.get("provider.model") == "gpt-4o"
        """,
    ),
    "nexus_layer_texts": HookTemplate(
        does="reads instructions from `{title}.md`",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import Layer, LayerText, SkippedFile
            from nexus_core.plugin.files import LayerReader


            @hookimpl
            def nexus_layer_texts(layer: Layer) -> list[LayerText | SkippedFile]:
                path = layer.directory / "{title}.md"
                text = LayerReader(layer).read_text(path)
                return [text if isinstance(text, SkippedFile) else LayerText(path, text)]
        """,
        test="""
            its_file_is_in_the_prompt(make_nexus):
                nexus = make_nexus({".nexus3/{title}.md": "Measure twice."}, plugins=[{module}])

                assert "Measure twice." in nexus.system_prompt()
        """,
    ),
    "nexus_static_sections": HookTemplate(
        does="adds the section `{title}` to the prompt",
        code='''
            from nexus_core import Request, Section, hookimpl
            from nexus_core.plugin.text import visible_line


            @hookimpl
            def nexus_static_sections(request: Request) -> list[Section]:
                """The section `## {title}`."""
                where = visible_line(request.cwd.name)  # a directory may be called anything
                return [Section("{name}", title="{title}", text=f"This directory is called {where}.")]
        ''',
        test="""
            its_section_is_in_the_prompt(make_nexus):
                nexus = make_nexus(cwd="demo", plugins=[{module}])

                assert "## {title}\\nThis directory is called demo." in nexus.system_prompt()
        """,
    ),
    "nexus_current_sections": HookTemplate(
        does="adds the section `{title}` to every message of the user",
        code="""
            from nexus_core import Request, Section, hookimpl


            @hookimpl
            def nexus_current_sections(request: Request) -> list[Section]:
                return [Section("{name}", title="{title}", text=f"Files here: {len(list(request.cwd.iterdir()))}")]
        """,
        test="""
            its_section_is_in_the_message(make_nexus):
                nexus = make_nexus({"a.txt": "x"}, plugins=[{module}])

                assert "Files here: 1" in nexus.session("demo").ask("Why?").messages[-1].content
        """,
    ),
    "nexus_tools": HookTemplate(
        does="offers a tool to the model",
        code="""
            from nexus_core import Tool, hookimpl


            @hookimpl
            def nexus_tools() -> list[Tool]:
                parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
                return [Tool(name="{name}", description="Say what is in a directory.", parameters=parameters)]
        """,
        test="""
            its_tool_is_offered(make_nexus):
                call = make_nexus(plugins=[{module}]).session("demo").ask("Why?")

                assert [tool.name for tool in call.tools] == ["{name}"]
        """,
    ),
    "nexus_renderers": HookTemplate(
        does="has a renderer, `renderer: {name}` in the settings",
        code="""
            from nexus_core import Message, hookimpl
            from nexus_core.plugin import Renderer


            def write_system(sections):
                return "\\n\\n".join(section.text for section in sections)


            def write_current(request, sections, now):
                notes = [section.text for section in sections]
                return Message("user", "\\n\\n".join([*notes, request.message.content]))


            @hookimpl
            def nexus_renderers() -> list[Renderer]:
                return [Renderer(name="{name}", system=write_system, current=write_current)]
        """,
        test="""
            sections_have_no_headings(make_nexus):
                nexus = make_nexus({".nexus3/NEXUS.md": "Be kind."}, plugins=[{module}])

                call = nexus.session("demo", renderer="{name}").ask("Why?")

                assert "Be kind." in call.system_prompt
                assert "# System Configuration" not in call.system_prompt
        """,
    ),
    "nexus_dialects": HookTemplate(
        does="speaks the API `{name}`",
        code="""
            from nexus_core import Message, MessageError, Tool, hookimpl
            from nexus_core.plugin import Text, ToolCall, ToolResult
            from nexus_core.plugin.dialects import (
                ApiDialect,
                ApiRules,
                Conversation,
                Reply,
                assign_call_ids,
                provider_fields,
                read_each,
                to_json_dict,
            )

            API = "{name}"
            ROLES = {"user": "user", "bot": "assistant", "tool": "tool"}
            SPEAKERS = {role: who for who, role in ROLES.items()}


            def recognises(item):
                return item.get("who") in ROLES or "answer" in item


            def read(item):
                block = to_json_dict(item)
                who = block.pop("who", None)
                if who not in ROLES:
                    raise MessageError(f"unknown speaker {who!r}", path="who")
                text, calls = block.pop("text", ""), block.pop("calls", ())
                if who == "tool":
                    parts = [ToolResult(block.pop("of", ""), text)]
                else:
                    parts = [Text(text)] if text else []
                    parts += [ToolCall(call["id"], call["tool"], call["input"]) for call in calls]
                return Message(ROLES[who], parts, api=API, extra=block)


            def write(messages):
                said = [message for message in assign_call_ids(messages, API) if message.role != "system"]
                return [item for message in said for item in write_items(message)]


            def write_items(message):
                own = provider_fields(message.extra) if message.api == API else {}
                if message.tool_results:
                    results = message.tool_results
                    return [{"who": "tool", "of": each.call_id, "text": each.text, **own} for each in results]
                item = {"who": SPEAKERS[message.role], **({"text": message.content} if message.content else {}), **own}
                said = message.tool_calls
                calls = [{"id": each.id, "tool": each.name, "input": dict(each.arguments)} for each in said]
                return [item | ({"calls": calls} if calls else {})]


            def read_request(body):
                block = to_json_dict(body)
                system = [Message("system", block.pop("system"), api=API)] if block.get("system") else []
                messages, tools = read_each(block.pop("chat", ()), read, "chat"), read_tools(block.pop("tools", ()))
                return Conversation(messages=(*system, *messages), tools=tools, api=API, extra=block)


            def write_request(conversation, marks=None):
                system = "\\n\\n".join(each.content for each in conversation.messages if each.role == "system")
                body = {"chat": write(conversation.messages), **conversation.extra}
                body |= {"system": system} if system else {}
                return body | ({"tools": write_tools(conversation.tools)} if conversation.tools else {})


            def read_reply(reply):
                block = to_json_dict(reply)
                if "answer" not in block:
                    raise MessageError("a reply has an answer", path="answer")
                said = read(block["answer"])
                return Reply(messages=(said,), stop="tools" if said.tool_calls else "end", api=API)


            def read_tools(tools):
                return read_each(tools, read_tool, "tools")


            def read_tool(tool):
                block = to_json_dict(tool)
                if "tool" not in block:
                    raise MessageError("a tool has a name", path="tool")
                use, parameters = block.get("use", ""), block.get("input", {})
                return Tool(name=block["tool"], description=use, parameters=parameters, api=API)


            def write_tools(tools):
                return [{"tool": tool.name, "use": tool.description, "input": dict(tool.parameters)} for tool in tools]


            @hookimpl
            def nexus_dialects() -> list[ApiDialect]:
                return [
                    ApiDialect(
                        rules=ApiRules(name=API, system="field", results="each"),
                        recognises=recognises,
                        read=read,
                        write=write,
                        read_request=read_request,
                        write_request=write_request,
                        read_reply=read_reply,
                        read_tools=read_tools,
                        write_tools=write_tools,
                    )
                ]
        """,
        test="""
            a_call_is_written_for_the_api(make_nexus):
                call = make_nexus(plugins=[{module}]).session("demo").ask("Why?")

                assert call.to("{name}")["chat"][-1]["who"] == "user"
        """,
    ),
    "nexus_roles": HookTemplate(
        does="defines the role `{name}`",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import AgentRole


            @hookimpl
            def nexus_roles() -> list[AgentRole]:
                return [AgentRole(name="{name}", scopes=("general",))]
        """,
        imports="from nexus_core import Tool",
        test="""
            the_role_gets_general_tools_only(make_nexus):
                tools = [Tool(name="read"), Tool(name="start", scope="spawn")]

                call = make_nexus(plugins=[{module}]).session("demo", role="{name}", tools=tools).ask("Why?")

                assert [tool.name for tool in call.tools] == ["read"]
        """,
    ),
    "nexus_models": HookTemplate(
        does="describes the models `{command}-*`",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import Model


            @hookimpl
            def nexus_models() -> list[Model]:
                return [Model(name="{command}-*", window=64_000, max_output=4_000, encoding="o200k_base")]
        """,
        test="""
            the_window_of_its_models_is_known(make_nexus):
                call = make_nexus(plugins=[{module}]).session("demo", model="{command}-large").ask("Why?")

                assert call.token_budget.limit == 64_000
        """,
    ),
    "nexus_token_counter": HookTemplate(
        does="counts tokens for the models `{command}-*`",
        code='''
            from nexus_core import hookimpl
            from nexus_core.plugin import TextCounter


            class Counter(TextCounter):
                """Counts a text; `TextCounter` has the other methods."""

                name = "{name}:v1"  # counts are cached under it: change it when they change
                exact = False

                def count(self, text: str) -> int:
                    return len(text.encode("utf-8", "surrogatepass")) // 4 + 1


            @hookimpl
            def nexus_token_counter(model: str) -> Counter | None:
                return Counter() if model.startswith("{command}-") else None
        ''',
        test="""
            its_models_are_counted_by_it_and_others_are_not():
                assert {module}.nexus_token_counter("{command}-large").count("Why?") == 2
                assert {module}.nexus_token_counter("gpt-4o") is None
        """,
    ),
    "nexus_truncation_strategies": HookTemplate(
        does="has a truncation, `truncation.strategy: {name}` in the settings",
        code='''
            from nexus_core import hookimpl
            from nexus_core.plugin import GroupSizes, TruncationStrategy


            def choose(groups: GroupSizes, budget: int) -> list[slice]:
                """Keep the newest groups that fit."""
                count = groups.newest(budget)
                return [slice(-count, None)] if count else []


            @hookimpl
            def nexus_truncation_strategies() -> list[TruncationStrategy]:
                return [TruncationStrategy("{name}", choose)]
        ''',
        test="""
            the_newest_messages_stay(make_nexus):
                messages = [{"role": "user", "content": f"{number} " + "word " * 100} for number in range(9)]

                kept = make_nexus(plugins=[{module}]).fit(messages, budget=400, strategy="{name}").messages

                numbers = [message["content"].split()[0] for message in kept]
                assert numbers == [str(number) for number in range(9)][-len(kept) :]
                assert 0 < len(kept) < len(messages)
        """,
    ),
    "nexus_compaction_plan": HookTemplate(
        does="decides that the newest turn stays when a conversation is summarized",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import CompactionPlan, ThreadOutline


            @hookimpl
            def nexus_compaction_plan(thread: ThreadOutline) -> CompactionPlan | None:
                return CompactionPlan(first_kept=thread.turns[-1].first) if len(thread.turns) > 1 else None
        """,
        imports="from nexus_core.testing.samples import build_sample_thread",
        test="""
            the_newest_turn_stays():
                thread, *_ = build_sample_thread()

                assert {module}.nexus_compaction_plan(thread).first_kept == thread.turns[-1].first
        """,
    ),
    "nexus_summarizers": HookTemplate(
        does='has a summarizer, `compaction.summarizers: ["{name}"]` in the settings',
        code='''
            from nexus_core import hookimpl
            from nexus_core.plugin import Summarizer, SummaryRequest


            def summarise(request: SummaryRequest) -> str:
                """Repeat the first line of everything that the user said."""
                said = [message.content for message in request.messages if message.role == "user"]
                return "\\n".join(text.partition("\\n")[0] for text in said)


            @hookimpl
            def nexus_summarizers() -> list[Summarizer]:
                return [Summarizer(name="{name}", summarise=summarise, asks_model=False)]
        ''',
        test="""
            its_summary_says_what_the_user_wanted(make_nexus, nexus_home):
                settings = '{"compaction": {"summarizers": ["{name}"]}}'
                (nexus_home / "config.json").write_text(settings)
                session = make_nexus(plugins=[{module}]).session("demo", model="gpt-4o")
                for number in range(6):
                    session.ask(f"Question {number}.\\n" + "Please look at it closely. " * 20)
                    session.record({"role": "assistant", "content": "Done. " * 100})

                session.compact()

                assert "Question 0." in session.messages[0].content
        """,
    ),
    "nexus_ledger": HookTemplate(
        does="keeps conversations at `{command}:///path`",
        code='''
            from nexus_core import hookimpl
            from nexus_core.plugin import Ledger
            from nexus_plugins import ledger

            SCHEME = "{command}:///"


            @hookimpl
            def nexus_ledger(url: str) -> Ledger | None:
                """Open a file of SQLite; derive from `nexus_core.plugin.ledgers.StoreLedger` to keep rows elsewhere."""
                return ledger.nexus_ledger(f"sqlite:///{url[len(SCHEME) :]}") if url.startswith(SCHEME) else None
        ''',
        imports="from nexus_core import Nexus",
        test="""
            a_session_is_there_again(tmp_path, nexus_home):
                work, where = tmp_path / "work", f"{command}:///{tmp_path / 'kept.db'}"
                work.mkdir()
                with Nexus(work, plugins=[{module}], ledger=where) as nexus:
                    nexus.session("demo").ask("Why?")

                with Nexus(work, plugins=[{module}], ledger=where) as nexus:
                    assert nexus.ledger.session("demo") is not None
        """,
    ),
    "nexus_memory_sources": HookTemplate(
        does="finds memories for user messages, where `memory.enabled` is set",
        code='''
            from nexus_core import Source, hookimpl
            from nexus_core.plugin import Memory, MemoryQuery, MemorySource

            NOTE = Memory(text="Deploy on Fridays only.", kind="note", source=Source(uri="{name}:deploy"), score=0.5)


            def search(query: MemoryQuery) -> list[Memory]:
                """Return what is known about a message, the best first."""
                return [NOTE] if "deploy" in query.text.lower() else []


            @hookimpl
            def nexus_memory_sources() -> list[MemorySource]:
                return [MemorySource(name="{name}", search=search)]
        ''',
        test="""
            a_memory_is_recalled(make_nexus):
                result = make_nexus(plugins=[{module}]).recall("When do we deploy?")

                assert [memory.text for memory in result.memories] == ["Deploy on Fridays only."]
        """,
    ),
    "nexus_embedders": HookTemplate(
        does="turns texts into vectors, where `memory.embedder` names it",
        code='''
            from collections.abc import Sequence

            from nexus_core import hookimpl
            from nexus_core.plugin import Embedder

            LETTERS = "abcdefghijklmnopqrstuvwxyz"


            def embed(texts: Sequence[str]) -> list[list[float]]:
                """Return a vector for each text; call your model here."""
                return [[float(text.lower().count(letter)) for letter in LETTERS] for text in texts]


            @hookimpl
            def nexus_embedders() -> list[Embedder]:
                return [Embedder(name="{name}", embed=embed)]
        ''',
        test="""
            its_vectors_have_one_length(make_nexus):
                embedder = make_nexus(plugins=[{module}]).host.embedders().get("{name}")

                assert {len(vector) for vector in embedder.embed(["One.", "Two texts."])} == {26}
        """,
    ),
    "nexus_providers": HookTemplate(
        does='provides a model, `provider="{name}"` of an agent',
        code='''
            from collections.abc import Iterator

            from nexus_core import AssembledContext, Message, hookimpl
            from nexus_core.plugin import CancelSignal, Provider, ProviderEvent, ProviderReply, TextDelta
            from nexus_core.plugin.dialects import Reply


            def echo(context: AssembledContext, cancel: CancelSignal) -> Iterator[ProviderEvent]:
                """Repeat the last message; call your model here, and stop when the signal is set."""
                text = context.messages[-1].content
                yield TextDelta(text)
                yield ProviderReply(Reply(messages=(Message("assistant", text),), stop="end"))


            @hookimpl
            def nexus_providers() -> list[Provider]:
                return [Provider(name="{name}", stream=echo)]
        ''',
        test="""
            its_model_answers(make_nexus):
                agent = make_nexus(plugins=[{module}]).agent("demo", provider="{name}")

                assert "Why?" in agent.answer("Why?")
        """,
    ),
    "nexus_toolsets": HookTemplate(
        does="runs the tool `{name}` in `nexus chat`",
        code='''
            from contextlib import AbstractContextManager, nullcontext

            from nexus_core import Nexus, Tool, hookimpl
            from nexus_core.plugin import Toolset
            from nexus_core.plugin.ledgers import CallResult, RecordedCall


            class Greeter:
                """Runs the tool."""

                risk = "low"

                def __contains__(self, name: object) -> bool:
                    return name == "{name}"

                def run(self, call: RecordedCall) -> CallResult:
                    return call.result("Good morning!")


            def open_greeter(nexus: Nexus) -> AbstractContextManager[Greeter]:
                return nullcontext(Greeter())


            @hookimpl
            def nexus_tools() -> list[Tool]:
                return [Tool(name="{name}", description="Greet.", parameters={"type": "object"})]


            @hookimpl
            def nexus_toolsets() -> list[Toolset]:
                return [Toolset(name="{name}", open=open_greeter)]
        ''',
        test="""
            its_tools_are_there(make_nexus):
                nexus = make_nexus(plugins=[{module}])

                with nexus.host.toolsets().get("{name}").open(nexus) as runner:
                    assert "{name}" in runner
        """,
    ),
    "nexus_transcripts": HookTemplate(
        does="reads transcripts whose lines have `asked` and `answered`",
        code="""
            from nexus_core import hookimpl
            from nexus_core.plugin import TranscriptLocation, TranscriptReader


            @hookimpl
            def nexus_transcripts() -> list[TranscriptReader]:
                logs = TranscriptLocation("~/.{name}", "logs/*.jsonl")
                return [TranscriptReader("{name}", "{name}", "{module}._reader:FORMAT", (logs,))]
        """,
        test="""
            its_transcripts_are_read():
                lines = ['{"asked": "Why?"}', '{"answered": "So."}']

                transcript = read_transcript(lines, formats=[FORMAT])

                assert [message.content for message in transcript.messages] == ["Why?", "So."]
        """,
        imports="from nexus_core.plugin.transcripts import read_transcript\n\nfrom {module}._reader import FORMAT",
        files=(
            (
                "_reader.py",
                '''
                """The reader."""

                from __future__ import annotations

                from collections.abc import Sequence
                from typing import Any

                from nexus_core.plugin.transcripts import (
                    SCORE_NONE,
                    SCORE_OWN,
                    EntryCollector,
                    JsonLine,
                    LineAccount,
                    Transcript,
                    TranscriptFormat,
                )


                def score_line(outline: dict[str, Any]) -> int:
                    """Tell a line of this program by its keys; texts are empty here."""
                    return SCORE_OWN if "asked" in outline or "answered" in outline else SCORE_NONE


                def read_lines(records: Sequence[JsonLine], account: LineAccount) -> Transcript:
                    """Turn lines into messages."""
                    found = EntryCollector("{name}", account)
                    for record in records:
                        if "asked" in record.value:
                            found.add("user", str(record.value["asked"]), record)
                        elif "answered" in record.value:
                            found.add("assistant", str(record.value["answered"]), record)
                        else:
                            found.keep_unknown(record, "line")
                    return found.build()


                FORMAT = TranscriptFormat("{name}", "a log of {name}", score_line, read_lines=read_lines)
                ''',
            ),
        ),
    ),
    "nexus_call_assembled": HookTemplate(
        does="watches how large calls are",
        code="""
            from nexus_core import AssembledContext, hookimpl

            LARGEST: dict[str, int] = {}


            @hookimpl
            def nexus_call_assembled(context: AssembledContext) -> None:
                tokens = context.token_budget.total
                LARGEST[context.session_label] = max(tokens, LARGEST.get(context.session_label, 0))
        """,
        test="""
            a_call_is_noticed(make_nexus):
                make_nexus(plugins=[{module}]).session("demo").ask("Why?")

                assert {module}.LARGEST["demo"] > 0
        """,
    ),
    "nexus_step_recorded": HookTemplate(
        does="watches what replies cost",
        code="""
            from nexus_core import Usage, hookimpl

            SPENT: dict[str, int] = {}


            @hookimpl
            def nexus_step_recorded(session: str, usage: Usage | None) -> None:
                if usage is not None:
                    SPENT[session] = SPENT.get(session, 0) + usage.total_tokens
        """,
        test="""
            a_reply_is_added_to_what_was_spent(make_nexus):
                session = make_nexus(plugins=[{module}]).session("demo", model="gpt-4o")
                session.ask("Why?")
                answer = {"message": {"role": "assistant", "content": "Because."}, "finish_reason": "stop"}
                session.record(
                    {"choices": [answer], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}
                )

                assert {module}.SPENT["demo"] == 7
        """,
    ),
    "nexus_diagnose": HookTemplate(
        does="looks for texts in capitals",
        code="""
            from nexus_core import Finding, hookimpl
            from nexus_core.plugin import LoadedLayers


            @hookimpl
            def nexus_diagnose(loaded: LoadedLayers) -> list[Finding]:
                loud = [text.path for text in loaded.texts if text.text.isupper()]
                return [Finding("shouting", "written in capitals only", path) for path in loud]
        """,
        test="""
            a_text_in_capitals_is_found(make_nexus):
                loaded = make_nexus({".nexus3/NEXUS.md": "BE KIND."}).load()

                assert [finding.code for finding in {module}.nexus_diagnose(loaded)] == ["shouting"]
        """,
    ),
}

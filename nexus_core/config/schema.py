"""What config.json may say. Imported only where settings are checked, because pydantic takes its time."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from nexus_core.text.visible import visible_line
from nexus_core.values.request import DEFAULT_ANCESTOR_DEPTH

Ratio = Annotated[float, Field(gt=0, le=1)]
Tokens = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """A group of settings that refuses what it does not know; plugins derive theirs from it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class ProviderConfig(Strict):
    """Which model is called, and how."""

    model: str | None = Field(default=None, description="The model's name, as its provider calls it.")
    provider: str | None = Field(default=None, description="Who serves it: anthropic, openai, gemini, …")
    base_url: str | None = Field(default=None, description="Another address of the same API. Only in your own config.")
    api_key_env: str | None = Field(
        default=None, description="The environment variable that holds the key. Only in your own config."
    )
    context_window: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="The model's window in tokens, where Nexus does not know it."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Handed to the provider as they are.")


class ModelConfig(Strict):
    """What is known of a model, where Nexus does not know it or is wrong; with `id`, the name is an alias of it."""

    id: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The model that this name stands for. Only in your own config."
    )
    window: Annotated[int, Field(gt=0)] | None = Field(default=None, description="How many tokens fit in a call.")
    encoding: str | None = Field(default=None, description="Its tokeniser: cl100k_base, o200k_base, …")
    max_output: Tokens | None = Field(default=None, description="How many tokens an answer may have.")
    cache_minimum: Tokens | None = Field(default=None, description="The shortest prefix that its provider caches.")
    cache_breakpoints: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="How many places of a call may be marked for its provider's cache."
    )
    request_bytes: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="How many bytes a request may have, where its API takes more or less than others."
    )


class ToolPermissions(Strict):
    """Which tools an agent may be given."""

    allow: list[str] | None = Field(default=None, description="Only these; absent means all.")
    deny: list[str] = Field(default_factory=list, description="Never these. A project may add, not take away.")


class PermissionsConfig(Strict):
    """How much an agent may do; a project may only tighten it."""

    level: Literal["yolo", "trusted", "sandboxed"] = Field(default="trusted", description="From loosest to tightest.")
    tools: ToolPermissions = Field(default_factory=ToolPermissions, description="Tools by name.")


class ContextConfig(Strict):
    """What is read from disk, and how much of a conversation is kept."""

    ancestor_depth: Annotated[int, Field(ge=0, le=10)] = Field(
        default=DEFAULT_ANCESTOR_DEPTH,
        description="How many levels above the working directory may contribute a layer.",
    )
    include_readme: bool = Field(default=False, description="Read README.md beside NEXUS.md.")
    readme_as_fallback: bool = Field(default=True, description="Read README.md where a layer has no instructions.")
    instruction_files: list[str] | None = Field(
        default=None,
        description="Files of which a layer of a project contributes the first: NEXUS.md, AGENTS.md, …",
    )
    max_tokens: Tokens = Field(default=8000, description="The budget of a conversation manager.")
    reserve_tokens: Tokens = Field(default=2000, description="What of it is kept free for the answer.")
    truncation_strategy: str = Field(default="oldest_first", description="What is left out when it does not fit.")
    start_with_user: bool = Field(
        default=False, description="Leave out what stands before the first message of the user that is kept."
    )
    clock: Literal["message", "system", "off"] = Field(
        default="system",
        description="Where a conversation manager puts the time: fresh in the system prompt of every call, in each "
        "message of the user, or nowhere.",
    )
    session_start: bool = Field(
        default=True, description="Begin new conversations with a line that says when they started."
    )

    @field_validator("instruction_files")
    @classmethod
    def _names_files(cls, names: list[str] | None) -> list[str] | None:
        for name in names or ():
            if not name.lower().endswith(".md") or ".." in name or "/" in name or "\\" in name:
                raise ValueError(f"{name!r} must be the name of a .md file, without a directory")
            if visible_line(name) != name:
                raise ValueError(f"'{visible_line(name)}' must be a name without invisible characters")
        return names

    @model_validator(mode="after")
    def _leaves_room(self) -> Self:
        if self.reserve_tokens > self.max_tokens:
            raise ValueError(f"reserve_tokens ({self.reserve_tokens}) must not exceed max_tokens ({self.max_tokens})")
        return self


class BudgetConfig(Strict):
    """What is kept free in the model's window."""

    reserve_response: Tokens = Field(default=8000, description="Tokens for the answer.")
    reserve_tools: Tokens = Field(default=8000, description="Tokens for tool results; at most an eighth of the window.")
    memory: Tokens = Field(default=4000, description="Tokens for memories, which are the first to be left out.")


class TruncationConfig(Strict):
    """What is left out when a conversation does not fit."""

    strategy: str = Field(default="oldest_first", description="The name of a strategy.")
    tool_result_tokens: Tokens = Field(default=8000, description="A longer tool result is sent as its head and tail.")


class CompactionConfig(Strict):
    """When earlier turns are summarised, by whom, and how much stays."""

    enabled: bool = Field(default=True, description="Whether to summarise without being asked to.")
    trigger_ratio: Ratio = Field(default=1.0, description="Summarise above this share of the available window.")
    trigger_tokens: Tokens | None = Field(default=None, description="Or above this many tokens.")
    trigger_turns: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Or after this many turns.")
    target_ratio: Ratio = Field(default=0.6, description="The share to come down to.")
    overflow_ratio: Ratio = Field(default=0.4, description="The share to come down to after a provider refused.")
    keep_turns: Annotated[int, Field(ge=1)] = Field(
        default=3, description="Turns that stay as they are, as long as that many fit at all."
    )
    recent_preserve_ratio: Ratio = Field(
        default=0.25, description="Share of the budget for recent messages, where a conversation is in memory only."
    )
    summary_budget_ratio: Ratio = Field(
        default=0.25,
        description="Share of the available window that the summary may take, with all that belongs to it.",
    )
    summary_marker: Annotated[str, Field(max_length=200, pattern=r"^[^\r\n]*$")] = Field(
        default="[Previous conversation summary]",
        description='The first line of a summary in a session; "" for none. Only in your own config.',
    )
    summary_role: Literal["user", "system"] = Field(
        default="user", description="Who says a summary in a session. Only in your own config."
    )
    redact_secrets: bool = Field(
        default=True, description="Take secrets out of what is summarised. Only in your own config."
    )
    evidence: bool = Field(
        default=True, description="Put facts and what the user said, word for word, beside the summary."
    )
    evidence_tokens: Tokens = Field(default=4000, description="What the facts may take.")
    user_tokens: Tokens = Field(default=4000, description="What the user's words may take.")
    fidelity: Literal["warn", "reinject", "off"] = Field(
        default="reinject",
        description="Of the facts: report those that a summary leaves out, show those first, or do not look.",
    )
    summarisers: list[str] = Field(
        default_factory=lambda: ["given", "extractive"],
        description="Who summarises, by name; each is asked if those before could not.",
    )
    form: Literal["standalone", "cached"] = Field(
        default="standalone",
        description="Ask with the conversation as one text, or go on from the conversation in the provider's cache.",
    )
    model: str | None = Field(default=None, description="The model that summarises; the session's own otherwise.")
    command: list[str] | None = Field(default=None, description="A program that reads a prompt and prints a summary.")
    timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=120.0, description="Seconds that a summariser may take; a day at most."
    )

    @model_validator(mode="after")
    def _asks_somebody(self) -> Self:
        if self.enabled and not self.summarisers:
            raise ValueError("summarisers must name somebody; 'extractive' needs no model")
        return self


class CacheConfig(Strict):
    """What providers are told to keep of a call, so that the next one costs less."""

    enabled: bool = Field(default=True, description="Whether they are told anything.")
    ttl: Literal["5m", "1h"] = Field(
        default="5m", description="How long Anthropic keeps system prompt and tools; an hour costs more to begin with."
    )


class LedgerConfig(Strict):
    """Where conversations are kept. Only in your own config."""

    url: str | None = Field(default=None, description="sqlite:///path or postgresql://…; under home otherwise.")


class SkillsConfig(Strict):
    """Which skills are offered."""

    enabled: list[str] | None = Field(default=None, description="Only these; absent means all.")
    disabled: list[str] = Field(default_factory=list, description="Never these.")


class ServerConfig(Strict):
    """An MCP server in the one form that every shape becomes before it is checked."""

    name: Annotated[str, Field(min_length=1)]
    type: Literal["stdio", "http", "sse"]
    command: list[str] | None = None
    url: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    env_file: str | None = None
    include_tools: list[str] | None = None
    exclude_tools: list[str] = Field(default_factory=list)
    start_timeout: float | None = None
    call_timeout: float | None = None
    enabled: bool = True


class MergingConfig(Strict):
    """How the settings of several layers become one. Only in your own config."""

    lists: Literal["join", "replace", "unique"] = Field(
        default="join",
        description="Lists: all items, the most local list, or each item once. Some have a policy of their own.",
    )


class Config(Strict):
    """Everything that config.json may say."""

    provider: ProviderConfig = Field(default_factory=ProviderConfig)
    models: dict[str, ModelConfig] = Field(
        default_factory=dict, description="Models by name; a name that ends in * stands for all that begin so."
    )
    permissions: PermissionsConfig = Field(default_factory=PermissionsConfig)
    context: ContextConfig = Field(default_factory=ContextConfig)
    renderer: str = Field(default="labelled", description="What puts a request into words, by its name.")
    budget: BudgetConfig = Field(default_factory=BudgetConfig)
    truncation: TruncationConfig = Field(default_factory=TruncationConfig)
    compaction: CompactionConfig = Field(default_factory=CompactionConfig)
    cache: CacheConfig = Field(default_factory=CacheConfig)
    ledger: LedgerConfig = Field(default_factory=LedgerConfig)
    skills: SkillsConfig = Field(default_factory=SkillsConfig)
    mcp_servers: list[ServerConfig] = Field(
        default_factory=list, description="Servers; mcp.json beside config.json is the place for them."
    )
    merging: MergingConfig = Field(default_factory=MergingConfig)
    plugins: dict[str, Any] = Field(
        default_factory=dict, description="Settings of plugins by name, and `disabled`: names not to load."
    )

    @field_validator("models")
    @classmethod
    def _ends_aliases(cls, models: dict[str, ModelConfig]) -> dict[str, ModelConfig]:
        for alias in models:
            names = [alias]
            while (model := models.get(names[-1])) and model.id and model.id != names[-1]:
                names.append(model.id)
                if model.id in names[:-1]:
                    raise ValueError(f"these aliases stand for each other, and for no model: {' → '.join(names)}")
        return models

"""Pydantic models of config.json, imported only if settings are validated."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from nexus_core.config.addresses import find_address_error
from nexus_core.text.safety import visible_line
from nexus_core.text.secrets import is_variable_name
from nexus_core.types.budget import MAX_TOKEN_FACTOR, MIN_TOKEN_FACTOR
from nexus_core.types.request import DEFAULT_ANCESTOR_DEPTH

Ratio = Annotated[float, Field(gt=0, le=1)]
Tokens = Annotated[int, Field(ge=0)]


class StrictModel(BaseModel):
    """A group of settings that refuses unknown keys. Plugins derive theirs from it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, allow_inf_nan=False)


class ProviderConfig(StrictModel):
    """The model to call, and its provider."""

    model: str | None = Field(default=None, description="The model's name at its provider.")
    provider: str | None = Field(default=None, description="The provider: anthropic, openai, gemini, …")
    base_url: str | None = Field(default=None, description="Another address of the same API. Only in your own config.")
    api_key_env: str | None = Field(
        default=None, description="The environment variable that holds the key. Only in your own config."
    )
    context_window: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="The model's context window in tokens, if Nexus does not know it."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Passed to the provider unchanged.")

    @field_validator("base_url")
    @classmethod
    def _validate_address(cls, url: str | None) -> str | None:
        if url is not None and (error := find_address_error(url, allow_http=True)):  # some providers may have it
            raise ValueError(error)
        return url

    @field_validator("api_key_env")
    @classmethod
    def _validate_variable(cls, name: str | None) -> str | None:
        if name is not None and not is_variable_name(name):
            raise ValueError("must be the name of an environment variable, not a value")
        return name


Price = Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)]


class PriceConfig(StrictModel):
    """Prices of a model in US dollars per million tokens."""

    input: Price = Field(description="Input tokens that are neither read from the prompt cache nor written to it.")
    output: Price = Field(description="Output tokens.")
    cache_read: Price | None = Field(default=None, description="Input tokens from the prompt cache.")
    cache_write: Price | None = Field(default=None, description="Input tokens written to the prompt cache.")
    cache_write_1h: Price | None = Field(default=None, description="The same for a lifetime of an hour.")
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = Field(
        default=None, description="When the prices were read: 2026-11-17."
    )
    source: str | None = Field(default=None, description="Where they are published.")


class ModelConfig(StrictModel):
    """Facts about a model that Nexus does not know or has wrong. With `id`, the name is an alias."""

    id: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The model that this name is an alias of. Only in your own config."
    )
    window: Annotated[int, Field(gt=0)] | None = Field(default=None, description="The context window in tokens.")
    encoding: str | None = Field(default=None, description="Its tokenizer: cl100k_base, o200k_base, …")
    max_output: Tokens | None = Field(default=None, description="Most tokens of a reply.")
    cache_minimum: Tokens | None = Field(default=None, description="The shortest prefix that its provider caches.")
    cache_breakpoints: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Most cache breakpoints of a call."
    )
    request_bytes: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="Most bytes of a request body, if the limit of its API differs from others."
    )
    token_factor: Annotated[float, Field(ge=MIN_TOKEN_FACTOR, le=MAX_TOKEN_FACTOR)] | None = Field(
        default=None, description="The provider's tokens per token that Nexus counts, where no tokenizer is public."
    )
    tool_call_tokens: Tokens | None = Field(
        default=None, description="Tokens that the provider adds to each tool call, where no tokenizer is public."
    )
    count_error: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        default=None, description="Share by which such a count may differ from the provider's: 0.1 for 10 %."
    )
    price: PriceConfig | None = Field(default=None, description="Its prices, in place of the bundled ones.")


class ToolPermissions(StrictModel):
    """The tools that an agent may be given."""

    allow: list[str] | None = Field(default=None, description="Only these; absent means all.")
    deny: list[str] = Field(default_factory=list, description="Never these. A project may add, not remove.")


class PermissionsConfig(StrictModel):
    """The permissions of an agent. A project may only tighten them."""

    level: Literal["yolo", "trusted", "sandboxed"] = Field(default="trusted", description="From loosest to tightest.")
    tools: ToolPermissions = Field(default_factory=ToolPermissions, description="Tools by name.")


class ContextConfig(StrictModel):
    """The files to read, and how much of a conversation to keep."""

    ancestor_depth: Annotated[int, Field(ge=0, le=10)] = Field(
        default=DEFAULT_ANCESTOR_DEPTH,
        description="How many levels above the working directory may contribute a layer.",
    )
    include_readme: bool = Field(default=False, description="Read README.md beside NEXUS.md.")
    readme_as_fallback: bool = Field(default=True, description="Read README.md if a layer has no instructions.")
    instruction_files: list[str] | None = Field(
        default=None,
        description="Instruction files, of which a project layer contributes the first: NEXUS.md, AGENTS.md, …",
    )
    max_tokens: Tokens = Field(default=8000, description="The token budget of a conversation manager.")
    reserve_tokens: Tokens = Field(default=2000, description="Tokens of it reserved for the reply.")
    truncation_strategy: str = Field(default="oldest_first", description="The strategy for messages that do not fit.")
    start_with_user: bool = Field(
        default=False, description="Drop messages before the first user message that is kept."
    )
    clock: Literal["message", "system", "off"] = Field(
        default="system",
        description="Where a conversation manager puts the time: fresh in the system prompt of every call, in each "
        "user message, or nowhere.",
    )
    session_start: bool = Field(
        default=True, description="Begin new conversations with a line that states when they started."
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


class BudgetConfig(StrictModel):
    """Tokens that are reserved in the model's window."""

    reserve_response: Tokens = Field(default=8000, description="Tokens for the reply.")
    reserve_tools: Tokens = Field(default=8000, description="Tokens for tool results; at most an eighth of the window.")
    memory: Tokens = Field(default=4000, description="Tokens for memories, which are dropped first.")


class TruncationConfig(StrictModel):
    """The truncation of a conversation that does not fit."""

    strategy: str = Field(default="oldest_first", description="The name of a strategy.")
    tool_result_tokens: Tokens = Field(default=8000, description="A longer tool result is sent as its head and tail.")


class CompactionConfig(StrictModel):
    """When earlier turns are summarized, by which summarizers, and how much stays."""

    enabled: bool = Field(default=True, description="Summarize automatically.")
    trigger_ratio: Ratio = Field(default=1.0, description="Summarize above this share of the available window.")
    trigger_tokens: Tokens | None = Field(default=None, description="Or above this many tokens.")
    trigger_turns: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Or after this many turns.")
    target_ratio: Ratio = Field(default=0.6, description="The share to shrink to.")
    overflow_ratio: Ratio = Field(default=0.4, description="The share to shrink to after a provider refused a call.")
    keep_turns: Annotated[int, Field(ge=1)] = Field(
        default=3, description="Turns that stay verbatim, as long as that many fit."
    )
    recent_preserve_ratio: Ratio = Field(
        default=0.25, description="Share of the budget for recent messages of a conversation in memory only."
    )
    summary_budget_ratio: Ratio = Field(
        default=0.25,
        description="Share of the model's window for the summary and everything that belongs to it.",
    )
    summary_marker: Annotated[str, Field(max_length=200, pattern=r"^[^\r\n]*$")] = Field(
        default="[Previous conversation summary]",
        description='The first line of a summary in a session; "" for none. Only in your own config.',
    )
    summary_role: Literal["user", "system"] = Field(
        default="user", description="The role of a summary message in a session. Only in your own config."
    )
    redact_secrets: bool = Field(
        default=True, description="Remove secrets from text that is summarized. Only in your own config."
    )
    evidence: bool = Field(default=True, description="Add facts and verbatim user messages to the summary.")
    evidence_tokens: Tokens | None = Field(
        default=None, description="Most tokens for the facts; a share of the summary by default."
    )
    user_tokens: Tokens | None = Field(
        default=None, description="Most tokens for the user's messages; a share of the summary by default."
    )
    fidelity: Literal["warn", "reinject", "off"] = Field(
        default="reinject",
        description="Facts that a summary omits: report them, show them first, or do not check.",
    )
    summarizers: list[str] = Field(
        default_factory=lambda: ["given", "extractive"],
        description="Summarizers by name; each is called if those before it failed.",
    )
    form: Literal["standalone", "cached"] = Field(
        default="standalone",
        description="Send the conversation as one text, or continue the conversation in the provider's cache.",
    )
    model: str | None = Field(default=None, description="The model that summarizes; the session's own by default.")
    command: list[str] | None = Field(default=None, description="A program that reads a prompt and prints a summary.")
    timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=120.0, description="Timeout of a summarizer in seconds; a day at most."
    )

    @model_validator(mode="after")
    def _has_summarizer(self) -> Self:
        if self.enabled and not self.summarizers:
            raise ValueError("summarizers must name one; 'extractive' needs no model")
        return self


class MemoryConfig(StrictModel):
    """Memories that are added to user messages. Only in your own config."""

    enabled: bool = Field(default=False, description="Search memories for each user message, and inject the best.")
    position: Literal["system", "before_history", "after_history"] = Field(
        default="after_history",
        description="Where memories are: after the system prompt, before the history, or in the user message, the "
        "only place that keeps the prompt cache.",
    )
    format: Literal["summary", "raw", "structured"] = Field(
        default="raw", description="The beginning of each memory, all of it, or JSON with its source and time."
    )
    max_tokens: Tokens = Field(default=1000, description="Most tokens for the memories of one turn.")
    scope: Literal["directory", "all"] = Field(
        default="directory", description="Memories of the working directory and sender, or of all of them."
    )
    sources: list[str] | None = Field(default=None, description="The sources to search, by name; absent means all.")
    embedder: str | None = Field(
        default=None,
        description="A plugin's model for vectors, by name: it reorders memories after the first ten.",
    )


class CacheConfig(StrictModel):
    """Prompt caching: what providers keep of a call, so that the next one costs less."""

    enabled: bool = Field(default=True, description="Mark calls for the provider's prompt cache.")
    ttl: Literal["5m", "1h"] = Field(
        default="5m", description="How long Anthropic caches system prompt and tools; an hour costs more to write."
    )


class LedgerConfig(StrictModel):
    """The store of conversations. Only in your own config."""

    url: str | None = Field(default=None, description="sqlite:///path or postgresql://…; a file under home by default.")


class SkillsConfig(StrictModel):
    """The skills to offer."""

    enabled: list[str] | None = Field(default=None, description="Only these; absent means all.")
    disabled: list[str] = Field(default_factory=list, description="Never these.")


class ServerConfig(StrictModel):
    """An MCP server in the normalized form, which every format is converted to before validation."""

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


class MergingConfig(StrictModel):
    """The merge of the settings of several layers. Only in your own config."""

    lists: Literal["join", "replace", "unique"] = Field(
        default="join",
        description="Lists: all items, the most local list, or each item once. Some have a policy of their own.",
    )


class Config(StrictModel):
    """All settings of config.json."""

    provider: ProviderConfig = Field(default_factory=ProviderConfig)
    models: dict[str, ModelConfig] = Field(
        default_factory=dict, description="Models by name; a name that ends in * matches all names with that prefix."
    )
    permissions: PermissionsConfig = Field(default_factory=PermissionsConfig)
    context: ContextConfig = Field(default_factory=ContextConfig)
    renderer: str = Field(default="labelled", description="The renderer of prompts and messages, by name.")
    budget: BudgetConfig = Field(default_factory=BudgetConfig)
    truncation: TruncationConfig = Field(default_factory=TruncationConfig)
    compaction: CompactionConfig = Field(default_factory=CompactionConfig)
    memory: MemoryConfig = Field(default_factory=MemoryConfig)
    cache: CacheConfig = Field(default_factory=CacheConfig)
    ledger: LedgerConfig = Field(default_factory=LedgerConfig)
    skills: SkillsConfig = Field(default_factory=SkillsConfig)
    mcp_servers: list[ServerConfig] = Field(
        default_factory=list, description="MCP servers; mcp.json beside config.json is the usual file for them."
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
                    raise ValueError(f"these aliases refer to each other, and to no model: {' → '.join(names)}")
        return models

"""The bundled table of models, by family.

To add a model, add a row to its family. Its price goes into `prices.toml`, under the exact name that the provider uses,
because a price holds for no other model. To add a family, add what its models share, and the models.

The shared fields of a family hold for each of its models that does not set them. A name that ends in * stands for all
names that begin so; the longest name that fits is used. A model whose name continues with more than a date, a size or a
usual word (-mini, -latest) is only taken for it, and a finding says so: name it here.

window             tokens that fit in a call; where the provider limits the input by itself, that limit
encoding           the tokeniser, by tiktoken's name; any other name is of one that is not public, or not bundled
max_output         tokens that a reply may have, if the provider states it
cache_minimum      tokens of the shortest prefix that the provider caches, if it states it
cache_breakpoints  positions of a call that may be marked for its cache; absent if it finds them by itself
api                the dialect of its API
token_factor       the provider's tokens per token of o200k_base, for a tokeniser that is not public
tool_call_tokens   tokens that the provider adds to each tool call of a message, for the same
count_error        the share by which a count of a whole call with these two may be wrong
count_source       how these three were measured
request_bytes      bytes that a request may have, where that differs from the limit of the dialect's own API

It is Python and not TOML, because the first count of a program needs it, and importing it takes a tenth of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypedDict

    class ModelFields(TypedDict, total=False):
        """Fields of a model, as above."""

        encoding: str
        max_output: int
        cache_minimum: int
        cache_breakpoints: int
        api: str
        token_factor: float
        tool_call_tokens: int
        count_error: float
        count_source: str
        request_bytes: int

    class ModelRow(ModelFields):
        """A model: its window, and fields in which it differs from its family."""

        window: int

    class ModelFamily(TypedDict):
        """Models that share fields."""

        shared: ModelFields
        models: dict[str, ModelRow]


FAMILIES: dict[str, ModelFamily] = {
    "anthropic": {
        "shared": {
            "encoding": "claude",
            "api": "anthropic",
            "cache_breakpoints": 4,
            "token_factor": 1.17,
            "tool_call_tokens": 60,
            "count_error": 0.1,
            "count_source": (
                "least absolute deviation over 526 calls of 6 recorded sessions, Sonnet 4 to Opus 4.5, 2026-11-17"
            ),
        },
        "models": {
            "claude-2.1*": {"window": 200_000, "cache_minimum": 4096},
            "claude-3*": {"window": 200_000, "max_output": 4096, "cache_minimum": 2048},
            "claude-3-opus*": {"window": 200_000, "max_output": 4096, "cache_minimum": 2048},
            "claude-3-sonnet*": {"window": 200_000, "max_output": 4096, "cache_minimum": 2048},
            "claude-3-haiku*": {"window": 200_000, "max_output": 4096, "cache_minimum": 2048},
            "claude-3-5*": {"window": 200_000, "max_output": 8192, "cache_minimum": 2048},
            "claude-3-5-sonnet*": {"window": 200_000, "max_output": 8192, "cache_minimum": 2048},
            "claude-3-5-haiku*": {"window": 200_000, "max_output": 8192, "cache_minimum": 2048},
            "claude-3-7-sonnet*": {"window": 200_000, "max_output": 64_000, "cache_minimum": 1024},
            "claude-sonnet-4*": {"window": 200_000, "max_output": 64_000, "cache_minimum": 1024},
            "claude-sonnet-4-5*": {"window": 200_000, "max_output": 64_000, "cache_minimum": 1024},
            "claude-sonnet-4-6*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 1024},
            "claude-opus-4*": {"window": 200_000, "max_output": 32_000, "cache_minimum": 1024},
            "claude-opus-4-1*": {"window": 200_000, "max_output": 32_000, "cache_minimum": 1024},
            "claude-opus-4-5*": {"window": 200_000, "max_output": 64_000, "cache_minimum": 4096},
            "claude-opus-4-6*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 4096},
            "claude-haiku-4*": {"window": 200_000, "max_output": 64_000, "cache_minimum": 4096},
            "claude-haiku-4-5*": {"window": 200_000, "max_output": 64_000, "cache_minimum": 4096},
        },
    },
    # Opus 4.7 brought a tokeniser with more tokens for the same text; a Claude that is not in this file is taken for a
    # newer one.
    "anthropic-2026": {
        "shared": {
            "encoding": "claude-2026",
            "api": "anthropic",
            "cache_breakpoints": 4,
            "token_factor": 1.55,
            "tool_call_tokens": 75,
            "count_error": 0.15,
            "count_source": (
                "4 calls of a recorded session of Opus 4.7, and 0.63 as the share of o200k_base in others, 2026-11-17"
            ),
        },
        "models": {
            "claude*": {"window": 200_000, "cache_minimum": 4096},
            "claude-opus-4-7*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 2048},
            "claude-opus-4-8*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 1024},
            "claude-opus-5*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 512},
            "claude-sonnet-5*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 1024},
            "claude-sonnet-5-5*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 512},
            "claude-haiku-5*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 512},
            "claude-fable*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 512},
            "claude-fable-5*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 512},
            "claude-mythos*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 512},
            "claude-mythos-5*": {"window": 1_000_000, "max_output": 128_000, "cache_minimum": 512},
        },
    },
    "openai": {
        "shared": {"encoding": "o200k_base", "api": "openai"},
        "models": {
            "gpt-3.5*": {"window": 16_385, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-35-turbo*": {"window": 16_385, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-4*": {"window": 8192, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-4-32k*": {"window": 32_768, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-4-1106*": {"window": 128_000, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-4-0125*": {"window": 128_000, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-4-vision*": {"window": 128_000, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-4-turbo*": {"window": 128_000, "encoding": "cl100k_base", "max_output": 4096},
            "gpt-4o*": {"window": 128_000, "max_output": 16_384, "cache_minimum": 1024},
            "chatgpt-4o*": {"window": 128_000, "max_output": 16_384},
            "gpt-4.1*": {"window": 1_047_576, "max_output": 32_768, "cache_minimum": 1024},
            "gpt-4.5*": {"window": 128_000, "max_output": 16_384, "cache_minimum": 1024},
            "gpt-5*": {"window": 272_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5.1*": {"window": 272_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5.2*": {"window": 272_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5.3*": {"window": 272_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5-chat*": {"window": 128_000, "max_output": 16_384, "cache_minimum": 1024},
            "gpt-5.1-chat*": {"window": 128_000, "max_output": 16_384},
            "gpt-5.2-chat*": {"window": 128_000, "max_output": 16_384},
            "gpt-5.3-chat*": {"window": 128_000, "max_output": 16_384},
            "gpt-5.4*": {"window": 922_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5.4-mini*": {"window": 272_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5.4-nano*": {"window": 272_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5.5*": {"window": 922_000, "max_output": 128_000, "cache_minimum": 1024},
            "gpt-5.6*": {"window": 922_000, "max_output": 128_000, "cache_minimum": 1024, "cache_breakpoints": 3},
            "gpt-5.6-sol*": {"window": 922_000, "max_output": 128_000, "cache_minimum": 1024, "cache_breakpoints": 3},
            "gpt-5.6-cyber*": {"window": 272_000, "max_output": 128_000, "cache_minimum": 1024, "cache_breakpoints": 3},
            "gpt-oss-*": {"window": 131_072, "encoding": "o200k_harmony"},
            "o1*": {"window": 200_000, "max_output": 100_000, "cache_minimum": 1024},
            "o1-mini*": {"window": 128_000, "max_output": 65_536, "cache_minimum": 1024},
            "o1-preview*": {"window": 128_000, "max_output": 32_768, "cache_minimum": 1024},
            "o3*": {"window": 200_000, "max_output": 100_000, "cache_minimum": 1024},
            "o4-mini*": {"window": 200_000, "max_output": 100_000, "cache_minimum": 1024},
        },
    },
    # Its tokeniser is not known.
    "openai-2026": {
        "shared": {"api": "openai"},
        "models": {
            "gpt-6*": {"window": 922_000, "max_output": 128_000, "cache_minimum": 1024, "cache_breakpoints": 3},
        },
    },
    "google": {
        "shared": {"encoding": "gemini", "api": "gemini"},
        "models": {
            "gemini*": {"window": 1_048_576, "cache_minimum": 4096},
            "gemini-1.5*": {"window": 1_048_576, "max_output": 8192},
            "gemini-2.0*": {"window": 1_048_576, "max_output": 8192},
            "gemini-2.5*": {"window": 1_048_576, "max_output": 65_536, "cache_minimum": 2048},
            "gemini-2.5-computer-use*": {"window": 128_000, "max_output": 64_000},
            "gemini-3*": {"window": 1_048_576, "max_output": 65_536, "cache_minimum": 4096},
            "gemini-3.1*": {"window": 1_048_576, "max_output": 65_536, "cache_minimum": 4096},
            "gemini-3.5*": {"window": 1_048_576, "max_output": 65_536, "cache_minimum": 4096},
        },
    },
    "deepseek": {
        "shared": {"encoding": "deepseek", "api": "openai"},
        "models": {
            "deepseek*": {"window": 131_072},
            "deepseek-v3*": {"window": 131_072},
            "deepseek-v3.1*": {"window": 131_072},
            "deepseek-v3.2*": {"window": 131_072},
            "deepseek-r1*": {"window": 65_536, "max_output": 8192},
            "deepseek-v4*": {"window": 1_000_000},
        },
    },
    "grok": {
        "shared": {"encoding": "grok", "api": "openai"},
        "models": {
            "grok-4.20*": {"window": 1_000_000},
            "grok-4.3*": {"window": 1_000_000},
            "grok*": {"window": 256_000},
            "grok-3*": {"window": 131_072},
            "grok-code*": {"window": 256_000},
            "grok-4*": {"window": 256_000},
            "grok-4-1*": {"window": 256_000},
            "grok-4.1*": {"window": 256_000},
        },
    },
    "mistral": {
        "shared": {"encoding": "mistral", "api": "openai"},
        "models": {
            "mistral-large*": {"window": 262_144},
            "mistral-medium*": {"window": 262_144},
            "mistral-small*": {"window": 262_144},
            "magistral*": {"window": 262_144},
            "devstral*": {"window": 256_000},
            "codestral*": {"window": 128_000},
        },
    },
    "qwen": {
        "shared": {"encoding": "qwen", "api": "openai"},
        "models": {
            "qwen3-coder*": {"window": 262_144},
            "qwen3-max*": {"window": 258_048},
            "qwen*": {"window": 129_024},
            "qwen2.5*": {"window": 129_024},
            "qwen3*": {"window": 129_024},
        },
    },
    "kimi": {
        "shared": {"encoding": "kimi", "api": "openai"},
        "models": {
            "kimi-k2*": {"window": 262_144},
            "kimi-k2.5*": {"window": 262_144},
            "kimi-k3*": {"window": 1_048_576},
        },
    },
    "glm": {
        "shared": {"encoding": "glm", "api": "openai"},
        "models": {
            "glm-4.5*": {"window": 128_000},
            "glm-4.6*": {"window": 200_000},
            "glm-4.7*": {"window": 200_000},
            "glm-5*": {"window": 200_000},
        },
    },
    "command": {
        "shared": {"encoding": "command", "api": "openai"},
        "models": {
            "command-a*": {"window": 128_000},
            "command-r*": {"window": 128_000},
        },
    },
    "llama": {
        "shared": {"encoding": "llama", "api": "openai"},
        "models": {
            "llama-3*": {"window": 128_000},
            "llama-3.1*": {"window": 128_000},
            "llama-3.2*": {"window": 128_000},
            "llama-3.3*": {"window": 128_000},
            "llama-4*": {"window": 1_000_000},
        },
    },
    "nova": {
        "shared": {
            "encoding": "nova",
            "api": "bedrock",
            "cache_breakpoints": 4,
        },
        "models": {
            "nova-micro*": {"window": 128_000, "max_output": 10_000, "cache_minimum": 1000},
            "nova-lite*": {"window": 300_000, "max_output": 10_000, "cache_minimum": 1000},
            "nova-pro*": {"window": 300_000, "max_output": 10_000, "cache_minimum": 1000},
            "nova-premier*": {"window": 1_000_000, "max_output": 32_000, "cache_minimum": 1000},
            "nova-2-lite*": {"window": 1_000_000, "max_output": 65_535, "cache_minimum": 1000},
        },
    },
}

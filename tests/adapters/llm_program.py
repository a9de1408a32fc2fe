"""Run `llm` with the example plugin and a model that answers with what it was sent, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import llm
from llm.cli import cli
from llm.plugins import load_plugins, pm

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/llm-plugin"))


class EchoModel(llm.Model):  # type: ignore[misc,unused-ignore] - llm has types of its own only in part
    """Answers with the system prompt and the prompt."""

    model_id = "echo"
    can_stream = False

    def execute(self, prompt: Any, *_given: Any, **_options: Any) -> Iterator[str]:
        yield json.dumps([prompt.system, prompt.prompt])


def main(arguments: list[str]) -> None:
    import llm_nexus  # type: ignore[import-not-found,unused-ignore] - its folder is in `sys.path` from now on

    model = ModuleType("echo")
    vars(model)["register_models"] = llm.hookimpl(lambda register: register(EchoModel()))
    load_plugins()
    pm.register(llm_nexus)
    pm.register(model)
    llm.set_default_model("echo")
    cli.main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])

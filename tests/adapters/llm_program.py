"""Run `llm` with the example plugin and a model that answers with what it was sent, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import llm
from llm.cli import cli
from llm.plugins import load_plugins, pm

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/llm-plugin"))


class EchoModel(llm.Model):
    """Answers with the system prompt and the prompt."""

    model_id = "echo"
    can_stream = False

    def execute(self, prompt: Any, *_given: Any, **_options: Any) -> Iterator[str]:
        yield json.dumps([prompt.system, prompt.prompt])


def main(arguments: list[str]) -> None:
    model = ModuleType("echo")
    vars(model)["register_models"] = llm.hookimpl(lambda register: register(EchoModel()))
    load_plugins()  # type: ignore[no-untyped-call]
    pm.register(import_module("llm_nexus"))
    pm.register(model)
    llm.set_default_model("echo")  # type: ignore[no-untyped-call]
    cli.main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])

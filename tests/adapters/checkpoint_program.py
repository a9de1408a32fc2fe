"""A program that stores checkpoints and is killed: after the third, before its writes."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint

from nexus_core import Nexus
from nexus_core.adapters.langgraph_checkpoints import NexusSaver


def save(saver: Any, name: str, values: dict[str, Any], parent: Any = None) -> Any:
    """Put a checkpoint with these values, and return its config."""
    checkpoint: Any = empty_checkpoint()
    versions = {channel: saver.get_next_version(None, None) for channel in values}
    checkpoint |= {"channel_values": values, "channel_versions": versions}
    config = parent or {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    return saver.put(config, checkpoint, {"source": "loop", "step": 0}, versions)


def main(directory: str, url: str) -> None:
    """Store checkpoints and writes in turn, and print each that was acknowledged."""
    saver = NexusSaver(Nexus(directory, ledger=url))
    config: Any = None
    for number in range(3):
        config = save(saver, "t", {"messages": [{"role": "user", "content": f"message {number}"}]}, config)
        name = config["configurable"]["checkpoint_id"]
        sys.stdout.write(f"put {name}\n")
        sys.stdout.flush()
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        saver.put_writes(config, [("messages", [f"write {number}"])], f"task {number}")
        sys.stdout.write(f"written {name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

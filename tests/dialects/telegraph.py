"""A made-up API whose words are nobody else's, and the plugin that speaks it: a class of its own, no `ApiDialect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core import Message, MessageError, Tool, Usage, hookimpl
from nexus_core.plugin import Model, Text, ToolCall, ToolResult
from nexus_core.plugin.dialects import ApiRules, Conversation, Reply, to_json_dict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.plugin import Part
    from nexus_core.plugin.dialects import Stop

NAME = "telegraph"
RULES = ApiRules(
    name=NAME, system="field", results="together", name_pattern=r"[A-Z]+", name_length=20, request_bytes=50_000
)
_FROM = {"caller": "user", "office": "assistant", "clerk": "tool"}
_TO = {role: sender for sender, role in _FROM.items()}


class Telegraph:
    """`{"from": "caller", "words": ["WHY", "STOP"], "orders": [], "slips": []}` and so on."""

    name = NAME
    rules = RULES

    def recognises(self, item: Mapping[str, Any]) -> bool:
        return item.get("from") in _FROM or "telegram" in item or "click" in item

    def read(self, item: object) -> Message:
        block = to_json_dict(item)
        sender = block.pop("from", None)
        if sender not in _FROM:
            raise MessageError(f"nobody sends as {sender!a}", path="from")
        parts: list[Part] = [Text(text) for text in block.pop("words", [])]
        parts += [ToolCall(each["slip"], each["do"], each["with"]) for each in block.pop("orders", [])]
        parts += [ToolResult(each["slip"], each["brought"]) for each in block.pop("slips", [])]
        return Message(_FROM[sender], parts, api=NAME, extra=block)  # type: ignore[arg-type]

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        return [self._written(message) for message in messages if message.role != "system"]

    def read_request(self, body: object) -> Conversation:
        block = to_json_dict(body)
        if "line" not in block:
            raise MessageError("nothing is on the line", path="line")
        system = [Message("system", block.pop("manual"), api=NAME)] if "manual" in block else []
        messages = (*system, *map(self.read, block.pop("line")))
        tools = self.read_tools(block.pop("instruments", []))
        return Conversation(messages=messages, tools=tools, api=NAME, extra=block)

    def write_request(self, conversation: Conversation, marks: Mapping[int, str] | None = None) -> dict[str, Any]:  # noqa: ARG002 - no cache
        manual = "\n".join(message.content for message in conversation.messages if message.role == "system")
        body: dict[str, Any] = {"line": self.write(conversation.messages), **conversation.extra}
        if manual:
            body["manual"] = manual
        if conversation.tools:
            body["instruments"] = self.write_tools(conversation.tools)
        return body

    def read_reply(self, reply: object) -> Reply:
        pieces = [to_json_dict(each) for each in (reply if isinstance(reply, list) else [reply])]
        if pieces and all("click" in piece for piece in pieces):
            words = "".join(piece["click"] for piece in pieces)
            return Reply(messages=(Message("assistant", words, api=NAME),), stop="end", api=NAME)
        if len(pieces) != 1 or "telegram" not in pieces[0]:
            raise MessageError("this is no telegram")
        (block,) = pieces
        said = self.read(block["telegram"])
        usage = Usage(input_tokens=block.get("read", 0), output_tokens=block.get("sent", 0))
        stop: Stop = "tools" if said.tool_calls else "end"
        return Reply(messages=(said,), stop=stop, stop_reason="STOP", usage=usage, id=block.get("number", ""), api=NAME)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        return tuple(map(self._tool, map(to_json_dict, tools)))

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        return [{"do": tool.name, "takes": dict(tool.parameters), "about": tool.description} for tool in tools]

    def _tool(self, block: dict[str, Any]) -> Tool:
        if "do" not in block:
            raise MessageError("an instrument does something", path="tools[0].do")
        return Tool(name=block["do"], description=block.get("about", ""), parameters=block.get("takes", {}), api=NAME)

    def _written(self, message: Message) -> dict[str, Any]:
        own = dict(message.extra) if message.api == NAME else {}
        orders = [{"slip": each.id, "do": each.name, "with": dict(each.arguments)} for each in message.tool_calls]
        slips = [{"slip": each.call_id, "brought": each.text} for each in message.tool_results]
        words = [part.text for part in message.parts if isinstance(part, Text)]
        named = {"words": words, "orders": orders, "slips": slips}
        return {"from": _TO[message.role], **{name: each for name, each in named.items() if each}, **own}


class TelegraphPlugin:
    """Offers it, and a model that is asked in it."""

    @hookimpl
    def nexus_dialects(self) -> list[Telegraph]:
        return [Telegraph()]

    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [Model(name="morse-1", window=32_000, api=NAME)]

"""`nexus rpc`: a method of a running `nexus serve`, from the command line."""

from __future__ import annotations

import json as json_format
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexus_core.cli.options import JsonOption
from nexus_core.errors import UsageError
from nexus_core.text.safety import repair_surrogates, shorten, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nexus_core.cli.context import CliContext
    from nexus_core.rpc.dispatcher import MethodParameters

app = typer.Typer()

EXAMPLES = """
\b
Methods:
  create_agent, list_agents, destroy_agent, send, resume, cancel,
  answer_permission, get_tokens, get_context, get_messages, compact, fork,
  memory_search, shutdown

\b
Examples:
  nexus rpc create_agent reviewer role=manager
  nexus rpc send reviewer "What changed since Monday?"
"""
_MAX_SHOWN_CHARACTERS = 100
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


def list_method_names() -> list[str]:
    """Return the methods there are, for completion."""
    from nexus_core.rpc.dispatcher import METHODS, STREAMS

    return sorted({*METHODS, *STREAMS})


@app.command(epilog=EXAMPLES)
def rpc(
    ctx: typer.Context,
    method: Annotated[
        str, typer.Argument(metavar="METHOD", help="The method to call.", autocompletion=list_method_names)
    ],
    params: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARAM...]", help="Parameters in order, name=value, or all as one JSON object."),
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Call a method of the running server.

    The server is the one that `nexus serve` has started with this Nexus home. With --json, `send` and `resume` print
    each event as a line of JSON.
    """
    cli: CliContext = ctx.obj
    from nexus_core.files.places import find_nexus_home
    from nexus_core.rpc.client import Client
    from nexus_core.rpc.dispatcher import METHODS, STREAMS

    spec = STREAMS.get(method) or METHODS.get(method)
    given = read_params(method, params or (), spec)
    home: str | Path = cli.home or find_nexus_home(cli.cwd)
    with Client(home=home, timeout=None) as client:
        if method not in STREAMS:
            _print_result(cli, client.call(method, given), json=json)
        elif json:
            for event in client.stream(method, given):
                cli.console.text(json_format.dumps(event, ensure_ascii=False))
                cli.console.output.flush()
        else:
            _print_turn(cli, str(given.get("agent_id", "")), client.stream(method, given))


# ---- parameters -----------------------------------------------------------------------------------------------------


def read_params(method: str, words: Iterable[str], spec: MethodParameters | None) -> dict[str, Any]:
    """Return the parameters of a method from the arguments of the command.

    Args:
        method: The method.
        words: One JSON object; or values in the order of the parameters, and `name=value`.
        spec: The parameters of the method; None if the method is not known here, and only an object can be passed.

    Raises:
        UsageError: There are too many, or a value has the wrong type.
    """
    given = [repair_surrogates(word) for word in words]  # of arguments that are not UTF-8, which JSON must be
    if len(given) == 1 and given[0].lstrip().startswith("{") and (spec is None or "message" not in spec.required):
        return _parse_object(given[0])
    if spec is None:
        if given:
            raise UsageError(f"the parameters of {method!r} are not known here", hint="pass them as one JSON object")
        return {}
    kinds = {**spec.required, **spec.optional}
    params: dict[str, Any] = {}
    for word in given:
        name, separator, value = word.partition("=")
        if not separator or name not in kinds:
            name, value = next((each for each in kinds if each not in params), ""), word
            if not name:
                raise UsageError(
                    f"{method} has no {len(given)} parameters", hint=f"its parameters are {', '.join(kinds) or 'none'}"
                )
        params[name] = _read_value(name, value, kinds)
    return params


def _parse_object(text: str) -> dict[str, Any]:
    try:
        found = _parse_json(text)
    except ValueError as error:
        raise UsageError(f"the parameters are not JSON: {error}", hint='{"agent_id": "a"}') from None
    return dict(found)


def _read_value(name: str, text: str, kinds: Mapping[str, type]) -> Any:  # noqa: ANN401 - JSON
    if kinds[name] is int:
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"{name} must be a whole number, not {text!r}") from None
    if kinds[name] is bool:
        if text.lower() not in _BOOLEANS:
            raise UsageError(f"{name} must be true or false, not {text!r}")
        return _BOOLEANS[text.lower()]
    if kinds[name] is object and text.lstrip()[:1] in ("{", "["):  # a message in an API's format
        try:
            return _parse_json(text)
        except ValueError:
            return text
    return text


def _parse_json(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value of a JSON text.

    Raises:
        ValueError: It is not JSON: `NaN` and `Infinity` are not. Or it is nested too deeply.
    """

    def refuse(name: str) -> Any:  # noqa: ANN401 - never returns
        raise ValueError(f"{name} is not JSON")

    try:
        return json_format.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


# ---- output ---------------------------------------------------------------------------------------------------------


def _print_result(cli: CliContext, result: object, *, json: bool) -> None:
    """Print the result of a method: as JSON, or an object as lines and a list of objects as a table."""
    if json:
        cli.console.json({"schema": 1, "result": result})
    elif isinstance(result, dict):
        for name, value in result.items():
            cli.console.text(f"{name}: {_format_value(value)}")
    elif isinstance(result, list) and result and all(isinstance(each, dict) for each in result):
        names = list(result[0])
        rows = [tuple(visible_line(_format_value(each.get(name))) for name in names) for each in result]
        cli.console.table([tuple(name.upper() for name in names), *rows], styles=["bold"])
    elif result == []:
        cli.console.message("None.")
    else:
        cli.console.text(_format_value(result))


def _format_value(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "-"
    is_nested = isinstance(value, list) and any(isinstance(each, dict) for each in value)
    return json_format.dumps(value, ensure_ascii=False, indent=2 if is_nested else None)


def _print_turn(cli: CliContext, agent_id: str, events: Iterable[dict[str, Any]]) -> None:
    """Print the text of a turn as it arrives, and what else happens on standard error."""
    stream = cli.console.stream()
    try:
        for event in events:
            kind = event["type"]
            if kind == "text":
                stream.write(event["text"])
                continue
            if (line := _describe_event(kind, agent_id, event)) is not None:
                stream.close()
                cli.console.message(visible_line(line), style="dim")
                stream = cli.console.stream()
    finally:
        stream.close()


def _describe_event(kind: str, agent_id: str, event: dict[str, Any]) -> str | None:
    """Return a line about an event; None for those that a person need not see."""
    if kind == "tool_call":
        arguments = json_format.dumps(event["arguments"], ensure_ascii=False)
        return f"▸ {event['name']} {shorten(arguments, _MAX_SHOWN_CHARACTERS)}"
    if kind == "tool_result":
        return f"  {'failed' if event['is_error'] else 'done'} in {event['seconds']:.1f} s"
    if kind == "compaction":
        return "(earlier turns were summarized to fit the context window)"
    if kind == "permission":
        return f"  may it run? `nexus rpc answer_permission {quote(agent_id)} {event['question']} true`, or false"
    if kind == "done" and event["cancelled"]:
        return "(stopped; what was said is stored)"
    return None

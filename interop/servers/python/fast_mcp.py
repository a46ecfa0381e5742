"""The vocabulary of the tests (tests/servers/vocabulary.rs), spoken by FastMCP.

Usage: fast_mcp.py stdio | http | sse
"""

import asyncio
import os
import sys
from typing import Any

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from loopback import bound
from pydantic import BaseModel

server = FastMCP("fastmcp", version="1.2.3", instructions="Ask for anything")
cancelled = 0


class Sum(BaseModel):
    sum: int


@server.tool
async def echo(message: str) -> str:
    """Says back what it is told"""
    return message


@server.tool
async def add(a: int, b: int) -> Sum:
    """Adds two numbers"""
    return Sum(sum=a + b)


@server.tool(output_schema=Sum.model_json_schema())
async def lie() -> ToolResult:
    """Promises a sum and does not keep it"""
    return ToolResult(content="six", structured_content={"sum": "six"})


@server.tool
async def fail() -> str:
    """Never works"""
    raise ToolError("The tide is out")


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Counts, with progress"""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"counted to {n}")
    return f"Counted to {to}"


async def ask(ctx: Context, method: str, params: Any) -> Any:
    """Asks the client: in the middle of the call, or with the result of it, as the revision has it."""
    requests = {
        "elicitation/create": types.ElicitRequest,
        "sampling/createMessage": types.CreateMessageRequest,
        "roots/list": types.ListRootsRequest,
    }
    results = {
        "elicitation/create": types.ElicitResult,
        "sampling/createMessage": types.CreateMessageResult,
        "roots/list": types.ListRootsResult,
    }
    request = requests[method](method=method, params=params)
    if not ctx._is_modern_protocol():
        return await ctx.session.send_request(request, results[method])
    if ctx.input_responses is None:
        return types.InputRequiredResult(input_requests={"it": request}, request_state="asked")
    assert ctx.request_state == "asked", "the state came back"
    return ctx.input_responses["it"]


@server.tool(output_schema=None)
async def greet(ctx: Context) -> Any:
    """Asks who is there"""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = types.ElicitRequestFormParams(message="Who is there?", requested_schema=schema)
    answer = await ask(ctx, "elicitation/create", params)
    return answer if isinstance(answer, types.InputRequiredResult) else f"Hello, {answer.content['name']}!"


@server.tool(output_schema=None)
async def think(ctx: Context) -> Any:
    """Asks the model"""
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Six by nine?"))
    params = types.CreateMessageRequestParams(messages=[question], max_tokens=10)
    answer = await ask(ctx, "sampling/createMessage", params)
    return answer if isinstance(answer, types.InputRequiredResult) else f"It is {answer.content.text}"


@server.tool(output_schema=None)
async def where(ctx: Context) -> Any:
    """Asks where the client works"""
    answer = await ask(ctx, "roots/list", None)
    if isinstance(answer, types.InputRequiredResult):
        return answer
    return " ".join(str(root.uri) for root in answer.roots)


@server.tool
async def wait() -> str:
    """Waits until it is cancelled"""
    global cancelled
    try:
        await asyncio.sleep(60)
        return "Nobody cancelled"
    except asyncio.CancelledError:
        cancelled += 1
        raise


@server.tool
async def waited() -> str:
    """How often somebody cancelled `wait`"""
    return str(cancelled)


def grown() -> str:
    """Came later"""
    return "I am new"


@server.tool
async def grow(ctx: Context) -> str:
    """Adds a tool"""
    server.add_tool(grown)
    await ctx.send_notification(types.ToolListChangedNotification())
    return "Grown"


@server.tool
async def say(ctx: Context) -> str:
    """Writes to the log"""
    await ctx.warning("High water")
    return "Said"


@server.tool
async def pid() -> str:
    """The number of this process"""
    return str(os.getpid())


@server.resource("memo://about", mime_type="text/plain")
async def about() -> str:
    return "A fixture."


@server.resource("memo://city/{city}", mime_type="text/plain")
async def city(city: str) -> str:
    return f"Mild in {city}."


@server.prompt
async def explain(topic: str) -> str:
    return f"Explain {topic}."


@server.completion
async def complete(ref: Any, argument: types.CompletionArgument, context: Any) -> list[str]:
    cities = ["Bergen", "Berlin", "Bern", "Lisbon"]
    return [city for city in cities if city.startswith(argument.value)]


def main() -> None:
    transport = sys.argv[1]
    if transport == "stdio":
        server.run("stdio", show_banner=False)
        return
    path = "/sse" if transport == "sse" else "/mcp"
    server.run(transport, show_banner=False, path=path, log_level="warning", sockets=[bound(path)])


main()

"""The vocabulary of the tests (tests/servers/vocabulary.rs), spoken by the official Python SDK.

Usage: python_sdk.py stdio | http | sse
"""

import asyncio
import os
import sys
from typing import Annotated, Any

import mcp_types as types
import uvicorn
from loopback import bound
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("python-sdk", version="1.2.3", instructions="Ask for anything", log_level="WARNING")
cancelled = 0


class Sum(BaseModel):
    sum: int


class Visitor(BaseModel):
    name: str


@server.tool()
async def echo(message: str) -> str:
    """Says back what it is told"""
    return message


@server.tool()
async def add(a: int, b: int) -> Sum:
    """Adds two numbers"""
    return Sum(sum=a + b)


@server.tool()
async def fail() -> str:
    """Never works"""
    raise ToolError("The tide is out")


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, with progress"""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"counted to {n}")
    return f"Counted to {to}"


async def ask_name() -> Elicit[Visitor]:
    return Elicit("Who is there?", Visitor)


@server.tool()
async def greet(visitor: Annotated[Visitor, Resolve(ask_name)]) -> str:
    """Asks who is there"""
    return f"Hello, {visitor.name}!"


async def ask_model() -> Sample:
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Six by nine?"))
    return Sample([question], max_tokens=10)


@server.tool()
async def think(answer: Annotated[types.CreateMessageResult, Resolve(ask_model)]) -> str:
    """Asks the model"""
    return f"It is {answer.content.text}"


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def where(roots: Annotated[types.ListRootsResult, Resolve(ask_roots)]) -> str:
    """Asks where the client works"""
    return " ".join(str(root.uri) for root in roots.roots)


@server.tool()
async def wait() -> str:
    """Waits until it is cancelled"""
    global cancelled
    try:
        await asyncio.sleep(60)
        return "Nobody cancelled"
    except asyncio.CancelledError:
        cancelled += 1
        raise


@server.tool()
async def waited() -> str:
    """How often somebody cancelled `wait`"""
    return str(cancelled)


def grown() -> str:
    """Came later"""
    return "I am new"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool"""
    server.add_tool(grown)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "Grown"


@server.tool()
async def touch(ctx: Context) -> str:
    """Changes memo://about"""
    await ctx.notify_resource_updated("memo://about")
    return "Touched"


@server.tool()
async def say(ctx: Context) -> str:
    """Writes to the log"""
    await ctx.log("warning", "High water")
    return "Said"


@server.tool()
async def pid() -> str:
    """The number of this process"""
    return str(os.getpid())


@server.resource("memo://about", mime_type="text/plain")
async def about() -> str:
    return "A fixture."


@server.resource("memo://city/{city}", mime_type="text/plain")
async def city(city: str) -> str:
    return f"Mild in {city}."


@server.prompt()
async def explain(topic: str) -> str:
    return f"Explain {topic}."


@server.completion()
async def complete(ref: Any, argument: types.CompletionArgument, context: Any) -> types.Completion:
    cities = ["Bergen", "Berlin", "Bern", "Lisbon"]
    return types.Completion(values=[city for city in cities if city.startswith(argument.value)])


def main() -> None:
    transport = sys.argv[1]
    if transport == "stdio":
        server.run("stdio")
        return
    app, path = {"http": (server.streamable_http_app, "/mcp"), "sse": (server.sse_app, "/sse")}[transport]
    serving = uvicorn.Server(uvicorn.Config(app(), log_level="warning"))
    serving.run(sockets=[bound(path)])


main()

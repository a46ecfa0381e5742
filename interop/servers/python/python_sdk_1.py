"""What the matrix (tests/matrix) needs of the vocabulary, spoken by version 1 of the official Python SDK: legacy alone.

Usage: python_sdk_1.py stdio | http
"""

import sys

import uvicorn
from loopback import bound
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("python-sdk-1", instructions="Ask for anything", log_level="WARNING")


class Visitor(BaseModel):
    name: str


@server.tool()
async def echo(message: str) -> str:
    """Says back what it is told"""
    return message


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, with progress"""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"counted to {n}")
    return f"Counted to {to}"


@server.tool()
async def greet(ctx: Context) -> str:
    """Asks who is there"""
    answer = await ctx.elicit("Who is there?", Visitor)
    return f"Hello, {answer.data.name}!"


@server.tool()
async def think(ctx: Context) -> str:
    """Asks the model"""
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Six by nine?"))
    answer = await ctx.session.create_message([question], max_tokens=10, related_request_id=ctx.request_id)
    return f"It is {answer.content.text}"


# Over HTTP this question is on the session's own stream and says nothing of the call that it is about.
@server.tool()
async def where(ctx: Context) -> str:
    """Asks where the client works"""
    answer = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in answer.roots)


@server.resource("memo://about", mime_type="text/plain")
async def about() -> str:
    return "A fixture."


@server.prompt()
async def explain(topic: str) -> str:
    return f"Explain {topic}."


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    serving = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning"))
    serving.run(sockets=[bound("/mcp")])


main()

"""The official Python SDK, which makes spans of what it sends and answers by itself, with OpenTelemetry's own exporter.

Usage: traced.py server               a server over stdio, with the tools echo and fail
       traced.py client URL TOOL ARGUMENTS   calls a tool, and prints the result

OTEL_EXPORTER_OTLP_ENDPOINT says where the spans go, OTEL_SERVICE_NAME who sends them.
"""

import asyncio
import json
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


def server():
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    mcp = MCPServer("traced", log_level="WARNING")

    @mcp.tool()
    async def echo(message: str) -> str:
        """Says back what it is told"""
        return message

    @mcp.tool()
    async def fail() -> str:
        """Never works"""
        raise ToolError("The tide is out")

    asyncio.run(mcp.run_stdio_async())


async def client(url, tool, arguments):
    from mcp import Client

    with trace.get_tracer("test").start_as_current_span("the whole test"):
        async with Client(url) as session:
            result = await session.call_tool(tool, arguments)
            print(result.content[0].text, flush=True)


if sys.argv[1] == "server":
    server()
else:
    asyncio.run(client(sys.argv[2], sys.argv[3], json.loads(sys.argv[4])))
provider.shutdown()

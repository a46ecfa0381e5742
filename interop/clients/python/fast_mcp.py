"""A client on FastMCP.

Usage: fast_mcp.py URL NAME PLAN modern | legacy
"""

import asyncio
from typing import Any

import mcp_types as types
from fastmcp import Client as FastMcp
from fastmcp.client.elicitation import ElicitResult
from steps import FORM, ROOT, SAMPLE, Client, mode, name, run, url


async def elicit(message: str, response_type: Any, params: Any, context: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=FORM)


async def sample(messages: Any, params: Any, context: Any) -> str:
    return SAMPLE


class Session(Client):
    def __init__(self, fastmcp: FastMcp) -> None:
        self.fastmcp = fastmcp

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.fastmcp.list_tools()]

    async def resources(self) -> list[str]:
        return [str(resource.uri) for resource in await self.fastmcp.list_resources()]

    async def call(self, tool: str, arguments: dict[str, Any], progress: Any) -> Any:
        return await self.fastmcp.call_tool(tool, arguments, progress_handler=progress, raise_on_error=False)

    async def read(self, uri: str) -> str:
        return (await self.fastmcp.read_resource(uri))[0].text

    async def prompt(self, prompt: str, arguments: dict[str, str]) -> str:
        return (await self.fastmcp.get_prompt(prompt, arguments)).messages[0].content.text


async def main() -> None:
    fastmcp = FastMcp(
        url,
        name=name,
        mode=mode,
        elicitation_handler=elicit,
        sampling_handler=sample,
        roots=[types.Root(uri=ROOT, name=name)],
        client_info=types.Implementation(name=name, version="1"),
    )
    async with fastmcp:
        await run(Session(fastmcp), fastmcp.session.protocol_version)


asyncio.run(main())

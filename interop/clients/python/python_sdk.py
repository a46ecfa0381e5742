"""A client on version 2 of the official Python SDK.

Usage: python_sdk.py URL NAME PLAN modern | legacy
"""

import asyncio
from typing import Any

import mcp_types as types
from mcp import Client as Sdk
from steps import FORM, ROOT, SAMPLE, Client, mode, name, run, url


async def elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=FORM)


async def sample(context: Any, params: Any) -> types.CreateMessageResult:
    answer = types.TextContent(type="text", text=SAMPLE)
    return types.CreateMessageResult(role="assistant", model="deep thought", content=answer)


async def roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=ROOT, name=name)])


class Session(Client):
    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk

    async def all(self, page: Any, member: str) -> list[Any]:
        found, cursor = [], None
        while True:
            listed = await page(cursor=cursor)
            found += getattr(listed, member)
            cursor = listed.next_cursor
            if cursor is None:
                return found

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.all(self.sdk.list_tools, "tools")]

    async def resources(self) -> list[str]:
        return [str(resource.uri) for resource in await self.all(self.sdk.list_resources, "resources")]

    async def call(self, tool: str, arguments: dict[str, Any], progress: Any) -> Any:
        return await self.sdk.call_tool(tool, arguments, progress_callback=progress)

    async def read(self, uri: str) -> str:
        return (await self.sdk.read_resource(uri)).contents[0].text

    async def prompt(self, prompt: str, arguments: dict[str, str]) -> str:
        return (await self.sdk.get_prompt(prompt, arguments)).messages[0].content.text


async def main() -> None:
    sdk = Sdk(
        url,
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        client_info=types.Implementation(name=name, version="1"),
    )
    async with sdk:
        await run(Session(sdk), sdk.session.protocol_version)


asyncio.run(main())

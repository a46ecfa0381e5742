"""A client on version 1 of the official Python SDK: legacy alone.

Usage: python_sdk_1.py URL NAME PLAN
"""

import asyncio
from typing import Any

from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl
from steps import FORM, ROOT, SAMPLE, Client, name, run, url


async def elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=FORM)


async def sample(context: Any, params: Any) -> types.CreateMessageResult:
    answer = types.TextContent(type="text", text=SAMPLE)
    return types.CreateMessageResult(role="assistant", model="deep thought", content=answer)


async def roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=ROOT, name=name)])


class Session(Client):
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def all(self, page: Any, member: str) -> list[Any]:
        found, cursor = [], None
        while True:
            listed = await page(params=types.PaginatedRequestParams(cursor=cursor))
            found += getattr(listed, member)
            cursor = listed.nextCursor
            if cursor is None:
                return found

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.all(self.session.list_tools, "tools")]

    async def resources(self) -> list[str]:
        return [str(resource.uri) for resource in await self.all(self.session.list_resources, "resources")]

    async def call(self, tool: str, arguments: dict[str, Any], progress: Any) -> Any:
        return await self.session.call_tool(tool, arguments, progress_callback=progress)

    async def read(self, uri: str) -> str:
        return (await self.session.read_resource(AnyUrl(uri))).contents[0].text

    async def prompt(self, prompt: str, arguments: dict[str, str]) -> str:
        return (await self.session.get_prompt(prompt, arguments)).messages[0].content.text


async def main() -> None:
    async with (
        streamable_http_client(url) as (reader, writer, _),
        ClientSession(
            reader,
            writer,
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
            client_info=types.Implementation(name=name, version="1"),
        ) as session,
    ):
        initialized = await session.initialize()
        await run(Session(session), initialized.protocolVersion)


asyncio.run(main())

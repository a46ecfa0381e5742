"""Tools of Agno whose gateway is killed and started again while they are connected.

Usage: agno_restart.py URL NAME
Prints "ready", waits for a line on standard input, and prints what came of the rest as JSON.
"""

import asyncio
import json
import sys

from agno.tools.mcp import MCPTools


async def main() -> None:
    async with MCPTools(transport="streamable-http", url=sys.argv[1]) as adapted:
        session = adapted.session

        async def remember(name: str) -> None:
            entity = {"name": name, "entityType": "thing", "observations": []}
            result = await session.call_tool("create_entities", {"entities": [entity]})
            assert not getattr(result, "isError", False), result

        await remember("before")
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        await remember("after")
        print(json.dumps({"same": adapted.session is session, "subscribed": False}), flush=True)


asyncio.run(main())

"""An agent on mcp-use."""

import asyncio

from given import KEY, NAME, OPENAI, prompt, tools
from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient


async def main() -> None:
    client = MCPClient({"mcpServers": {"tidegate": {"url": tools}}})
    model = ChatOpenAI(model=NAME, base_url=OPENAI, api_key=KEY)
    print(await MCPAgent(llm=model, client=client, max_steps=30).run(prompt))
    await client.close_all_sessions()


asyncio.run(main())

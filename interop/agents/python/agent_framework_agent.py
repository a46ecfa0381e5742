"""An agent on Microsoft's Agent Framework."""

import asyncio

from agent_framework import Agent, MCPStreamableHTTPTool
from agent_framework.openai import OpenAIChatCompletionClient
from given import KEY, NAME, OPENAI, prompt, tools


async def main() -> None:
    model = OpenAIChatCompletionClient(NAME, base_url=OPENAI, api_key=KEY)
    async with MCPStreamableHTTPTool("tidegate", tools) as server, Agent(model, tools=server) as agent:
        print(await agent.run(prompt))


asyncio.run(main())

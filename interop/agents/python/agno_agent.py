"""An agent on Agno."""

import asyncio

from agno.agent import Agent
from agno.models.openai.like import OpenAILike
from agno.tools.mcp import MCPTools
from given import KEY, NAME, OPENAI, prompt, tools


async def main() -> None:
    async with MCPTools(transport="streamable-http", url=tools) as adapted:
        model = OpenAILike(id=NAME, base_url=OPENAI, api_key=KEY)
        agent = Agent(model=model, tools=[adapted], telemetry=False)
        print((await agent.arun(prompt)).content)


asyncio.run(main())

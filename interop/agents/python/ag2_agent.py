"""An agent on AG2."""

import asyncio

from ag2 import Agent
from ag2.config.openai import OpenAIConfig
from ag2.tools.toolkits.mcp_server import MCPToolkit
from given import KEY, NAME, OPENAI, prompt, tools


async def main() -> None:
    model = OpenAIConfig(model=NAME, base_url=OPENAI, api_key=KEY)
    print((await Agent("clerk", config=model, tools=[MCPToolkit(tools)]).ask(prompt)).body)


asyncio.run(main())

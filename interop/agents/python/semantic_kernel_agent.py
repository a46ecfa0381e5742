"""An agent on Semantic Kernel."""

import asyncio

from given import KEY, NAME, OPENAI, prompt, tools
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin


async def main() -> None:
    client = AsyncOpenAI(base_url=OPENAI, api_key=KEY)
    model = OpenAIChatCompletion(ai_model_id=NAME, async_client=client)
    async with MCPStreamableHttpPlugin(name="tidegate", url=tools) as plugin:
        agent = ChatCompletionAgent(service=model, name="Clerk", plugins=[plugin])
        print((await agent.get_response(messages=prompt)).content)


asyncio.run(main())

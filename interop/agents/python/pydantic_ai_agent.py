"""An agent on pydantic-ai. The word says in which wire format it speaks with the model: chat, responses or messages."""

import asyncio

from fastmcp.client.transports import StdioTransport
from given import KEY, NAME, OPENAI, command, model, prompt, tools, words
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def scripted():
    if words == ["messages"]:
        return AnthropicModel(NAME, provider=AnthropicProvider(base_url=model, api_key=KEY))
    kind = OpenAIResponsesModel if words == ["responses"] else OpenAIChatModel
    return kind(NAME, provider=OpenAIProvider(base_url=OPENAI, api_key=KEY))


async def main() -> None:
    server = MCPToolset(StdioTransport(command[0], command[1:]) if command else tools)
    agent = Agent(scripted(), toolsets=[server])
    async with agent:
        print((await agent.run(prompt)).output)


asyncio.run(main())

"""An agent on Google's Agent Development Kit."""

import asyncio

from given import NAME, model, prompt, tools
from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams


async def main() -> None:
    server = McpToolset(connection_params=StreamableHTTPConnectionParams(url=tools))
    agent = LlmAgent(name="clerk", model=Gemini(model=NAME, base_url=model), tools=[server])
    runner = InMemoryRunner(agent)
    events = await runner.run_debug(prompt, quiet=True)
    print(events[-1].content.parts[0].text)
    await runner.close()


asyncio.run(main())

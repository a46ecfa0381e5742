"""An agent on OpenAI's Agents SDK."""

import asyncio

from agents import Agent, OpenAIProvider, RunConfig, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from given import KEY, NAME, OPENAI, prompt, tools


async def main() -> None:
    set_tracing_disabled(True)
    config = RunConfig(model_provider=OpenAIProvider(base_url=OPENAI, api_key=KEY))
    async with MCPServerStreamableHttp(params={"url": tools}) as server:
        agent = Agent(name="Clerk", model=NAME, mcp_servers=[server])
        print((await Runner.run(agent, prompt, run_config=config)).final_output)


asyncio.run(main())

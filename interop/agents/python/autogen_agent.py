"""An agent on AutoGen."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams
from given import KEY, NAME, OPENAI, prompt, tools

INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "structured_output": False,
    "family": "unknown",
}


async def main() -> None:
    model = OpenAIChatCompletionClient(model=NAME, base_url=OPENAI, api_key=KEY, model_info=INFO)
    async with McpWorkbench(StreamableHttpServerParams(url=tools)) as workbench:
        agent = AssistantAgent("agent", model, workbench=workbench, max_tool_iterations=9)
        result = await agent.run(task=prompt)
        print(result.messages[-1].content)
    await model.close()


asyncio.run(main())

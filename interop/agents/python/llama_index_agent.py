"""An agent on LlamaIndex."""

import asyncio

from given import KEY, NAME, OPENAI, prompt, tools
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main() -> None:
    adapted = await McpToolSpec(client=BasicMCPClient(tools)).to_tool_list_async()
    model = OpenAILike(
        model=NAME, api_base=OPENAI, api_key=KEY, is_chat_model=True, is_function_calling_model=True
    )
    print(await FunctionAgent(tools=adapted, llm=model).run(prompt))


asyncio.run(main())

"""An agent on LangChain, with LangChain's adapter for MCP. It wants streams of its model."""

import asyncio

from given import KEY, NAME, OPENAI, prompt, tools
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def main() -> None:
    client = MultiServerMCPClient({"tidegate": {"transport": "streamable_http", "url": tools}})
    model = ChatOpenAI(model=NAME, base_url=OPENAI, api_key=KEY, streaming=True)
    agent = create_agent(model, await client.get_tools())
    state = await agent.ainvoke({"messages": [{"role": "user", "content": prompt}]})
    print(state["messages"][-1].text)


asyncio.run(main())

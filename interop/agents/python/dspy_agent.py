"""An agent on DSPy. Its own loops put tools and results into the prompt as text, so the loop here is ours."""

import asyncio
import json

import dspy
from given import KEY, NAME, OPENAI, prompt, tools
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    model = dspy.LM(f"openai/{NAME}", api_base=OPENAI, api_key=KEY, cache=False)
    messages = [{"role": "user", "content": prompt}]
    async with streamable_http_client(tools) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        listed = (await session.list_tools()).tools
        adapted = {tool.name: dspy.Tool.from_mcp_tool(session, tool) for tool in listed}
        functions = [tool.format_as_litellm_function_call() for tool in adapted.values()]
        while True:
            (answer,) = await model.acall(messages=messages, tools=functions)
            if isinstance(answer, str) or not answer.get("tool_calls"):
                print(answer if isinstance(answer, str) else answer["text"])
                return
            for call in answer["tool_calls"]:
                arguments = json.loads(call.function.arguments)
                result = await adapted[call.function.name].acall(**arguments)
                called = {"name": call.function.name, "arguments": call.function.arguments}
                made = {"id": call.id, "type": "function", "function": called}
                messages.append({"role": "assistant", "tool_calls": [made]})
                messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})


asyncio.run(main())

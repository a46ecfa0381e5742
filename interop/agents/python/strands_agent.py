"""An agent on Strands Agents."""

from given import KEY, NAME, OPENAI, prompt, tools
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

model = OpenAIModel(client_args={"base_url": OPENAI, "api_key": KEY}, model_id=NAME)
with MCPClient(url=tools) as client:
    agent = Agent(model=model, tools=client.list_tools_sync(), callback_handler=None)
    print(agent(prompt))

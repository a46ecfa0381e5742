"""An agent on Haystack."""

from given import KEY, NAME, OPENAI, prompt, tools
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from haystack_integrations.tools.mcp import MCPToolset, StreamableHttpServerInfo

server = MCPToolset(StreamableHttpServerInfo(url=tools), eager_connect=True)
model = OpenAIChatGenerator(model=NAME, api_base_url=OPENAI, api_key=Secret.from_token(KEY))
agent = Agent(chat_generator=model, tools=server)
print(agent.run(messages=[ChatMessage.from_user(prompt)])["messages"][-1].text)
server.close()

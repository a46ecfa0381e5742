"""An agent on smolagents, which calls tools one by one. Its models end by calling a tool as well."""

from given import KEY, NAME, OPENAI, prompt, tools
from smolagents import MCPClient, OpenAIServerModel, ToolCallingAgent

# Results as results, and not as words of the user.
roles = {"tool-call": "assistant", "tool-response": "tool"}
model = OpenAIServerModel(model_id=NAME, api_base=OPENAI, api_key=KEY, custom_role_conversions=roles)
server = {"url": tools, "transport": "streamable-http"}
with MCPClient(server, structured_output=False) as adapted:
    print(ToolCallingAgent(tools=adapted, model=model, max_steps=9).run(prompt))

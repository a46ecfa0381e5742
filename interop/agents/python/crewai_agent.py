"""An agent on CrewAI, with CrewAI's adapter for MCP.

Not with `mcps=`: before Python 3.12 every call fails there when CrewAI ends the session that it has made for it.
"""

from crewai import LLM, Agent, Crew, Task
from crewai_tools import MCPServerAdapter
from given import KEY, NAME, OPENAI, prompt, tools

model = LLM(model=f"openai/{NAME}", base_url=OPENAI, api_key=KEY)
with MCPServerAdapter({"url": tools, "transport": "streamable-http"}) as adapted:
    agent = Agent(role="Clerk", goal=prompt, backstory="None.", llm=model, tools=list(adapted))
    task = Task(description=prompt, expected_output="A sentence.", agent=agent)
    print(Crew(agents=[agent], tasks=[task]).kickoff().raw)

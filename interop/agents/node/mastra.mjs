// An agent on Mastra.
import { apiKey, load, name, openai, prompt, tools } from "./given.mjs";

const { Agent } = await load("@mastra/core/agent");
const { MCPClient } = await load("@mastra/mcp");

const client = new MCPClient({ servers: { tidegate: { url: new URL(tools) } } });
const agent = new Agent({
    id: "clerk",
    name: "clerk",
    instructions: "None.",
    model: { id: `loopback/${name}`, url: openai, apiKey },
    tools: await client.listTools(),
});
console.log((await agent.generate(prompt, { maxSteps: 9 })).text);
await client.disconnect();
process.exit(0);

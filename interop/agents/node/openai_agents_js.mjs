// An agent on OpenAI's Agents SDK for JavaScript.
import { apiKey, load, name, openai, prompt, tools } from "./given.mjs";

const { Agent, MCPServerStreamableHttp, OpenAIProvider, Runner } = await load("@openai/agents");

const server = new MCPServerStreamableHttp({ name: "tidegate", url: tools });
await server.connect();
const agent = new Agent({ name: "clerk", instructions: "None.", model: name, mcpServers: [server] });
const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey, baseURL: openai }), tracingDisabled: true });
console.log((await runner.run(agent, prompt)).finalOutput);
await server.close();

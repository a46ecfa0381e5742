// An agent on LangChain for JavaScript, with LangChain's adapter for MCP.
import { apiKey, load, name, openai, prompt, tools } from "./given.mjs";

const { createAgent } = await load("langchain");
const { ChatOpenAI } = await load("@langchain/openai");
const { MultiServerMCPClient } = await load("@langchain/mcp-adapters");

const client = new MultiServerMCPClient({ mcpServers: { tidegate: { transport: "http", url: tools } } });
const model = new ChatOpenAI({ model: name, apiKey, configuration: { baseURL: openai } });
const agent = createAgent({ model, tools: await client.getTools() });
const state = await agent.invoke({ messages: [{ role: "user", content: prompt }] });
console.log(state.messages.at(-1).content);
await client.close();

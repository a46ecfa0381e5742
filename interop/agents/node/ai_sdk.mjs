// An agent on Vercel's AI SDK.
import { apiKey, load, name, openai, prompt, tools } from "./given.mjs";

const { stepCountIs, streamText } = await load("ai");
const { createMCPClient } = await load("@ai-sdk/mcp");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const client = await createMCPClient({ transport: { type: "http", url: tools } });
const model = createOpenAICompatible({ name: "loopback", baseURL: openai, apiKey })(name);
const result = streamText({ model, prompt, tools: await client.tools(), stopWhen: stepCountIs(9) });
console.log(await result.text);
await client.close();

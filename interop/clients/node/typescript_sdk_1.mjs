// A client on version 1 of the TypeScript SDK: legacy alone.
//
// Usage: typescript_sdk_1.mjs URL NAME PLAN
import { answers, load, name, run, url } from "./steps.mjs";

const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } = await load(
    "@modelcontextprotocol/sdk/types.js",
);

const client = new Client({ name, version: "1" }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
client.setRequestHandler(ElicitRequestSchema, async () => answers.elicitation);
client.setRequestHandler(CreateMessageRequestSchema, async () => answers.sampling);
client.setRequestHandler(ListRootsRequestSchema, async () => answers.roots);
const transport = new StreamableHTTPClientTransport(new URL(url));
const call = (client, params, options) => client.callTool(params, undefined, options);
await run(client, transport, call, () => transport.protocolVersion);

// A client on version 2 of the TypeScript SDK.
//
// Usage: typescript_sdk.mjs URL NAME PLAN modern | legacy
import { answers, load, name, run, url } from "./steps.mjs";

const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");

const mode = process.argv[5] === "modern" ? { pin: "2026-07-28" } : "legacy";
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
const client = new Client({ name, version: "1" }, { capabilities, versionNegotiation: { mode } });
client.setRequestHandler("elicitation/create", async () => answers.elicitation);
client.setRequestHandler("sampling/createMessage", async () => answers.sampling);
client.setRequestHandler("roots/list", async () => answers.roots);
const transport = new StreamableHTTPClientTransport(new URL(url));
const call = (client, params, options) => client.callTool(params, options);
await run(client, transport, call, () => client.getNegotiatedProtocolVersion());

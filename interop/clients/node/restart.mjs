// A client whose gateway is killed and started again while it is connected. It does not know about that: it calls, listens and
// goes on with what it has.
//
// Usage: restart.mjs URL typescript-1 | typescript-2 | typescript-2-legacy
//
// Prints "ready", waits for a line on standard input, and prints what came of the rest as JSON.
import { once } from "node:events";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const installed = createRequire(`${process.env.TIDEGATE_NODE_MODULES}/`);
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const [url, kind] = process.argv.slice(2);

const GRAPH = "memory://knowledge-graph";
const info = { name: kind, version: "1" };
// A client tries for a while to come back to its stream.
const reconnectionOptions = {
    initialReconnectionDelay: 200,
    maxReconnectionDelay: 1000,
    reconnectionDelayGrowFactor: 1.5,
    maxRetries: 100,
};
const entity = (name) => ({ entities: [{ name, entityType: "thing", observations: [] }] });
let updates = 0;

/** Connects: what remembers something, and what subscribes, if the client can. */
const connect = {
    "typescript-1": async () => {
        const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
        const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
        const { ResourceUpdatedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");
        const client = new Client(info, { capabilities: {} });
        client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void updates++);
        const transport = new StreamableHTTPClientTransport(new URL(url), { reconnectionOptions });
        await client.connect(transport);
        return sdk(client, transport, true);
    },
    "typescript-2-legacy": () => typescript("legacy", true),
    "typescript-2": () => typescript({ pin: "2026-07-28" }, false),
};

async function typescript(mode, subscribes) {
    const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
    const client = new Client(info, { capabilities: {}, versionNegotiation: { mode } });
    client.setNotificationHandler("notifications/resources/updated", () => void updates++);
    const transport = new StreamableHTTPClientTransport(new URL(url), { reconnectionOptions });
    await client.connect(transport);
    return sdk(client, transport, subscribes);
}

function sdk(client, transport, subscribes) {
    return {
        remember: async (name) => {
            const result = await client.callTool({ name: "create_entities", arguments: entity(name) });
            if (result.isError) throw new Error(result.content[0].text);
        },
        subscribe: subscribes && (() => client.subscribeResource({ uri: GRAPH })),
        session: () => transport.sessionId,
        close: () => client.close(),
    };
}

/** Waits until more was heard than this. */
async function heard(before) {
    for (let tries = 0; updates <= before; tries++) {
        if (tries > 600) throw new Error(`nothing was heard after ${before} updates`);
        await new Promise((wake) => setTimeout(wake, 100));
    }
}

const client = await connect[kind]();
await client.remember(`${kind} before`);
if (client.subscribe) {
    await client.subscribe();
    await client.remember(`${kind} subscribed`);
    await heard(0);
}
const session = client.session?.();
console.log("ready");
await once(process.stdin, "data");

await client.remember(`${kind} after`);
if (client.subscribe) {
    // It is told that the resource may have changed, and then that it has.
    await heard(updates - 1);
    const before = updates;
    await client.remember(`${kind} heard`);
    await heard(before);
}
console.log(JSON.stringify({ same: session === client.session?.(), subscribed: Boolean(client.subscribe) }));
await client.close();
process.exit(0);

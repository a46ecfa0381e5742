// What the matrix (tests/matrix) needs of the vocabulary, spoken by version 1 of the TypeScript SDK: legacy alone.
//
// Usage: typescript_sdk_1.mjs stdio | http. The variable PORT chooses a port.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are installed elsewhere: in target/interop.
const installed = createRequire(`${process.env.TIDEGATE_NODE_MODULES}/`);
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { CreateMessageResultSchema } = await load("@modelcontextprotocol/sdk/types.js");
const { z } = await load("zod");

const text = (text) => ({ content: [{ type: "text", text }] });

/** One server, for one session. */
function build() {
    const server = new McpServer({ name: "typescript-sdk-1", version: "1.2.3" }, { instructions: "Ask for anything" });
    const tool = (name, description, inputSchema, handler) =>
        server.registerTool(name, { description, inputSchema }, handler);

    tool("echo", "Says back what it is told", { message: z.string() }, async ({ message }) => text(message));
    tool("count", "Counts, with progress", { to: z.number() }, async ({ to }, extra) => {
        const progressToken = extra._meta?.progressToken;
        for (let n = 1; n <= to && progressToken !== undefined; n++) {
            const params = { progressToken, progress: n, total: to, message: `counted to ${n}` };
            await extra.sendNotification({ method: "notifications/progress", params });
        }
        return text(`Counted to ${to}`);
    });
    tool("greet", "Asks who is there", {}, async (_, extra) => {
        const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
        const related = { relatedRequestId: extra.requestId };
        const answer = await server.server.elicitInput({ message: "Who is there?", requestedSchema }, related);
        return text(`Hello, ${answer.content.name}!`);
    });
    tool("think", "Asks the model", {}, async (_, extra) => {
        const messages = [{ role: "user", content: { type: "text", text: "Six by nine?" } }];
        const request = { method: "sampling/createMessage", params: { messages, maxTokens: 10 } };
        const answer = await extra.sendRequest(request, CreateMessageResultSchema);
        return text(`It is ${answer.content.text}`);
    });
    // Over HTTP this question is on the session's own stream and says nothing of the call that it is about.
    tool("where", "Asks where the client works", {}, async () => {
        const { roots } = await server.server.listRoots();
        return text(roots.map((root) => root.uri).join(" "));
    });

    server.registerResource("about", "memo://about", { mimeType: "text/plain" }, async (uri) => ({
        contents: [{ uri: uri.href, mimeType: "text/plain", text: "A fixture." }],
    }));
    server.registerPrompt("explain", { argsSchema: { topic: z.string() } }, async ({ topic }) => ({
        messages: [{ role: "user", content: { type: "text", text: `Explain ${topic}.` } }],
    }));
    return server;
}

const sessions = new Map();

/** The transport of a request's session; a request without one opens one. */
async function transportOf(request) {
    const id = request.headers["mcp-session-id"];
    if (id !== undefined) return sessions.get(id);
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
        onsessionclosed: (id) => void sessions.delete(id),
    });
    await build().connect(transport);
    return transport;
}

if (process.argv[2] === "stdio") {
    await build().connect(new StdioServerTransport());
} else {
    const server = createServer(async (request, response) => {
        const transport = await transportOf(request);
        if (transport) await transport.handleRequest(request, response);
        else response.writeHead(404).end();
    });
    server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () =>
        console.log(`listening on http://127.0.0.1:${server.address().port}/mcp`),
    );
}

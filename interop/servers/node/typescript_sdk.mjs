// The vocabulary of the tests (tests/servers/vocabulary.rs), spoken by version 2 of the TypeScript SDK.
//
// Usage: typescript_sdk.mjs stdio | http, and then `modern` to serve nothing older. The variable PORT chooses
// a port.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are installed elsewhere: in target/interop.
const installed = createRequire(`${process.env.TIDEGATE_NODE_MODULES}/`);
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired } =
    await load("@modelcontextprotocol/server");
const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
const { toNodeHandler } = await load("@modelcontextprotocol/node");
const { z } = await load("zod");

const CITIES = ["Bergen", "Berlin", "Bern", "Lisbon"];
const text = (text) => ({ content: [{ type: "text", text }] });
const startingWith = (typed) => CITIES.filter((city) => city.startsWith(typed));

let cancelled = 0;
let grown = false;
// What an HTTP handler tells those who listen; over stdio the server itself does.
let tell;

/** One server: for a connection over stdio, for one request over HTTP. */
function build() {
    const server = new McpServer(
        { name: "typescript-sdk", version: "1.2.3" },
        {
            instructions: "Ask for anything",
            capabilities: {
                tools: { listChanged: true },
                resources: { listChanged: true, subscribe: true },
                prompts: { listChanged: true },
                logging: {},
            },
        },
    );
    const tool = (name, description, inputSchema, handler) =>
        server.registerTool(name, { description, inputSchema: z.object(inputSchema) }, handler);

    tool("echo", "Says back what it is told", { message: z.string() }, async ({ message }) => text(message));
    server.registerTool(
        "add",
        {
            description: "Adds two numbers",
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            outputSchema: z.object({ sum: z.number() }),
        },
        async ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } }),
    );
    tool("fail", "Never works", {}, async () => ({ ...text("The tide is out"), isError: true }));
    tool("count", "Counts, with progress", { to: z.number() }, async ({ to }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let n = 1; n <= to && progressToken !== undefined; n++) {
            const params = { progressToken, progress: n, total: to, message: `counted to ${n}` };
            await ctx.mcpReq.notify({ method: "notifications/progress", params });
        }
        return text(`Counted to ${to}`);
    });
    asking(tool);
    tool("wait", "Waits until it is cancelled", {}, async (_, ctx) => {
        const enough = setTimeout(() => {}, 60_000);
        await new Promise((done) => ctx.mcpReq.signal.addEventListener("abort", done));
        clearTimeout(enough);
        cancelled += 1;
        return text("Cancelled");
    });
    tool("waited", "How often somebody cancelled `wait`", {}, async () => text(`${cancelled}`));
    tool("grow", "Adds a tool", {}, async () => {
        grown = true;
        if (tell) tell.toolsChanged();
        else addGrown(); // which tells
        return text("Grown");
    });
    const addGrown = () => tool("grown", "Came later", {}, async () => text("I am new"));
    if (grown) addGrown();
    tool("touch", "Changes memo://about", {}, async () => {
        if (tell) tell.resourceUpdated("memo://about");
        else await server.server.sendResourceUpdated({ uri: "memo://about" });
        return text("Touched");
    });
    // The SDK leaves it to the server what legacy clients subscribe to.
    for (const method of ["resources/subscribe", "resources/unsubscribe"]) {
        server.server.setRequestHandler(method, async () => ({}));
    }
    tool("say", "Writes to the log", {}, async (_, ctx) => {
        await ctx.mcpReq.log("warning", "High water");
        return text("Said");
    });
    tool("pid", "The number of this process", {}, async () => text(`${process.pid}`));

    server.registerResource("about", "memo://about", { mimeType: "text/plain" }, async (uri) => ({
        contents: [{ uri: uri.href, mimeType: "text/plain", text: "A fixture." }],
    }));
    server.registerResource(
        "city",
        new ResourceTemplate("memo://city/{city}", { list: undefined, complete: { city: startingWith } }),
        { mimeType: "text/plain" },
        async (uri, { city }) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: `Mild in ${city}.` }] }),
    );
    const argsSchema = z.object({ topic: completable(z.string(), startingWith) });
    server.registerPrompt("explain", { argsSchema }, async ({ topic }) => ({
        messages: [{ role: "user", content: { type: "text", text: `Explain ${topic}.` } }],
    }));
    return server;
}

/** The tools that ask: with their result, which the SDK turns into requests for legacy clients. */
function asking(tool) {
    const ask = (request) => inputRequired({ inputRequests: { it: request }, requestState: "asked" });
    const answer = (ctx) => ctx.mcpReq.inputResponses?.it;
    tool("greet", "Asks who is there", {}, async (_, ctx) => {
        const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
        const visitor = acceptedContent(ctx.mcpReq.inputResponses, "it");
        return visitor
            ? text(`Hello, ${visitor.name}!`)
            : ask(inputRequired.elicit({ message: "Who is there?", requestedSchema }));
    });
    tool("think", "Asks the model", {}, async (_, ctx) => {
        const messages = [{ role: "user", content: { type: "text", text: "Six by nine?" } }];
        return answer(ctx)
            ? text(`It is ${answer(ctx).content.text}`)
            : ask(inputRequired.createMessage({ messages, maxTokens: 10 }));
    });
    tool("where", "Asks where the client works", {}, async (_, ctx) =>
        answer(ctx)
            ? text(answer(ctx).roots.map((root) => root.uri).join(" "))
            : ask(inputRequired.listRoots()),
    );
}

const [transport, ...words] = process.argv.slice(2);
const modern = words.includes("modern");
if (transport === "stdio") {
    serveStdio(build, { legacy: modern ? "reject" : "serve" });
} else {
    const handler = createMcpHandler(build, { legacy: modern ? "reject" : "stateless" });
    tell = handler.notify;
    const server = createServer(toNodeHandler(handler));
    server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () =>
        console.log(`listening on http://127.0.0.1:${server.address().port}/mcp`),
    );
}

// A client on version 2 of the TypeScript SDK, which has to log in first.
//
// Usage: login.mjs URL USER modern | legacy
//
// Calls a tool that every user may call, and one that needs another scope. Prints what came of both, and the pages that it was
// sent to, as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { login } from "../../identity/browse.mjs";

const installed = createRequire(`${process.env.TIDEGATE_NODE_MODULES}/`);
const [url, user, era] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(
    pathToFileURL(installed.resolve("@modelcontextprotocol/client"))
);

/** Where the SDK keeps what it is given, and whom it sends to the login page. */
class Login {
    pages = [];
    redirectUrl = "http://127.0.0.1:1/callback";
    clientMetadata = {
        client_name: "a client of the tests",
        redirect_uris: [this.redirectUrl],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
    };
    clientInformation = () => this.information;
    saveClientInformation = (information) => void (this.information = information);
    tokens = () => this.saved;
    saveTokens = (tokens) => void (this.saved = tokens);
    codeVerifier = () => this.verifier;
    saveCodeVerifier = (verifier) => void (this.verifier = verifier);
    discoveryState = () => this.discovered;
    saveDiscoveryState = (discovered) => void (this.discovered = discovered);
    state = () => "the state of this client";
    async redirectToAuthorization(page) {
        this.pages.push(Object.fromEntries(page.searchParams));
        this.back = await login(page.href, user);
    }
}

const provider = new Login();
const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
let client, transport;

/** Does something that may have to wait for a login: the SDK gives up then, and begins anew with what the login gave. */
async function loggedIn(step) {
    try {
        return await step();
    } catch (error) {
        const { back } = provider;
        if (!back) throw error;
        provider.back = undefined;
        await transport.finishAuth(back.searchParams);
        return await step();
    }
}

async function connect() {
    client = new Client({ name: "login", version: "1" }, { versionNegotiation: { mode } });
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
    await client.connect(transport);
}

async function call(name, args) {
    const { content, isError } = await client.callTool({ name, arguments: args });
    if (isError) throw new Error(content[0].text);
    return content[0].text;
}

await loggedIn(connect);
const echoed = await call("demo_echo", { message: "through the front" });
const added = await loggedIn(() => call("demo_add", { a: 20, b: 22 }));
const echoedAgain = await call("demo_echo", { message: "still here" });
console.log(JSON.stringify({ echoed, added, echoedAgain, pages: provider.pages, scope: provider.saved.scope }));
await client.close();
process.exit(0);

// An identity provider: oidc-provider, as it comes from npm, with users who agree to everything.
//
// Usage: provider.mjs
//
// Says "listening on" and its issuer, and runs until it is killed. Everything is kept in memory.
//
// Access tokens are for the resource that was asked for (RFC 8707), signed with RS256. What the path of that resource begins
// with says what is different about them:
//   /opaque/…   they are opaque, and whoever gets one has to ask what it is (RFC 7662)
//   /brief/…    they are valid for a few seconds
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const installed = createRequire(`${process.env.TIDEGATE_NODE_MODULES}/`);
const { Provider } = await import(pathToFileURL(installed.resolve("oidc-provider")));

const SCOPES = "mcp files:write";
const USERS = {
    ann: { org: "reef", roles: ["diver"] },
    bob: { org: "reef", roles: ["diver"] },
    cid: { org: "tide", roles: [] },
};
/** How long tokens of `/brief/…` are valid, in seconds. */
const BRIEFLY = 4;

// The issuer has the port in it, so the port comes first.
const server = createServer();
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
    // Who may ask what an opaque token is.
    clients: [
        {
            client_id: "tidegate",
            client_secret: "the secret of the gateway",
            redirect_uris: [],
            response_types: [],
            grant_types: [],
        },
    ],
    scopes: ["openid", "offline_access", ...SCOPES.split(" ")],
    pkce: { required: () => true },
    // oidc-provider wants `offline_access` for that; the specification leaves it to the provider.
    issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
    expiresWithSession: async () => false,
    rotateRefreshToken: true,
    findAccount: async (_, sub) => ({ accountId: sub, claims: async () => ({ sub }) }),
    extraTokenClaims: async (_, token) => USERS[token.accountId],
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    cookies: { keys: ["not a secret: it lives as long as this test"] },
    clientBasedCORS: () => true,
    features: {
        devInteractions: { enabled: false },
        registration: { enabled: true },
        introspection: { enabled: true, allowedPolicy: async (_, client) => client.clientId === "tidegate" },
        revocation: { enabled: true, allowedPolicy: async (_, client, token) => client.clientId === token.clientId },
        resourceIndicators: {
            enabled: true,
            defaultResource: async () => undefined,
            useGrantedResource: async () => true,
            getResourceServerInfo: async (_, resource) => {
                const { pathname } = new URL(resource);
                return {
                    scope: SCOPES,
                    audience: resource,
                    accessTokenFormat: pathname.startsWith("/opaque/") ? "opaque" : "jwt",
                    accessTokenTTL: pathname.startsWith("/brief/") ? BRIEFLY : 3600,
                    jwt: { sign: { alg: "RS256" } },
                };
            },
        },
    },
    ttl: { Interaction: 600, Session: 600, Grant: 3600, RefreshToken: 3600, IdToken: 600 },
});

/** What was given out so far: who got which kind of grant, with which scopes. */
const granted = [];
provider.on("grant.success", (ctx) => {
    const { client, params, entities } = ctx.oidc;
    const scope = entities.AccessToken?.scope ?? "";
    granted.push({ client: client.clientId, grant: params.grant_type, resource: params.resource, scope });
});

/** The body of a request as JSON. */
async function json(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    return JSON.parse(Buffer.concat(chunks).toString());
}

// Clients register with the scopes that they know of at the time, and oidc-provider would hold them to that for ever. Here they
// may ask for others later, as the specification's step-up wants it.
provider.use(async (ctx, next) => {
    if (ctx.method === "POST" && ctx.path === "/reg") {
        const { scope, ...metadata } = await json(ctx.req);
        ctx.request.body = metadata;
    }
    return next();
});

// The user at the browser, who is logged in and agrees: no page, only redirects. The header says who it is.
provider.use(async (ctx, next) => {
    if (ctx.path === "/granted") {
        ctx.body = granted;
        return;
    }
    if (!ctx.path.startsWith("/interaction/")) return next();
    const { prompt, params, session, grantId } = await provider.interactionDetails(ctx.req, ctx.res);
    if (prompt.name === "login") {
        const accountId = ctx.get("x-user") || "ann";
        return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId } });
    }
    const { accountId } = session;
    const clientId = params.client_id;
    const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId, clientId });
    const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details;
    if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
    if (missingOIDCClaims) grant.addOIDCClaims(missingOIDCClaims);
    for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
        grant.addResourceScope(resource, scopes.join(" "));
    }
    const consent = { consent: { grantId: await grant.save() } };
    return provider.interactionFinished(ctx.req, ctx.res, consent, { mergeWithLastSubmission: true });
});

server.on("request", provider.callback());
console.log(`listening on ${issuer}`);

// A browser, as far as a login without pages needs one: it goes where it is sent, and keeps cookies.
//
// Usage: browse.mjs URL USER
//
// Follows the redirects from a login page up to the client's own address, and opens that too.
import { pathToFileURL } from "node:url";

/** Follows the redirects of a provider. Gives the first address that is not the provider's: the client's. */
export async function login(page, user) {
    const cookies = new Map();
    const { origin } = new URL(page);
    let at = new URL(page);
    for (let hops = 0; at.origin === origin; hops++) {
        if (hops > 20) throw new Error(`sent from page to page: ${at}`);
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
        const answer = await fetch(at, { redirect: "manual", headers: { cookie, "x-user": user } });
        for (const set of answer.headers.getSetCookie()) {
            const [name, value] = set.split(";")[0].split(/=(.*)/s);
            if (value) cookies.set(name, value);
            else cookies.delete(name);
        }
        const to = answer.headers.get("location");
        if (!to) throw new Error(`${at} answers ${answer.status}: ${(await answer.text()).slice(0, 2000)}`);
        at = new URL(to, at);
    }
    return at;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
    const [page, user] = process.argv.slice(2);
    const answer = await fetch(await login(page, user));
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
}

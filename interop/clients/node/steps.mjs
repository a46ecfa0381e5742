// What the clients on the TypeScript SDKs share: the steps of the matrix (tests/matrix), done one after the other.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are installed elsewhere: in target/interop.
const installed = createRequire(`${process.env.TIDEGATE_NODE_MODULES}/`);
/** Imports an installed module. */
export const load = (name) => import(pathToFileURL(installed.resolve(name)));

/** Where the gateway is, what this client is called, and what it is to do. */
export const [url, name, plan] = [process.argv[2], process.argv[3], JSON.parse(process.argv[4])];

/** What a client of this name answers to a server's questions. */
export const answers = {
    elicitation: { action: "accept", content: { name } },
    sampling: { role: "assistant", model: "deep thought", content: { type: "text", text: `42, says ${name}` } },
    roots: { roots: [{ uri: `file:///home/${name}`, name }] },
};

const tell = (line) => console.log(JSON.stringify(line));

/** All pages of a list. */
async function all(list, member) {
    const found = [];
    let cursor;
    do {
        const page = await list(cursor === undefined ? undefined : { cursor });
        found.push(...page[member]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
}

/** Does one step and tells what came of it. `call` is where the versions of the SDK differ. */
async function take(client, call, { server, step, kind, target, arguments: args }) {
    const beginning = (name) => name.startsWith(target);
    const calling = async (options) => {
        const result = await call(client, { name: target, arguments: args }, options);
        const text = result.content.map((block) => block.text ?? "").join("\n");
        if (result.isError) throw new Error(text);
        return text;
    };
    const kinds = {
        tools: async () => (await all((page) => client.listTools(page), "tools")).map((t) => t.name).filter(beginning),
        resources: async () =>
            (await all((page) => client.listResources(page), "resources")).map((r) => r.uri).filter(beginning),
        call: () => calling(),
        progress: async () => {
            const seen = [];
            const onprogress = ({ progress, total, message }) => seen.push([progress, total, message]);
            return { text: await calling({ onprogress }), progress: seen };
        },
        read: async () => (await client.readResource({ uri: target })).contents[0].text,
        prompt: async () => (await client.getPrompt({ name: target, arguments: args })).messages[0].content.text,
    };
    try {
        tell({ server, step, ok: true, got: await kinds[kind]() });
    } catch (error) {
        tell({ server, step, ok: false, got: `${error.name}: ${error.message}` });
    }
}

/** Does everything: the steps, and then those that are done at the same time. */
export async function run(client, transport, call, version) {
    await client.connect(transport);
    tell({ server: "", step: "connect", ok: true, got: version() });
    for (const step of plan.steps) await take(client, call, step);
    await Promise.all(plan.together.map((step) => take(client, call, step)));
    await transport.terminateSession?.();
    await client.close();
}

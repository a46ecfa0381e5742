// What every agent is told: where its model is, where its tools are, and what the user says.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const [model, tools, prompt] = process.argv.slice(2);

// The packages are installed elsewhere: in target/interop.
const installed = createRequire(`${process.env.TIDEGATE_NODE_MODULES}/`);
/** Imports an installed module. */
export const load = (name) => import(pathToFileURL(installed.resolve(name)));

// Somebody has to be named, and nobody looks at the key.
export const [name, apiKey, openai] = ["scripted", "none", `${model}/v1`];

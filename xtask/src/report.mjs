// Reads one leg of a requirement set of the conformance suite and the results of a run of it, and prints lines of
// tab-separated fields for suite.rs:
//
//   scenario  name  standing  ran  passed  failed  warnings  skipped
//   check     scenario  status  id  message            (failures and warnings only)
//
// Usage: node report.mjs SUITE_DIR LEG REVISION RESULTS_DIR

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [suite, leg, revision, results] = process.argv.slice(2);
// The suite's own YAML parser: we need none of our own, and it reads the file as the suite does.
const { parse } = createRequire(join(suite, "package.json"))("yaml");

const set = parse(readFileSync(join(suite, "requirements", `${revision}.yaml`), "utf8"));
const scenarios = [
  ...set[leg].map((name) => ({ name, standing: "scored" })),
  ...(set.not_scored ?? [])
    .filter((entry) => entry.leg === leg)
    .map((entry) => ({ name: entry.scenario, standing: entry.reason })),
];

// A scenario's directory is its name, in the server leg after "server-", and a timestamp. Names may have slashes.
const prefix = leg === "server" ? "server-" : "";
const directories = new Map();
for (const directory of readdirSync(results, { recursive: true })) {
  const match = /^(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/.exec(directory);
  if (match?.[1].startsWith(prefix)) directories.set(match[1].slice(prefix.length), join(results, directory));
}

const read = (directory, file) => {
  const path = directory === undefined ? undefined : join(directory, file);
  return path !== undefined && existsSync(path) ? readFileSync(path, "utf8") : undefined;
};

// The suite does not look at how our client ended, which says whether it came as far as it should have.
const complaint = (directory) => /^error: (.*)$/m.exec(read(directory, "stderr.txt") ?? "")?.[1];

const print = (...fields) => console.log(fields.map((field) => String(field).replace(/\s+/g, " ").trim()).join("\t"));

for (const { name, standing } of scenarios) {
  const directory = directories.get(name);
  const text = read(directory, "checks.json");
  const checks = text === undefined ? [] : JSON.parse(text);
  const errorMessage = leg === "client" ? complaint(directory) : undefined;
  if (errorMessage !== undefined) checks.push({ id: "conformance-client", status: "FAILURE", errorMessage });
  const count = (status) => checks.filter((check) => check.status === status).length;
  const counts = ["SUCCESS", "FAILURE", "WARNING", "SKIPPED"].map(count);
  print("scenario", name, standing, text !== undefined, ...counts);
  for (const check of checks) {
    if (check.status === "FAILURE" || check.status === "WARNING") {
      print("check", name, check.status, check.id, (check.errorMessage ?? check.description ?? "").slice(0, 600));
    }
  }
}

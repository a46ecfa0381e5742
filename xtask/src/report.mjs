// Reads one requirement set of the conformance suite and the results of a run of its server leg, and prints
// lines of tab-separated fields for suite.rs:
//
//   scenario  name  standing  ran  passed  failed  warnings  skipped
//   check     scenario  status  id  message            (failures and warnings only)
//
// Usage: node report.mjs SUITE_DIR REVISION RESULTS_DIR

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [suite, revision, results] = process.argv.slice(2);
// The suite's own YAML parser: we need none of our own, and it reads the file as the suite does.
const { parse } = createRequire(join(suite, "package.json"))("yaml");

const set = parse(readFileSync(join(suite, "requirements", `${revision}.yaml`), "utf8"));
const scenarios = [
  ...set.server.map((name) => ({ name, standing: "scored" })),
  ...(set.not_scored ?? [])
    .filter((entry) => entry.leg === "server")
    .map((entry) => ({ name: entry.scenario, standing: entry.reason })),
];

// A scenario's directory is its name between "server-" and a timestamp.
const directories = new Map();
for (const directory of readdirSync(results)) {
  const match = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/.exec(directory);
  if (match) directories.set(match[1], join(results, directory));
}

const print = (...fields) => console.log(fields.map((field) => String(field).replace(/\s+/g, " ").trim()).join("\t"));

for (const { name, standing } of scenarios) {
  const file = directories.has(name) ? join(directories.get(name), "checks.json") : undefined;
  const ran = file !== undefined && existsSync(file);
  const checks = ran ? JSON.parse(readFileSync(file, "utf8")) : [];
  const count = (status) => checks.filter((check) => check.status === status).length;
  print("scenario", name, standing, ran, count("SUCCESS"), count("FAILURE"), count("WARNING"), count("SKIPPED"));
  for (const check of checks) {
    if (check.status === "FAILURE" || check.status === "WARNING") {
      print("check", name, check.status, check.id, (check.errorMessage ?? check.description ?? "").slice(0, 600));
    }
  }
}

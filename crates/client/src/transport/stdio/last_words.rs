//! What a program wrote before it ended, and which line of it says why.
//!
//! That is hardly ever the last one: Node ends with its version, npm with where its log is, Go with a stack. Each line gets
//! points for looking like a reason, and the best one is quoted; of equals the later, since causes come last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use super::excerpt::excerpt;

/// How many lines are looked at. Stacks are long, and the reason stands before them.
const LINES: usize = 60;

/// The last lines that a child wrote to standard error.
#[derive(Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn push(&self, line: &[u8]) {
        let line = excerpt(line);
        if line.is_empty() {
            return;
        }
        let mut lines = self.lines();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The line that explains the end best, unless nothing was ever written.
    pub(super) fn reason(&self) -> Option<String> {
        let lines = self.lines();
        let mut best = None;
        let mut announced = false;
        for line in lines.iter() {
            let points = if announced { 5 + points(line) } else { points(line) };
            announced = is_announcement(line);
            if best.is_none_or(|(most, _)| points >= most) {
                best = Some((points, line));
            }
        }
        best.map(|(_, line)| line.clone())
    }
}

/// Beginnings of lines that stand around a reason.
const AROUND: &[&str] = &[
    "at ",
    "... ",
    "Node.js v",
    "node:internal",
    "^",
    "{",
    "}",
    "]",
    "File \"",
    "Traceback (most recent",
    "During handling of",
    "The above exception",
    "goroutine ",
    "exit status ",
    "created by ",
    "stack backtrace:",
    "note: run with",
    "hint: ",
    "See 'docker",
    "Run 'docker",
    "npm error A complete log",
    "npm ERR! A complete log",
    "npm notice",
    "npm warn",
    "npm WARN",
    "For more information",
    "For further information",
];

/// What reasons say.
const REASONS: &[&str] = &[
    "not found",
    "no such",
    "no module",
    "no solution",
    "cannot",
    "can't",
    "could not",
    "couldn't",
    "unable",
    "failed",
    "denied",
    "refused",
    "not permitted",
    "not allowed",
    "missing",
    "required",
    "must be",
    "not set",
    "is not in this registry",
    "does not exist",
    "in use",
    "invalid",
    "unknown",
    "unsupported",
    "unexpected",
    "expired",
    "unauthorized",
    "out of memory",
    "no space left",
];

/// How much a line looks like the reason.
fn points(line: &str) -> u32 {
    let line = line.trim();
    if AROUND.iter().any(|around| line.starts_with(around)) {
        return 0;
    }
    let line = line.strip_prefix("Caused by: ").unwrap_or(line);
    let small = line.to_ascii_lowercase();
    let mut points = 1;
    if REASONS.iter().any(|reason| small.contains(reason)) {
        points += 3;
    }
    if names_an_error(line) {
        points += 4;
    } else if small.contains("error") || small.contains("exception") || small.contains("fatal") {
        points += 1;
    }
    points
}

/// `ValueError: …`, `Error [ERR_X]: …`, `java.io.IOException: …`, `panic: …`, `error[E1]: …`.
fn names_an_error(line: &str) -> bool {
    let Some((head, _)) = line.split_once(": ") else { return false };
    let head = head.split_once('[').map_or(head, |(head, _)| head).trim_end();
    let last = head.rsplit(' ').next().unwrap_or_default().to_ascii_lowercase();
    ["error", "exception", "panic", "fatal"].iter().any(|name| last.ends_with(name))
}

/// Rust says where it panicked, and on the next line why.
fn is_announcement(line: &str) -> bool {
    line.contains(" panicked at ") && line.ends_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_explains_is_found() {
        for (printed, want) in [
            (
                // node missing.js
                "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/missing.js'\n    at \
                 Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)\n    at Module._load \
                 (node:internal/modules/cjs/loader:1051:27)\n    at node:internal/main/run_main_module:28:49 {\n  code: \
                 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.20.2",
                "Error: Cannot find module '/srv/missing.js'",
            ),
            (
                "node:internal/modules/esm/resolve:854\n  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);\n        \
                 ^\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs\n    at \
                 packageResolve (node:internal/modules/esm/resolve:854:9) {\n  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js \
                 v20.20.2",
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs",
            ),
            (
                "/srv/a.js:1\nconst x = ;\n          ^\n\nSyntaxError: Unexpected token ';'\n    at internalCompileFunction \
                 (node:internal/vm:76:18)\n\nNode.js v20.20.2",
                "SyntaxError: Unexpected token ';'",
            ),
            (
                // npx -y @nobody/nothing
                "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/@nobody%2fnothing - Not \
                 found\nnpm error 404\nnpm error 404  '@nobody/nothing@*' is not in this registry.\nnpm error 404\nnpm error \
                 404 Note that you can also install from a\nnpm error 404 tarball, folder, http url, or git folder.\nnpm \
                 error A complete log of this run can be found in: /home/ann/.npm/_logs/2026-07-28T12_00_00_000Z-debug-0.log",
                "npm error 404  '@nobody/nothing@*' is not in this registry.",
            ),
            (
                "npm error could not determine executable to run\nnpm error A complete log of this run can be found in: \
                 /home/ann/.npm/_logs/x.log",
                "npm error could not determine executable to run",
            ),
            (
                "Traceback (most recent call last):\n  File \"/srv/a.py\", line 1, in <module>\n    import nowhere\n\
                 ModuleNotFoundError: No module named 'nowhere'",
                "ModuleNotFoundError: No module named 'nowhere'",
            ),
            (
                "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in <module>\n    key = \
                 os.environ[\"API_KEY\"]\n          ~~~~~~~~~~^^^^^^^^^^^\n  File \"<frozen os>\", line 714, in __getitem__\n\
                 KeyError: 'API_KEY'\n",
                "KeyError: 'API_KEY'",
            ),
            ("/usr/bin/python3: No module named nowhere", "/usr/bin/python3: No module named nowhere"),
            (
                "python: can't open file '/srv/a.py': [Errno 2] No such file or directory",
                "python: can't open file '/srv/a.py': [Errno 2] No such file or directory",
            ),
            (
                // uvx nothing-here
                "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because nothing-here was not found in the \
                 package registry and you\n      require nothing-here, we can conclude that your requirements are\n      \
                 unsatisfiable.",
                "╰─▶ Because nothing-here was not found in the package registry and you",
            ),
            (
                "error: Failed to spawn: `nothing`\n  Caused by: No such file or directory (os error 2)",
                "error: Failed to spawn: `nothing`",
            ),
            ("sh: 1: foo: not found", "sh: 1: foo: not found"),
            ("starting\nbash: line 1: foo: command not found\nbye", "bash: line 1: foo: command not found"),
            (
                "Unable to find image 'nobody/nothing:latest' locally\ndocker: Error response from daemon: pull access denied \
                 for nobody/nothing, repository does not exist or may require 'docker login'\n\nRun 'docker run --help' for \
                 more information",
                "docker: Error response from daemon: pull access denied for nobody/nothing, repository does not exist or may \
                 require 'docker login'",
            ),
            (
                "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds: the len is 3 but the index is 99\nnote: run \
                 with `RUST_BACKTRACE=1` environment variable to display a backtrace",
                "index out of bounds: the len is 3 but the index is 99",
            ),
            (
                "Exception in thread \"main\" java.lang.IllegalStateException: cannot start\n\tat Main.main(Main.java:5)\nCaused \
                 by: java.io.FileNotFoundException: config.yml (No such file or directory)\n\tat \
                 java.base/java.io.FileInputStream.open0(Native Method)\n\t... 12 more",
                "Caused by: java.io.FileNotFoundException: config.yml (No such file or directory)",
            ),
            (
                "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t\
                 /srv/main.go:7 +0x1d\nexit status 2",
                "panic: runtime error: index out of range [5] with length 3",
            ),
            (
                "2026/07/28 12:00:00 listen tcp :80: bind: permission denied",
                "2026/07/28 12:00:00 listen tcp :80: bind: permission denied",
            ),
            ("first\nsecond\n\n", "second"),
        ] {
            let words = LastWords::default();
            printed.lines().for_each(|line| words.push(line.as_bytes()));
            assert_eq!(words.reason().as_deref(), Some(want));
        }
        assert_eq!(LastWords::default().reason(), None);
    }
}

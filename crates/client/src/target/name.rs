//! Short names for logs.

use url::Url;

/// The host, with the port where one is given, because several servers on one machine differ only in that.
pub(super) fn of_url(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// What the program runs if it is a launcher, else its file name.
pub(super) fn of_command(program: &str, args: &[String]) -> String {
    let own = stem(program);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let name = launched(&own, &args).filter(|name| !name.is_empty()).unwrap_or(own);
    // Names go into log lines and onto terminals.
    name.chars().filter(|c| !c.is_control()).collect()
}

fn launched(program: &str, args: &[&str]) -> Option<String> {
    match (program, args) {
        // Windows needs a shell to find npx.cmd.
        ("cmd", [flag, program, rest @ ..]) if flag.eq_ignore_ascii_case("/c") => {
            Some(of_command(program, &rest.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>()))
        }
        ("npx" | "bunx" | "pnpx", args) => package(args).map(unversioned),
        ("npm", ["exec" | "x", rest @ ..])
        | ("bun", ["x", rest @ ..])
        | ("pnpm" | "yarn", ["dlx" | "exec", rest @ ..]) => package(rest).map(unversioned),
        ("uvx", args) | ("pipx", ["run", args @ ..]) | ("uv", ["tool", "run", args @ ..]) => {
            positional(args, UV_VALUES).map(unversioned)
        }
        ("uv", ["run", args @ ..]) => {
            let at = first_positional(args, UV_VALUES)?;
            Some(of_command(args[at], &args[at + 1..].iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>()))
        }
        ("docker" | "podman" | "nerdctl", args) => {
            let run = args.iter().position(|arg| *arg == "run")?;
            positional(&args[run + 1..], DOCKER_VALUES).map(image)
        }
        ("python" | "python3" | "py", args) => match args.iter().position(|arg| *arg == "-m") {
            Some(at) => args.get(at + 1).map(|module| (*module).to_owned()),
            None => positional(args, &["-X", "-W"]).map(stem),
        },
        ("node" | "deno" | "bun" | "tsx" | "ruby" | "java" | "dotnet", args) => {
            let args = if args.first() == Some(&"run") { &args[1..] } else { args };
            positional(args, &["-r", "--require", "--import", "--loader", "-jar"]).map(stem)
        }
        _ => None,
    }
}

/// Options of `uv` and `uvx` that have a value as their next word.
const UV_VALUES: &[&str] = &[
    "--from",
    "--with",
    "--python",
    "-p",
    "--directory",
    "--project",
    "--index",
    "--index-url",
    "--env-file",
    "--with-editable",
    "--with-requirements",
    "--refresh-package",
    "--spec",
    "--extra-index-url",
];

/// Options of `docker run` that have a value as their next word.
const DOCKER_VALUES: &[&str] = &[
    "-e",
    "--env",
    "--env-file",
    "-v",
    "--volume",
    "--mount",
    "--name",
    "--network",
    "--net",
    "-p",
    "--publish",
    "-w",
    "--workdir",
    "-u",
    "--user",
    "--entrypoint",
    "--platform",
    "--pull",
    "-h",
    "--hostname",
    "--add-host",
    "-l",
    "--label",
    "-m",
    "--memory",
    "--cpus",
    "--gpus",
    "--cap-add",
    "--cap-drop",
    "--security-opt",
    "--device",
    "--tmpfs",
    "--ulimit",
    "--runtime",
    "--restart",
    "--log-driver",
    "--dns",
];

/// The package that `npx` runs: the one given with `-p`, else the first word that is no option.
fn package<'a>(args: &[&'a str]) -> Option<&'a str> {
    for (at, arg) in args.iter().enumerate() {
        match *arg {
            "-p" | "--package" => return args.get(at + 1).copied(),
            arg if arg.starts_with("--package=") => return arg.split_once('=').map(|(_, name)| name),
            arg if arg.starts_with('-') => {}
            arg => return Some(arg),
        }
    }
    None
}

fn positional<'a>(args: &[&'a str], with_value: &[&str]) -> Option<&'a str> {
    first_positional(args, with_value).map(|at| args[at])
}

/// Where the first word is that is neither an option nor the value of one.
fn first_positional(args: &[&str], with_value: &[&str]) -> Option<usize> {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        if !arg.starts_with('-') {
            return Some(at);
        }
        at += if with_value.contains(arg) { 2 } else { 1 };
    }
    None
}

/// `@scope/name@1.2` as `@scope/name`, `name==1.2` as `name`.
fn unversioned(package: &str) -> String {
    let package = package.split("==").next().unwrap_or(package);
    match package.char_indices().skip(1).find(|(_, c)| *c == '@') {
        Some((at, _)) => package[..at].to_owned(),
        None => package.to_owned(),
    }
}

/// `ghcr.io/github/github-mcp-server:1` as `github-mcp-server`.
fn image(reference: &str) -> String {
    let last = reference.rsplit('/').next().unwrap_or(reference);
    last.split(['@', ':']).next().unwrap_or(last).to_owned()
}

/// The file name of a path of either kind of system, without the ending that makes it a program or a script.
fn stem(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path);
    match file.rsplit_once('.') {
        Some((stem, "exe" | "cmd" | "bat" | "js" | "mjs" | "cjs" | "ts" | "py" | "rb" | "jar" | "dll"))
            if !stem.is_empty() =>
        {
            stem.to_owned()
        }
        _ => file.to_owned(),
    }
}

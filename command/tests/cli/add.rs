//! add: what it writes, what it finds out about the server, and its exit code.

use crate::rig::{CANNED, Done, Folder, Running, TIDEGATE, command, tidegate_in, until};
use crate::server;

const FILE: &str = "tidegate.toml";

fn run(folder: &Folder, args: &[&str]) -> Done {
    tidegate_in(folder, args, "")
}

/// A folder with an empty configuration, and the canned server in a file.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write(FILE, "");
    folder.write("canned.sh", CANNED);
    folder
}

#[test]
fn a_server_is_tried_and_what_it_offers_is_said() {
    let folder = folder();
    let tools = r#"TOOLS=[{"name":"now","inputSchema":{"type":"object"}},{"name":"zones","inputSchema":{"type":"object"}}]"#;
    let script = folder.path().join("canned.sh").display().to_string();
    let done = run(&folder, &["add", "time", "--env", tools, "--", "sh", &script]).exits(0);
    assert_eq!((&*done.out, &*done.err), ("Added time: 2 tools (saved in tidegate.toml)\n", ""));
    let (url, _) = server::start();
    assert_eq!(
        run(&folder, &["add", "web", &url]).exits(0).out,
        "Added web: 5 tools (saved in tidegate.toml)\n"
    );
    let done = run(&folder, &["add", "demo", "--builtin", "demo"]).exits(0);
    assert_eq!(done.out, "Added demo: 4 tools (saved in tidegate.toml)\n");
    // What was added can be called by its name.
    assert_eq!(run(&folder, &["call", "demo", "add", "a=1", "b=2"]).exits(0).out, "{\"sum\":3.0}\n");
}

#[test]
fn a_server_that_fails_is_added_all_the_same_and_scripts_notice() {
    let folder = folder();
    let dying = "echo first >&2; echo 'Error: no API key' >&2; exit 7";
    for (name, args, out, err) in [
        (
            "gone",
            &["--", "no-such-program"][..],
            "Added gone, but it did not start: cannot start \"no-such-program\": no such program in PATH (E201)\n",
            "  It is saved in tidegate.toml. Fix it there, or remove it with: tidegate remove gone\n",
        ),
        (
            "dies",
            &["--", "sh", "-c", dying],
            "Added dies, but it did not start: ",
            "  The server wrote to standard error:\n  | first\n  | Error: no API key\n",
        ),
        (
            "refused",
            &["http://127.0.0.1:1/mcp"],
            "Added refused, but it cannot be reached: ",
            "tidegate remove refused",
        ),
    ] {
        let done = run(&folder, &[&["add", name], args].concat()).exits(3);
        assert!(done.out.starts_with(out), "{done:?}");
        assert!(done.err.contains(err), "{done:?}");
        assert!(folder.read(FILE).contains(&format!("[servers.{name}]")), "{}", folder.read(FILE));
    }
    let done = run(&folder, &["add", "later", "--no-connect", "--", "no-such-program"]).exits(0);
    assert_eq!((&*done.out, &*done.err), ("Added later to tidegate.toml\n", ""));
}

#[test]
fn a_server_that_takes_too_long_says_so() {
    let folder = folder();
    folder.write(FILE, "[defaults]\nstart_timeout = \"1s\"\n");
    let done = run(&folder, &["add", "slow", "--", "sleep", "600"]).exits(3);
    let said = "Added slow, but it is not ready: The server is still starting after 1s (start_timeout)";
    assert!(done.out.starts_with(said), "{done:?}");
    assert!(done.err.contains("raise start_timeout under [servers.slow] in tidegate.toml"), "{done:?}");
}

#[test]
fn variables_that_are_not_set_are_named_at_once() {
    let folder = folder();
    let header = "Authorization: Bearer ${TIDEGATE_TEST_TOKEN}";
    let done =
        run(&folder, &["add", "web", "http://127.0.0.1:1/${TIDEGATE_TEST_PATH}", "-H", header]).exits(0);
    let said = "Added web to tidegate.toml. It was not tried: the environment variables TIDEGATE_TEST_";
    assert!(done.out.starts_with(said) && done.out.contains("TIDEGATE_TEST_TOKEN"), "{done:?}");
    assert_eq!(
        done.err,
        "  Set them, or put them in .env beside tidegate.toml. Then run: tidegate check --connect\n"
    );
    // Others are none the worse for it, and it is known by its name.
    assert_eq!(run(&folder, &["add", "demo", "--builtin", "demo"]).exits(0).err, "");
    let done = run(&folder, &["tools", "web"]).exits(2);
    assert!(
        done.err.contains("error: the server \"web\" is disabled: the environment variables "),
        "{done:?}"
    );
    let checked = run(&folder, &["check"]).exits(0).out;
    assert!(checked.contains("is valid: 2 servers, 1 disabled, listening"), "{checked}");
    assert_eq!(run(&folder, &["check", "--json"]).exits(0).json()["disabled"][0]["name"], "web");
    let doctor = run(&folder, &["doctor"]).exits(0).out;
    assert!(doctor.contains("- web  (from tidegate.toml)\n    · disabled: the environment var"), "{doctor}");
    assert!(doctor.ends_with("2 servers: 1 works, 1 not checked\n"), "{doctor}");
    assert!(checked.ends_with(
        "\n2 servers, 1 disabled: no problems found. To try them, run tidegate check --connect\n"
    ));
    // A file beside the configuration is as good as the environment.
    folder.write(".env", "TIDEGATE_TEST_TOKEN=hush\nTIDEGATE_TEST_PATH=mcp\n");
    let done =
        run(&folder, &["add", "web", "--replace", "http://127.0.0.1:1/${TIDEGATE_TEST_PATH}", "-H", header]);
    assert!(done.exits(3).out.contains("it cannot be reached"));
    let folder = self::folder();
    let done = run(&folder, &["add", "--no-connect", "also", "http://127.0.0.1:1/", "-H", header]).exits(0);
    assert!(done.err.starts_with("note: \"also\" needs TIDEGATE_TEST_TOKEN, which is not set."), "{done:?}");
    // One with a default needs nobody to set it.
    let folder = self::folder();
    let done =
        run(&folder, &["add", "x", "--env", "A=${TIDEGATE_TEST_A:-b}", "--", "no-such-program"]).exits(3);
    assert!(done.out.contains("it did not start"), "{done:?}");
}

#[test]
fn headers_are_written_as_everywhere_else() {
    let folder = folder();
    let add = |name: &str, header: &str| {
        run(&folder, &["add", "--no-connect", name, "http://127.0.0.1:1/", "--header", header])
    };
    add("new", "X-Auth: Bearer a=b:c").exits(0);
    let old = add("old", "X-A=b:c").exits(0);
    assert!(
        old.err.contains("note: --header NAME=VALUE is deprecated: write --header 'X-A: ...'"),
        "{old:?}"
    );
    let text = folder.read(FILE);
    assert!(text.contains("X-Auth = \"Bearer a=b:c\"") && text.contains("X-A = \"b:c\""), "{text}");
    let wrong = add("wrong", "hush").exits(2);
    assert!(wrong.err.contains("--header expects 'Name: value'") && !wrong.err.contains("hush"), "{wrong:?}");
}

#[test]
fn ctrl_c_keeps_what_was_written() {
    let folder = folder();
    let mut add = command(folder.path());
    add.args(["add", "slow", "--", "sh", "-c", "echo here > started; sleep 600"]);
    let running = Running::start(add);
    until(|| folder.read("started") == "here\n");
    running.signal("INT");
    let done = running.wait().exits(130);
    assert_eq!(done.out, "Added slow to tidegate.toml; trying it was cancelled\n");
    assert!(folder.read(FILE).contains("[servers.slow]"));
}

#[test]
fn a_configuration_with_problems_is_not_tried() {
    let folder = folder();
    folder.write(FILE, "[servers.bad]\nurl = \"nothing\"\n");
    let args = ["add", "demo", "--", TIDEGATE, "serve", "--demo", "--stdio"];
    let done = run(&folder, &args).exits(2);
    assert!(done.out.contains("It was not tried, because the configuration has problems"), "{done:?}");
    assert!(done.err.contains("servers.bad.url"), "{done:?}");
}

#[test]
fn a_second_memory_has_a_prefix() {
    let folder = folder();
    run(&folder, &["add", "first", "--builtin", "memory"]).exits(0);
    run(&folder, &["add", "second", "--builtin", "memory"]).exits(0);
    let json = run(&folder, &["check", "--json"]).exits(0).json();
    let prefix = |at: usize| (json["servers"][at]["name"].clone(), json["servers"][at]["prefix"].clone());
    assert_eq!(prefix(0), ("first".into(), "".into()), "{json}");
    assert_eq!(prefix(1), ("second".into(), "second_".into()), "{json}");
}

#[test]
fn a_forgotten_mark_before_a_command_line_is_told() {
    let folder = folder();
    for args in [&["add", "q", "npx", "-y", "foo"][..], &["add", "q", "npx", "foo"]] {
        let done = run(&folder, args).exits(2);
        let line = args[2..].join(" ");
        let said =
            format!("error: the -- before the command line is missing\n  Write: tidegate add q -- {line}\n");
        assert_eq!(done.err, said);
    }
    assert_eq!(folder.read(FILE), "", "nothing was written");
}

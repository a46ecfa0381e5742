//! What is said about a wrong configuration: where, what, and never a value.

use crate::parse;

#[track_caller]
fn check(text: &str, expected: &str) {
    let error = parse(text).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("/srv/app/tidegate.toml:"), "{error}");
    assert!(error.contains(expected), "{text}\nsays: {error}");
    assert!(!error.contains("hush"), "{text}\nsays: {error}");
}

#[test]
fn fields_that_do_not_exist() {
    check("\n\nlissen = \"a\"", "toml:3:1: there is no field \"lissen\"; did you mean \"listen\"?");
    check(
        "[servers.x]\ncommand = \"a\"\n  tiemout = \"hush\"",
        "toml:3:3: servers.x: there is no field \"tiemout\"; did you mean \"timeout\"?",
    );
    check(
        "[tools]\nfavorites = []",
        "2:1: tools: there is no field \"favorites\"; did you mean \"favourites\"?",
    );
    check("[defaults]\nurl = \"hush\"", "2:1: defaults: there is no field \"url\"; there are era, timeout,");
    check(
        "[servers.x]\ncommand = \"a\"\nbreaker = { failure = 5 }",
        "3:13: servers.x.breaker: there is no field \"failure\"; did you mean \"failures\"?",
    );
    check(
        "[servers.x]\ncommand = \"a\"\n[servers.x.tools.t]\nnam = \"hush\"",
        "4:1: servers.x.tools.t: there is no field \"nam\"; did you mean \"name\"?",
    );
}

#[test]
fn values_of_the_wrong_type() {
    check("listen = 5", "1:10: listen: it must be a text in quotes, and is a whole number");
    check(
        "[servers.x]\ncommand = 5",
        "2:11: servers.x.command: it must be a program, as a text or as a list of texts",
    );
    check(
        "[servers.x]\nenabled = \"hush\"",
        "2:11: servers.x.enabled: it must be true or false, and is a text",
    );
    check("[servers.x]\nargs = \"hush\"", "servers.x.args: it must be a list in brackets, and is a text");
    check("[servers.x]\nargs = [5]", "2:9: servers.x.args: it must be a text in quotes");
    check("[servers.x]\nenv = [\"hush\"]", "servers.x.env: it must be a table, and is a list");
    check(
        "[servers.x]\ntimeout = 30",
        "servers.x.timeout: it must be a time with its unit in quotes, such as",
    );
    check(
        "[servers.x]\nera = \"legcy\"",
        "it must be one of \"auto\", \"legacy\", \"modern\"; did you mean \"legacy\"?",
    );
    check(
        "[servers.x]\ntransport = \"${TOKEN}\"",
        "2:13: servers.x.transport: it must be one of \"http\", \"sse\"",
    );
    check(
        "[servers.x]\nmax_sessions = -1",
        "servers.x.max_sessions: it must be a whole number that is not negative",
    );
    check(
        "[servers.x]\nbreaker = \"hush\"",
        "servers.x.breaker: it must be true, false or a table, and is a text",
    );
    check("servers = []", "1:11: servers: it must be a table, and is a list");
    check("[servers]\nx = \"hush\"", "2:5: servers.x: it must be a table, and is a text");
    check("[[servers.x]]\ncommand = \"a\"", "servers.x: it must be a table, and is a list");
    check("tools = [\"all\"]", "1:1: tools: it must be a table, and is a list");
    check("[servers.x]\ncommand = \"a\"\ntools.t = [\"hush\"]", "servers.x.tools.t: it must be a table");
    check("[tools]\npage_bytes = -5", "a number of bytes cannot be negative");
    check("[tools]\nname_length = 65", "tools.name_length: it must be 24 to 64");
    check("[tools]\nname_length = 8", "tools.name_length: it must be 24 to 64");
}

#[test]
fn what_is_no_toml() {
    check("a = 1\nlisten = ", "2:10: this is not TOML: ");
    check("key = \"hush", "this is not TOML: ");
    check("[servers.x]\ncommand = \"a\"\n[servers.x]\nurl = \"hush\"", "3:10: this name is there twice");
    check("[servers.x]\nurl = \"hush\"\nurl = \"hush\"", "3:1: this name is there twice");
    check(r#"{"mcpServers": {"x": {"command": "hush"}}}"#, "1:1: this is not TOML");
}

#[test]
fn variables_that_are_not_set() {
    let variable = "the environment variable NONE is not set: set it, or write ${NONE:-…} with a value";
    check(
        "[servers.x]\nurl = \"a\"\nheaders.A = \"${TOKEN}${NONE}\"",
        &format!("3:9: servers.x.headers.A: {variable}"),
    );
    check("[servers.x]\ncommand = \"a ${NONE}\"", &format!("2:1: servers.x.command: {variable}"));
    check("[servers.x]\ncommand = [\"a\", \"${NONE}\"]", &format!("2:1: servers.x.command: {variable}"));
    check("[servers.x]\nargs = [\"${NONE}\"]", &format!("2:1: servers.x.args: {variable}"));
    check(
        "[servers.x]\nurl = \"${file:/does/not/exist}\"",
        "servers.x.url: the file /does/not/exist cannot be read",
    );
    check("[servers.x]\nurl = \"${hush hush}\"", "servers.x.url: there is a ${…} in it that is neither");
}

#[test]
fn what_a_server_is() {
    check(
        "[servers.x]",
        "1:10: servers.x: it needs a command (a program to start), a url (an address) or a builtin",
    );
    check("[servers.x]\ncommand = \"a\"\nurl = \"hush\"", "servers.x: it has command and url, and only one");
    check(
        "[servers.x]\ncommand = \"a\"\nurl = \"hush\"\nbuiltin = \"demo\"",
        "it has command and url and builtin, and only one of them can be meant",
    );
    check(
        "[servers.x]\nbuiltin = \"dem\"",
        "there is no such server in Tidegate, only demo, memory; did you mean \"demo\"?",
    );
    check("[servers.x]\ncommand = \"\"", "servers.x.command: it is empty, so name a program");
    check("[servers.x]\ncommand = []", "servers.x.command: it is empty, so name a program");
    check("[servers.x]\ncommand = \"a 'hush\"", "servers.x.command: the command line ends inside quotes");
    check(
        "[servers.x]\ncommand = \"https://example.com/hush\"",
        "it is an address, and a command is a program",
    );
    check("[servers.x]\nurl = \"hush\"", "2:1: servers.x.url: it is not a valid URL");
    check("[servers.x]\nurl = \"ftp://hush\"", "servers.x.url: it must start with http:// or https://");
    check(
        "[servers.x]\nurl = \"http://a\"\nheaders = { \"a b\" = \"hush\" }",
        "3:13: servers.x.headers.\"a b\": this is no name",
    );
    check(
        "[servers.x]\nurl = \"http://a\"\nheaders = { a = \"${BREAK}\" }",
        "characters that no header may hold",
    );
    check(
        "[servers.x]\nurl = \"http://a\"\nheaders = { a = \"1\", A = \"2\" }",
        "this header is there twice",
    );
    check("[servers.x]\ncommand = \"a\"\nenv = { \"a=b\" = \"hush\" }", "this is no name for a variable");
    check("[servers.x]\ncommand = \"a\"\nenv = { a = \"hush\\u0000\" }", "it holds a NUL character");
    check(
        "[servers.x]\ncommand = \"a\"\nenv_file = \"/does/not/exist\"",
        "servers.x.env_file: the file /does/not/exist",
    );
    check("[servers.x]\ncommand = \"a\"\ncwd = \"\"", "servers.x.cwd: it is empty, and must be a path");
    check(
        "[servers.\"a b\"]\ncommand = \"a\"",
        "1:10: servers.\"a b\": the name of a server may hold only letters",
    );
    check(&format!("[servers.{}]\ncommand = \"a\"", "a".repeat(65)), "at most 64 characters");
    check("[servers.\"\"]\ncommand = \"a\"", "a server needs a name");
}

#[test]
fn what_a_server_says() {
    let x = |field: &str| format!("[servers.x]\ncommand = \"a\"\n{field}");
    for (field, expected) in [
        ("timeout = \"soon\"", "3:1: servers.x.timeout: it must be a time with its unit, such as"),
        ("timeout = \"0s\"", "servers.x.timeout: it must be longer than nothing"),
        (
            "timeout = \"5m\"\nmax_timeout = \"1m\"",
            "4:1: servers.x.max_timeout: it must not be shorter than timeout",
        ),
        ("idle = \"always\"", "servers.x.idle: it must be a time"),
        (
            "max_message = \"5 apples\"",
            "servers.x.max_message: it must be a number of bytes, or a text such as",
        ),
        ("max_sessions = 0", "servers.x.max_sessions: it must be 1 or more"),
        ("allow = [\"a\", \"b[\"]", "3:1: servers.x.allow: pattern number 2 is no glob"),
        ("deny = [\"{a\"]", "servers.x.deny: pattern number 1 is no glob"),
        ("prefix = \"a b\"", "servers.x.prefix: it may hold only letters, digits"),
        (
            "breaker = { failures = 3, percent = 10 }",
            "3:13: servers.x.breaker.failures: it counts failures in a row",
        ),
        ("breaker = { percent = 101 }", "servers.x.breaker.percent: it must be from 1 to 100"),
        ("breaker = { failures = 0 }", "servers.x.breaker.failures: it must be 1 or more"),
        ("breaker = { open_for = \"x\" }", "servers.x.breaker.open_for: it must be a time"),
        ("retry = { multiplier = 0.5 }", "servers.x.retry.multiplier: it must be 1 or more"),
        ("retry = { jitter = 2 }", "servers.x.retry.jitter: it must be from 0 to 1"),
        ("tools.t.name = \"a b\"", "servers.x.tools.t.name: it may hold only letters"),
        ("tools.t.name = \"\"", "servers.x.tools.t.name: it is empty"),
        ("tools.t.timeout = \"x\"", "servers.x.tools.t.timeout: it must be a time"),
        (
            "tools.t.name = \"u\"\ntools.v.name = \"u\"",
            "the tool \"t\" of the server \"x\" has this name already",
        ),
    ] {
        check(&x(field), expected);
    }
}

#[test]
fn the_top_of_the_file() {
    for (text, expected) in [
        ("listen = \"8765\"", "1:1: listen: it must be a host and a port"),
        ("listen = \"::1:80\"", "listen: it must be a host and a port"),
        ("listen = \"localhost:99999\"", "listen: it must be a host and a port"),
        ("path = \"mcp\"", "path: it must be the path of an address"),
        ("drain = \"x\"", "drain: it must be a time"),
        ("state_dir = \"\"", "state_dir: it is empty, and must be a path"),
        ("allow_origins = [\"example.com\"]", "allow_origins: an origin is what browsers send"),
        ("allow_origins = [\"https://example.com/\"]", "allow_origins: an origin is what browsers send"),
        ("allow_origins = [\"https://example.com:443\"]", "allow_origins: an origin is what browsers send"),
        ("allow_origins = [\"https://me@example.com\"]", "allow_origins: an origin is what browsers send"),
        ("allow_hosts = [\"https://example.com\"]", "allow_hosts: a host is only a name"),
        ("tools.favourites = [\"[\"]", "1:7: tools.favourites: pattern number 1 is no glob"),
    ] {
        check(text, expected);
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = "[defaults]\ntimeout = \"x\"\n[servers.a]\ncommand = \"a\"\nidle = \"x\"\n[servers.b]\n";
    let error = parse(text).unwrap_err();
    let problems: Vec<_> = error
        .problems()
        .iter()
        .map(|problem| (problem.at.unwrap(), problem.field.as_deref().unwrap()))
        .collect();
    assert_eq!(problems, [((2, 1), "defaults.timeout"), ((5, 1), "servers.a.idle"), ((6, 10), "servers.b")]);
    assert_eq!(error.to_string().lines().count(), 3);
    let text = "[servers.a]\ncommand = \"a\"\nenv = { A = \"${ONE}\", B = \"${TWO}\" }\n[servers.b]\nurl = \"${THREE}\"";
    assert_eq!(parse(text).unwrap_err().problems().len(), 3);
}

#[test]
fn columns_count_characters() {
    check(
        "servers = { \"é\" = { command = \"ü\" , x = 1 } }",
        "1:37: servers.\"é\": there is no field \"x\"",
    );
}

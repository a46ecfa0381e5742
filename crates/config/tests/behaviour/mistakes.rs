//! What is said about a wrong configuration: where, what, and never a value.

use crate::{parse, wrong as check};

#[test]
fn fields_that_do_not_exist() {
    check("\n\nlissen = \"a\"", "toml:3:1: unknown field \"lissen\"; did you mean \"listen\"?");
    check(
        "[servers.x]\ncommand = \"a\"\n  tiemout = \"hush\"",
        "toml:3:3: servers.x: unknown field \"tiemout\"; did you mean \"timeout\"?",
    );
    check("[tools]\nfavorites = []", "2:1: tools: unknown field \"favorites\"; did you mean \"favourites\"?");
    check(
        "[defaults]\nurl = \"hush\"",
        "2:1: defaults: unknown field \"url\"; known fields are env, era, timeout,",
    );
    check(
        "[servers.x]\ncommand = \"a\"\nbreaker = { failure = 5 }",
        "3:13: servers.x.breaker: unknown field \"failure\"; did you mean \"failures\"?",
    );
    check(
        "[servers.x]\ncommand = \"a\"\n[servers.x.tools.t]\nnam = \"hush\"",
        "4:1: servers.x.tools.t: unknown field \"nam\"; did you mean \"name\"?",
    );
}

#[test]
fn values_of_the_wrong_type() {
    check("listen = true", "1:10: listen: must be ");
    check("path = 5", "1:8: path: must be a string in quotes, not a whole number");
    check(
        "[servers.x]\ncommand = 5",
        "2:11: servers.x.command: must be a program, as a string or as a list of strings",
    );
    check("[servers.x]\nenabled = \"hush\"", "2:11: servers.x.enabled: must be true or false, not a string");
    check("[servers.x]\nargs = \"hush\"", "servers.x.args: must be a list in [brackets], not a string");
    check("[servers.x]\nargs = [5]", "2:9: servers.x.args: must be a string in quotes");
    check("[servers.x]\nenv = [\"hush\"]", "servers.x.env: must be a table, not a list");
    check("[servers.x]\ntimeout = 30", "servers.x.timeout: must be a time with a unit in quotes, such as");
    check(
        "[servers.x]\nera = \"legcy\"",
        "must be one of \"auto\", \"legacy\", \"modern\"; did you mean \"legacy\"?",
    );
    check(
        "[servers.x]\ntransport = \"${TOKEN}\"",
        "2:13: servers.x.transport: must be one of \"http\", \"sse\"",
    );
    check("[servers.x]\ninstances = 3", "2:13: servers.x.instances: must be one of \"per-user\", ");
    check("[servers.x]\nmax_sessions = -1", "servers.x.max_sessions: must be a positive whole number or 0");
    check(
        "[servers.x]\nbreaker = \"hush\"",
        "servers.x.breaker: must be true, false or a table, not a string",
    );
    check("servers = []", "1:11: servers: must be a table, not a list");
    check("[servers]\nx = \"hush\"", "2:5: servers.x: must be a table, not a string");
    check("[[servers.x]]\ncommand = \"a\"", "servers.x: must be a table, not a list");
    check("tools = [\"all\"]", "1:1: tools: must be a table, not a list");
    check("[servers.x]\ncommand = \"a\"\ntools.t = [\"hush\"]", "servers.x.tools.t: must be a table");
    check("[tools]\npage_bytes = -5", "must not be negative");
    check("max_connections = 0", "1:1: max_connections: must be from 1 to 1000000");
    check("max_calls = 5000000", "1:1: max_calls: must be from 1 to 1000000");
    check("call_timeout = \"0s\"", "1:1: call_timeout: must be longer than 0");
    check("max_result = \"1MiB\"", "1:1: max_result: must be at least 8388608, twice tools.page_bytes");
    check(
        "[tools]\npage_bytes = \"33MiB\"",
        "2:1: tools.page_bytes: must be at most 33554432, half of max_result",
    );
    check("[tools]\nname_length = 65", "tools.name_length: must be from 24 to 64");
    check("[tools]\nname_length = 8", "tools.name_length: must be from 24 to 64");
}

#[test]
fn what_is_no_toml() {
    check("a = 1\nlisten = ", "2:10: this is not valid TOML: ");
    check("key = \"hush", "this is not valid TOML: ");
    check("[servers.x]\ncommand = \"a\"\n[servers.x]\nurl = \"hush\"", "3:10: this name is used twice");
    check("[servers.x]\nurl = \"hush\"\nurl = \"hush\"", "3:1: this name is used twice");
    check(r#"{"mcpServers": {"x": {"command": "hush"}}}"#, "1:1: this is not valid TOML");
}

#[test]
fn references_outside_of_servers_must_be_good() {
    let unset = "the environment variable NONE is not set; set it, or write ${NONE:-default}";
    check("listen = \"${NONE}\"", &format!("1:1: listen: {unset}"));
    check("[memory]\nstore = \"${NONE}\"", &format!("2:1: memory.store: {unset}"));
    check("[defaults]\nenv = { A = \"${NONE}\" }", &format!("2:9: defaults.env.A: {unset}"));
    check(
        "[memory.models.x]\nkind = \"openai\"\napi_key = \"${file:/does/not/exist}\"",
        "memory.models.x.api_key: the file /does/not/exist cannot be read",
    );
    check("[servers.x]\nurl = \"${hush hush}\"", "servers.x.url: contains a ${…} that is not ${NAME}");
}

#[test]
fn what_cannot_be_filled_in_is_wrong_in_no_other_way() {
    for text in [
        "listen = \"${NONE}\"",
        "path = \"${NONE}\"",
        "allow_hosts = [\"${NONE}\"]",
        "max_message = \"${NONE}\"",
        "drain = \"${NONE}\"",
        "errors = \"${NONE}\"",
        "sealing_keys = [\"${NONE}\"]",
        "[tools]\npin = \"${NONE}\"",
        "[tools]\nfavourites = [\"${NONE}[\"]",
        "[defaults]\ntimeout = \"${NONE}\"\n[servers.x]\ncommand = \"a\"",
        "[memory]\nstore = \"${NONE}\"",
        "[servers.x]\nurl = \"${hush hush}\"",
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.problems().len(), 1, "{text}: {error}");
    }
}

#[test]
fn what_a_server_is() {
    check("[servers.x]", "1:10: servers.x: needs a command (a program to start), a url or a builtin");
    check("[servers.x]\ncommand = \"a\"\nurl = \"hush\"", "servers.x: has command and url; keep one of them");
    check(
        "[servers.x]\ncommand = \"a\"\nurl = \"hush\"\nbuiltin = \"demo\"",
        "has command and url and builtin; keep one of them",
    );
    check(
        "[servers.x]\nbuiltin = \"dem\"",
        "Tidegate has no built-in server of this name, only demo, memory; did you mean \"demo\"?",
    );
    check("[servers.x]\ncommand = \"\"", "servers.x.command: must be a program, and is empty");
    check("[servers.x]\ncommand = []", "servers.x.command: must be a program, and is empty");
    check("[servers.x]\ncommand = \"a 'hush\"", "servers.x.command: the command line ends inside quotes");
    check("[servers.x]\ncommand = \"https://example.com/hush\"", "is a URL, not a program");
    check("[servers.x]\nurl = \"hush\"", "2:1: servers.x.url: is not a valid URL");
    check("[servers.x]\nurl = \"ftp://hush\"", "servers.x.url: must start with http:// or https://");
    check(
        "[servers.x]\nurl = \"http://a\"\nheaders = { \"a b\" = \"hush\" }",
        "3:13: servers.x.headers.\"a b\": this is not a valid name",
    );
    check(
        "[servers.x]\nurl = \"http://a\"\nheaders = { a = \"${BREAK}\" }",
        "characters that are not allowed in a header",
    );
    check(
        "[servers.x]\nurl = \"http://a\"\nheaders = { a = \"1\", A = \"2\" }",
        "this header is given twice",
    );
    check(
        "[servers.x]\ncommand = \"a\"\nenv = { \"a=b\" = \"hush\" }",
        "this is not a valid name for an environment variable",
    );
    check("[servers.x]\ncommand = \"a\"\nenv = { a = \"hush\\u0000\" }", "must not contain a NUL character");
    check("[servers.x]\ncommand = \"a\"\ncwd = \"\"", "servers.x.cwd: must be a path, and is empty");
    check(
        "[servers.\"a b\"]\ncommand = \"a\"",
        "1:10: servers.\"a b\": a server name may contain only letters",
    );
    check(&format!("[servers.{}]\ncommand = \"a\"", "a".repeat(65)), "at most 64 characters");
    check("[servers.\"\"]\ncommand = \"a\"", "a server needs a name");
}

#[test]
fn what_a_server_says() {
    let x = |field: &str| format!("[servers.x]\ncommand = \"a\"\n{field}");
    for (field, expected) in [
        ("timeout = \"soon\"", "3:1: servers.x.timeout: must be a time with a unit, such as"),
        ("timeout = \"0s\"", "servers.x.timeout: must be longer than 0"),
        (
            "timeout = \"5m\"\nmax_timeout = \"1m\"",
            "4:1: servers.x.max_timeout: must not be shorter than timeout",
        ),
        ("idle = \"always\"", "servers.x.idle: must be a time"),
        (
            "max_message = \"5 apples\"",
            "servers.x.max_message: must be a number of bytes, or a string such as",
        ),
        ("max_sessions = 0", "servers.x.max_sessions: must be 1 or more"),
        ("allow = [\"a\", \"b[\"]", "3:1: servers.x.allow: pattern 2 is not a valid glob"),
        ("deny = [\"{a\"]", "servers.x.deny: pattern 1 is not a valid glob"),
        ("prefix = \"a b\"", "servers.x.prefix: may contain only letters, digits"),
        (
            "breaker = { failures = 3, percent = 10 }",
            "3:13: servers.x.breaker.failures: counts consecutive failures",
        ),
        ("breaker = { percent = 101 }", "servers.x.breaker.percent: must be from 1 to 100"),
        ("breaker = { failures = 0 }", "servers.x.breaker.failures: must be 1 or more"),
        ("breaker = { open_for = \"x\" }", "servers.x.breaker.open_for: must be a time"),
        ("retry = { multiplier = 0.5 }", "servers.x.retry.multiplier: must be 1 or more"),
        ("retry = { jitter = 2 }", "servers.x.retry.jitter: must be from 0 to 1"),
        ("tools.t.name = \"a b\"", "servers.x.tools.t.name: may contain only letters"),
        ("tools.t.name = \"\"", "servers.x.tools.t.name: must be a name, and is empty"),
        ("tools.t.timeout = \"x\"", "servers.x.tools.t.timeout: must be a time"),
        (
            "tools.t.name = \"u\"\ntools.v.name = \"u\"",
            "the tool \"t\" of the server \"x\" already has this name",
        ),
    ] {
        check(&x(field), expected);
    }
}

#[test]
fn the_top_of_the_file() {
    for (text, expected) in [
        ("listen = \"::1:80\"", "1:1: listen: must be a port (8080), a host and a port"),
        ("listen = \"localhost:99999\"", "listen: must be a port (8080), a host and a port"),
        ("listen = 99999", "listen: must be "),
        ("path = \"mcp\"", "path: must be the path of a URL"),
        ("drain = \"x\"", "drain: must be a time"),
        ("state_dir = \"\"", "state_dir: must be a path, and is empty"),
        ("allow_origins = [\"example.com\"]", "allow_origins: an origin is what browsers send"),
        ("allow_origins = [\"https://example.com/\"]", "allow_origins: an origin is what browsers send"),
        ("allow_origins = [\"https://example.com:443\"]", "allow_origins: an origin is what browsers send"),
        ("allow_origins = [\"https://me@example.com\"]", "allow_origins: an origin is what browsers send"),
        ("allow_hosts = [\"https://example.com\"]", "allow_hosts: use only the host name"),
        ("tools.favourites = [\"[\"]", "1:7: tools.favourites: pattern 1 is not a valid glob"),
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
}

#[test]
fn every_mistake_in_the_form_is_said_at_once() {
    let text = r#"
lissen = "hush"
drain = 5
[tools]
mode = "some"
favorites = []
[defaults]
timeout = 30
url = "hush"
[memory.models.m]
url = "http://127.0.0.1:1"
colour = "hush"
[servers.a]
comand = "hush"
env = ["hush"]
[servers.b]
command = "b"
url = "https://example.com"
timeout = 5
args = [1]
[servers.c]
command = 5
[[servers.d]]
command = "d"
[servers.e]
url = "${NONE}"
headers = { Authorization = "Bearer ${OTHER}" }
"#;
    let error = parse(text).unwrap_err().to_string();
    assert!(!error.contains("hush"), "{error}");
    insta::assert_snapshot!("every_mistake_in_the_form", error.replace("/srv/app/", ""));
}

#[test]
fn what_could_not_be_read_is_not_missed_as_well() {
    for text in
        ["[servers.x]\ncomand = \"a\"", "[servers.x]\ncommand = 5", "[memory.embeddings]\nfoldr = \"a\""]
    {
        assert_eq!(parse(text).unwrap_err().problems().len(), 1, "{text}");
    }
    assert_eq!(parse("[servers.x]\ncolour = 5").unwrap_err().problems().len(), 2);
    let many: String = (0..500).map(|number| format!("field{number} = 1\n")).collect();
    assert_eq!(parse(&many).unwrap_err().problems().len(), 100, "it ends somewhere");
}

#[test]
fn columns_count_characters() {
    check("servers = { \"é\" = { command = \"ü\" , x = 1 } }", "1:37: servers.\"é\": unknown field \"x\"");
}

#[test]
fn keys_that_could_be_guessed() {
    const WANTED: &str =
        "sealing_keys: each key must be at least 32 random characters, such as what openssl rand -hex 32";
    check("sealing_keys = [\"hush\"]", WANTED);
    check("\nsealing_keys = [\"${TOKEN}\"]", WANTED);
    check("sealing_keys = [\"hushhushhushhushhushhushhushhushhush\"]", WANTED);
    check("sealing_keys = \"hush\"", "sealing_keys: must be a list in [brackets], not a string");
    check("sealing_keys = [\"${NOWHERE}\"]", "sealing_keys: the environment variable NOWHERE is not set");
    let nine = ["\"0123456789abcdef0123456789abcdef\""; 9].join(", ");
    check(&format!("sealing_keys = [{nine}]"), "sealing_keys: must have at most 8 keys");
}

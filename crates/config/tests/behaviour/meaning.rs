//! What is written, and what it means.

use std::path::Path;
use std::time::Duration;

use tidegate_client::{EraChoice, ErrorProfile, Instances, ServerCapability};
use tidegate_config::{Config, NameStyle, PinMode, SchemaStyle, Source, ToolMode};
use tidegate_memory::{Embeddings, MemorySettings, MemoryStore};
use tidegate_protocol::{Capability, Profile, Revision};
use tidegate_service::layers::{BreakerMode, BreakerSettings};

use crate::{command, parse, remote, server};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_empty_file_means_the_defaults() {
    for text in ["", "\n# nothing\n", "\u{feff}", "[servers]\n[tools]\n[defaults]\n"] {
        let settings = parse(text).unwrap();
        assert!(settings.servers.is_empty());
        assert_eq!(settings.listen.address, "127.0.0.1:8765");
        assert_eq!(settings.listen.path, "/mcp");
        assert!(!settings.listen.http_sse && settings.listen.hosts.is_empty());
        assert_eq!(settings.drain, 10 * SECOND);
        assert!(settings.state_dir.unwrap().ends_with("tidegate"));
        assert_eq!((settings.tools.mode, settings.tools.pin), (ToolMode::All, PinMode::Off));
        assert_eq!(settings.tools.names, NameStyle::Portable);
        assert_eq!(settings.tools.schemas, SchemaStyle::Exact);
        assert_eq!(settings.tools.lock_file, Path::new("/srv/app/tidegate.lock"));
        assert_eq!((settings.tools.page_bytes, settings.tools.batch), (4 << 20, true));
        assert_eq!(settings.tools.name_length, 64, "what has a name keeps it");
        assert_eq!(settings.notes, ["There are no servers yet. Add one with tidegate add."]);
    }
}

#[test]
fn the_top_of_the_file() {
    let settings = parse(
        r#"
        listen = "[::1]:${PORT:-9000}"
        path = "/"
        allow_hosts = ["mcp.example.com"]
        allow_origins = ["https://app.example.com"]
        http_sse = true
        max_message = "64MiB"
        max_connections = 7
        max_calls = 5
        max_result = "8MiB"
        call_timeout = "10m"
        connection_idle = "2m"
        request_within = "9s"
        drain = "0s"
        state_dir = "state"
        [tools]
        mode = "search"
        favourites = ["x_*"]
        pin = "first-use"
        lock_file = "/elsewhere/lock"
        names = "exact"
        schemas = "portable"
        page_bytes = "1MiB"
        batch = false
        "#,
    )
    .unwrap();
    assert_eq!(settings.listen.address, "[::1]:9000");
    assert_eq!(settings.listen.path, "/");
    assert_eq!(settings.listen.hosts, ["mcp.example.com"]);
    assert_eq!(settings.listen.origins, ["https://app.example.com"]);
    assert!(settings.listen.http_sse);
    assert_eq!(settings.listen.max_message, 64 << 20);
    assert_eq!(settings.listen.max_connections, 7);
    assert_eq!(settings.listen.connection_idle, Duration::from_secs(120));
    assert_eq!(settings.listen.request_within, Duration::from_secs(9));
    let calls = settings.calls;
    assert_eq!((calls.max_calls, calls.max_result), (5, 8 << 20));
    assert_eq!(calls.call_timeout, Duration::from_secs(600));
    assert_eq!(parse("").unwrap().listen.max_message, 4 << 20);
    assert_eq!(settings.drain, Duration::ZERO);
    assert_eq!(settings.state_dir.as_deref(), Some(Path::new("/srv/app/state")));
    assert_eq!((settings.tools.mode, settings.tools.pin), (ToolMode::Search, PinMode::FirstUse));
    assert!(settings.tools.favourites.matches("x_y") && !settings.tools.favourites.matches("y"));
    assert_eq!(settings.tools.lock_file, Path::new("/elsewhere/lock"));
    assert_eq!(settings.tools.names, NameStyle::Exact);
    assert_eq!(settings.tools.schemas, SchemaStyle::Portable);
    assert_eq!((settings.tools.page_bytes, settings.tools.batch), (1 << 20, false));
    assert_eq!(parse("state_dir = false").unwrap().state_dir, None);
    assert!(parse("state_dir = true").unwrap().state_dir.is_some());
}

#[test]
fn a_server_has_the_defaults_of_a_gateway() {
    let server = server("command = \"a\"");
    assert_eq!((server.name.as_str(), server.prefix.as_str()), ("x", "x_"));
    assert_eq!(server.idle, Some(600 * SECOND));
    assert_eq!(server.options.sessions.instances, Instances::PerUser);
    assert!(server.options.sessions.while_connected);
    assert_eq!(server.options.sessions.idle, 3600 * SECOND);
    assert_eq!(server.options.timeout, 60 * SECOND);
    assert_eq!(server.options.breaker, Some(BreakerSettings::default()));
    assert_eq!(server.options.name.as_deref(), Some("x"));
    assert!(server.offers("anything"));
}

#[test]
fn servers_keep_the_order_of_the_file() {
    let text = "[servers.b]\ncommand = \"b\"\n[servers.a]\ncommand = \"a\"\n[servers.c]\ncommand = \"c\"";
    let names: Vec<String> = parse(text).unwrap().servers.into_iter().map(|server| server.name).collect();
    assert_eq!(names, ["b", "a", "c"]);
}

#[test]
fn programs() {
    for (fields, program, args) in [
        ("command = \"npx\"", "npx", vec![]),
        ("command = \"npx -y 'a b'\"", "npx", vec!["-y", "a b"]),
        ("command = \"npx\"\nargs = [\"-y\", \"a b\"]", "npx", vec!["-y", "a b"]),
        ("command = [\"npx\", \"-y\", \"a b\"]", "npx", vec!["-y", "a b"]),
        ("command = [\"npx\", \"-y\"]\nargs = [\"c\"]", "npx", vec!["-y", "c"]),
        ("command = \"my tool\"\nargs = []", "my tool", vec![]),
        ("command = \"a --key ${SPACED}\"", "a", vec!["--key", "hush hush"]),
        ("command = \"a\"\nargs = [\"${SPACED}\", \"$${A}\"]", "a", vec!["hush hush", "${A}"]),
        ("command = \"./bin/a b\"", "/srv/app/bin/a", vec!["b"]),
        ("command = \"../a\"", "/srv/app/../a", vec![]),
    ] {
        let command = command(&server(fields));
        assert_eq!(command.program, program, "{fields}");
        assert_eq!(command.args, args, "{fields}");
        assert_eq!(command.cwd, None);
    }
    let command = command(&server(
        "command = \"A=1 B=2 run it\"\nenv = { B = \"${TOKEN}\", C = \"${NONE:-c}\" }\ncwd = \"sub\"",
    ));
    let env: Vec<_> = command.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("A", "1"), ("B", "hush"), ("C", "c")]);
    assert_eq!(command.cwd.as_deref(), Some(Path::new("/srv/app/sub")));
}

#[test]
fn addresses() {
    let read = remote(&server(
        "url = \"${BASE}/mcp\"\nheaders = { Authorization = \"Bearer ${TOKEN}\" }\ntransport = \"sse\"",
    ));
    assert_eq!(read.url.as_str(), "https://example.com/mcp");
    assert_eq!(read.headers["Authorization"], "Bearer hush");
    assert!(read.sse);
    assert!(!remote(&server("url = \"http://localhost:1/\"\ntransport = \"http\"")).sse);
}

#[test]
fn builtin_servers() {
    assert!(matches!(server("builtin = \"demo\"").source, Source::Builtin(name) if name == "demo"));
}

#[test]
fn which_tools_are_offered() {
    let server = server("command = \"a\"\nallow = [\"read_*\", \"list\"]\ndeny = [\"*_secret\"]");
    for (tool, offered) in [("read_file", true), ("list", true), ("read_secret", false), ("write", false)] {
        assert_eq!(server.offers(tool), offered, "{tool}");
    }
    assert_eq!(server.allow.to_vec(), ["read_*", "list"]);
}

#[test]
fn changes_to_tools() {
    let server = server(
        r#"
        command = "a"
        prefix = ""
        [servers.x.tools.search]
        name = "find"
        description = "Finds it"
        timeout = "2h"
        [servers.x.tools."odd/name"]
        timeout = "${SOON}"
        "#,
    );
    assert_eq!(server.prefix, "");
    assert_eq!(server.tools["search"].name.as_deref(), Some("find"));
    assert_eq!(server.tools["search"].description.as_deref(), Some("Finds it"));
    assert_eq!(server.options.tool_timeouts["search"], 7200 * SECOND);
    assert_eq!(server.options.tool_timeouts["odd/name"], 5 * SECOND);
    assert!(server.options.max_timeout >= 7200 * SECOND);
}

#[test]
fn terms() {
    let server = server(
        r#"
        command = "a"
        era = "legacy"
        timeout = "2m"
        max_timeout = "3m"
        start_timeout = "2s"
        connect_timeout = "4s"
        extend_on_progress = true
        idle = "never"
        instances = "one"
        max_sessions = 3
        session_idle = "6s"
        max_in_flight = 7
        max_message = 1000
        trust_annotations = true
        park_time = "8s"
        breaker = { window = 20, percent = 25, open_for = "9s", trials = 2, successes = 3 }
        retry = { attempts = 1, base = "10ms", multiplier = 3, max = "1s", jitter = 0, overall = "never" }
        "#,
    );
    let options = server.options;
    assert_eq!(options.era, EraChoice::Legacy);
    assert_eq!((options.timeout, options.max_timeout), (120 * SECOND, 180 * SECOND));
    assert_eq!((options.init_timeout, options.connect_timeout), (2 * SECOND, 4 * SECOND));
    assert!(options.probe_timeout <= options.init_timeout);
    assert!(options.extend_on_progress && options.trust_annotations);
    assert_eq!(server.idle, None);
    assert_eq!((options.sessions.instances, options.sessions.max), (Instances::One, 3));
    assert_eq!((options.sessions.idle, options.park.time), (6 * SECOND, 8 * SECOND));
    assert_eq!((options.max_in_flight, options.limits.max_bytes), (7, 1000));
    let breaker = options.breaker.unwrap();
    assert_eq!(breaker.mode, BreakerMode::Rate { window: 20, percent: 25 });
    assert_eq!((breaker.open_for, breaker.half_open_max, breaker.success_threshold), (9 * SECOND, 2, 3));
    assert_eq!((options.retry.max_retries, options.retry.base), (1, Duration::from_millis(10)));
    assert_eq!((options.retry.multiplier, options.retry.jitter, options.retry.overall), (3.0, 0.0, None));
}

#[test]
fn whose_sessions_are_and_how_long_they_are_kept() {
    let lanes = |text: &str| server(&format!("command = \"a\"\n{text}")).options.sessions;
    for (written, meant) in [
        ("per-user", Instances::PerUser),
        ("per-client", Instances::PerClient),
        ("per-caller", Instances::PerClient),
        ("one", Instances::One),
    ] {
        assert_eq!(lanes(&format!("instances = \"{written}\"")).instances, meant);
    }
    assert_eq!(lanes("").capabilities, Capability::ASKABLE);
    assert_eq!(
        lanes("capabilities = [\"elicitation.form\", \"sampling\"]").capabilities,
        [Capability::ElicitForm, Capability::Sampling, Capability::SamplingTools]
    );
    assert!(lanes("capabilities = []").capabilities.is_empty());
    // Whoever says when a process is stopped does not want it kept for anybody.
    let kept = |text: &str| (lanes(text).idle, lanes(text).while_connected);
    assert_eq!(kept("idle = \"5m\""), (300 * SECOND, false));
    assert_eq!(kept("idle = \"5m\"\nsession_idle = \"7m\""), (420 * SECOND, false));
    assert_eq!(kept("session_idle = \"7m\""), (420 * SECOND, true));
    assert_eq!(kept("idle = \"never\""), (3600 * SECOND, true));
}

#[test]
fn breakers_and_retries_can_be_switched() {
    let off = server("command = \"a\"\nbreaker = false\nretry = false").options;
    assert!(off.breaker.is_none());
    assert_eq!(off.retry.max_retries, 0);
    let on = server("command = \"a\"\nbreaker = true\nretry = true").options;
    assert_eq!((on.breaker, on.retry.max_retries), (Some(BreakerSettings::default()), 3));
    let some = server("command = \"a\"\nbreaker = { failures = 2 }\nretry = {}").options;
    assert_eq!(some.breaker.unwrap().mode, BreakerMode::Consecutive(2));
    let long = server("command = \"a\"\ntimeout = \"5h\"").options;
    assert_eq!(long.max_timeout, 5 * 3600 * SECOND);
}

#[test]
fn defaults_hold_unless_a_server_says_otherwise() {
    let settings = parse(
        r#"
        [defaults]
        timeout = "5s"
        era = "modern"
        breaker = false
        idle = "1m"
        [servers.a]
        command = "a"
        [servers.b]
        command = "b"
        timeout = "7s"
        breaker = true
        idle = "never"
        "#,
    )
    .unwrap();
    let (a, b) = (&settings.servers[0], &settings.servers[1]);
    assert_eq!(
        (a.options.timeout, a.options.era, a.idle),
        (5 * SECOND, EraChoice::Modern, Some(60 * SECOND))
    );
    assert!(a.options.breaker.is_none());
    assert_eq!((b.options.timeout, b.options.era, b.idle), (7 * SECOND, EraChoice::Modern, None));
    assert!(b.options.breaker.is_some());
}

#[test]
fn what_is_switched_off_needs_no_secrets() {
    let text =
        "[servers.off]\nenabled = false\nurl = \"${NONE}\"\n[servers.on]\nenabled = true\ncommand = \"a\"";
    let settings = parse(text).unwrap();
    assert_eq!(settings.servers.len(), 1);
    assert_eq!(settings.notes, ["Server \"off\" is disabled (enabled = false)."]);
}

#[test]
fn what_has_no_effect_is_noted() {
    let text = r#"
        [tools]
        favourites = ["a"]
        lock_file = "x"
        [servers.a]
        url = "https://example.com"
        args = []
        env = { A = "${TOKEN}" }
        [servers.b]
        command = "b"
        headers = { A = "${TOKEN}" }
        deny = ["t"]
        [servers.b.tools.t]
        name = "u"
    "#;
    let notes = parse(text).unwrap().notes;
    let starts: Vec<&str> = notes.iter().map(|note| note.split(' ').next().unwrap()).collect();
    let wanted =
        ["tools.favourites", "tools.lock_file", "servers.a.args", "servers.a.env", "servers.b.headers"];
    assert_eq!(starts[..5], wanted, "{notes:?}");
    assert_eq!(starts[5..], ["servers.b.tools.t"]);
    assert!(!notes.concat().contains("hush"));
}

#[test]
fn digests_tell_what_has_changed() {
    let digest = |text: &str| server(text).digest;
    assert_eq!(digest("command = \"a b\""), digest("command = \"a\"\nargs = [\"b\"]\nprefix = \"x_\""));
    assert_eq!(digest("command = \"a\"\nargs = [\"${TOKEN}\"]"), digest("command = \"a hush\""));
    assert_ne!(digest("command = \"a b\""), digest("command = \"a\"\nargs = [\"b\"]\nidle = \"1s\""));
    assert_ne!(digest("command = \"a ${TOKEN}\""), digest("command = \"a ${SPACED}\""));
}

#[test]
fn nothing_that_can_be_printed_holds_a_secret() {
    let settings = parse(
        r#"
        [servers.a]
        command = "A=${TOKEN} a --token ${TOKEN} ${TOKEN}"
        env = { B = "${TOKEN}" }
        [servers.b]
        url = "https://example.com/?key=${TOKEN}"
        headers = { C = "${TOKEN}" }
        "#,
    )
    .unwrap();
    let shown = format!("{settings:?} {settings:#?}");
    assert!(!shown.contains("hush"), "{shown}");
    assert_eq!(settings.servers[0].shown, "A=*** a --token *** '${TOKEN}'");
    assert_eq!(format!("{:?}", settings.servers[0].source), "Target(a)");
    assert!(settings.servers.iter().all(|server| !shown.contains(&server.digest)));
}

#[test]
fn the_memory_is_told_what_it_needs() {
    let text = r#"
        [servers.a]
        builtin = "memory"
        [servers.b]
        builtin = "demo"
        [memory]
        tools = "all"
        store = "postgres://me:hush@db/memory"
        folders = ["notes", "/srv/docs"]
        allow_private_addresses = true
        max_tenants = 20
        model = "claude/x"
        embeddings = { url = "http://127.0.0.1:1/v1", model = "m", api_key = "hush" }
        [memory.models.claude]
        kind = "anthropic"
        api_key = "hush"
        [memory.models.local]
        kind = "openai"
        url = "http://127.0.0.1:2/v1"
        api_key = "${UNSET:-}"
        models = ["x"]
        [memory.agents]
        time = "2m"
        steps = 20
        "#;
    let settings = parse(text).unwrap();
    let told = |n: usize| settings.servers[n].builtin.as_ref().unwrap().get::<MemorySettings>();
    let memory = told(0).unwrap();
    assert!(told(1).is_none());
    assert!(memory.all_tools && memory.private_addresses);
    assert_eq!(memory.max_tenants, Some(20));
    assert_eq!(memory.folders, [Path::new("/srv/app/notes"), Path::new("/srv/docs")]);
    assert!(matches!(&memory.store, Some(MemoryStore::Postgres(url)) if url.contains("hush")));
    assert!(matches!(&memory.embeddings, Some(Embeddings::Endpoint { model, .. }) if model == "m"));
    let models: Vec<_> = memory.models.iter().map(|one| (one.name.as_str(), one.api_key.is_some())).collect();
    assert_eq!(models, [("claude", true), ("local", false)]);
    let agents = &memory.agents;
    assert_eq!((agents.time, agents.steps, agents.tokens), (Some(Duration::from_secs(120)), Some(20), None));
    for wrong in ["time = \"0s\"", "time = \"soon\"", "steps = 0", "steps = 1001", "tokens = 0", "token = 5"]
    {
        assert!(parse(&format!("[memory.agents]\n{wrong}")).is_err(), "{wrong}");
    }
    assert!(!format!("{settings:?}").contains("hush"), "no secret is shown");
    // Whatever changes about it, secrets too, makes another server of it, and of that alone.
    let other = parse(&text.replace("me:hush@", "me:loud@")).unwrap();
    assert_ne!(other.servers[0].digest, settings.servers[0].digest);
    assert_eq!(other.servers[1].digest, settings.servers[1].digest);
}

#[test]
fn what_a_server_must_have_and_what_its_numbers_mean() {
    let usual = server("command = \"x\"").options;
    assert!(usual.require.is_empty() && !usual.list_tools_first);
    assert_eq!(usual.profile, ErrorProfile::Standard);
    let options =
        server("command = \"x\"\nrequire = [\"tools\", \"completions\"]\nerrors = \"gbif\"").options;
    assert_eq!(options.require, [ServerCapability::Tools, ServerCapability::Completions]);
    assert_eq!(options.profile, ErrorProfile::Gbif);
    for (errors, meant) in [
        ("standard", ErrorProfile::Standard),
        ("percolate", ErrorProfile::Percolate),
        ("docling", ErrorProfile::Docling),
        ("devflow", ErrorProfile::DevFlow),
    ] {
        assert_eq!(server(&format!("builtin = \"memory\"\nerrors = {errors:?}")).options.profile, meant);
    }
    assert!(parse("[servers.x]\ncommand = \"x\"\nrequire = [\"tasks\"]").is_err());
    assert_ne!(server("command = \"x\"").digest, server("command = \"x\"\nrequire = [\"tools\"]").digest);
}

#[test]
fn which_revision_is_offered() {
    let options = server("command = \"x\"\nprotocol_version = \"2025-06-18\"").options;
    assert_eq!((options.era, options.offer), (EraChoice::Legacy, Revision::V2025_06_18));
    let options = server("command = \"x\"\nprotocol_version = \"2026-07-28\"").options;
    assert_eq!(options.era, EraChoice::Modern);
    let three = "command = \"x\"\nhandshake = \"three-step\"";
    let options = server(three).options;
    assert_eq!((options.era, options.offer), (EraChoice::Legacy, Revision::V2024_11_05));
    assert_eq!(options.require, [ServerCapability::Tools]);
    assert!(options.list_tools_first);
    let breaker = options.breaker.expect("on by default");
    assert_eq!(
        (breaker.mode, breaker.open_for, breaker.half_open_max),
        (BreakerMode::Consecutive(5), 30 * SECOND, 1)
    );
    let options = server(&format!(
        "{three}\nprotocol_version = \"2025-03-26\"\nclient_info = {{ name = \"ui\", version = \"2\" }}"
    ))
    .options;
    assert_eq!(options.offer, Revision::V2025_03_26);
    assert_eq!(options.client_info.as_str(), r#"{"name":"ui","version":"2"}"#);
    let of_env = |name: &str| (name == "MCP_PROTOCOL_VERSION").then(|| "2025-06-18".to_owned());
    let settings = tidegate_config::Config::parse(
        &format!("[servers.x]\n{three}"),
        "tidegate.toml",
        &crate::builtins(),
        &of_env,
    )
    .unwrap();
    assert_eq!(settings.servers[0].options.offer, Revision::V2025_06_18);
    for (fields, sentence) in [
        ("protocol_version = \"1999\"", "must be one of 2024-11-05"),
        ("protocol_version = \"2026-07-28\"\nera = \"legacy\"", "because of era = \"legacy\""),
        ("protocol_version = \"2026-07-28\"\nhandshake = \"three-step\"", "because of handshake"),
        ("protocol_version = \"2025-06-18\"\nera = \"modern\"", "because of era = \"modern\""),
        ("handshake = \"three-step\"\nera = \"modern\"", "because of era = \"modern\""),
    ] {
        let error = parse(&format!("[servers.x]\ncommand = \"x\"\n{fields}")).unwrap_err().to_string();
        assert!(error.contains(sentence), "{fields}: {error}");
    }
    let notes = parse("[servers.x]\nbuiltin = \"demo\"\nhandshake = \"three-step\"").unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("servers.x.handshake has no effect")), "{notes:?}");
}

#[test]
fn what_clients_find_in_errors_and_capabilities() {
    let usual = parse("").unwrap();
    assert_eq!((usual.errors, usual.tools.in_capabilities), (Profile::Strict, false));
    let settings = parse("errors = \"percolate\"\n[tools]\nin_capabilities = true").unwrap();
    assert_eq!((settings.errors, settings.tools.in_capabilities), (Profile::Percolate, true));
}

#[test]
fn keys_that_seal() {
    use tidegate_protocol::seal::{Binding, Sealer, digest};
    const KEYS: [&str; 2] = ["0123456789abcdef0123456789abcdef", "hush-hush-fedcba9876543210-hush-hush"];
    let variable = |name: &str| match name {
        "NEW_KEY" => Some(KEYS[0].to_owned()),
        "OLD_KEY" => Some(KEYS[1].to_owned()),
        _ => None,
    };
    let keys = |text: &str| {
        let settings = Config::parse(text, "/srv/app/tidegate.toml", &crate::builtins(), &variable).unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
        settings.sealing_keys
    };
    assert!(keys("").is_empty() && keys("sealing_keys = []").is_empty());
    let both = keys(r#"sealing_keys = ["${NEW_KEY}", "${OLD_KEY}", "${NONE:-}"]"#);
    assert_eq!(both.len(), 2, "an empty one stands for a variable that is not set");
    let binding =
        Binding { issuer: "", subject: "", tenant: "", endpoint: "", method: "m", params: digest([]) };
    let text = Sealer::new(both[0].clone()).seal(b"x", &binding, 1, [0; 24]).unwrap();
    let plain = keys(&format!("sealing_keys = [{:?}]", KEYS[0]));
    assert!(Sealer::new(plain[0].clone()).open(&text, &binding, 0).is_ok(), "the first one seals");
    for key in KEYS {
        assert_eq!(tidegate_service::secrets::mask(&format!("got {key}!")), "got ***!");
    }
}

//! Adding and removing servers.

use tidegate_config::edit::{EditError, add, remove, set_enabled};
use tidegate_config::{Config, ServerEntry};

use crate::env;
use crate::folder::Folder;

fn program(words: &[&str]) -> ServerEntry {
    let mut words = words.iter().map(|word| (*word).to_owned());
    ServerEntry { command: words.next(), args: words.collect(), ..ServerEntry::default() }
}

fn address(url: &str) -> ServerEntry {
    ServerEntry { url: Some(url.to_owned()), ..ServerEntry::default() }
}

#[test]
fn a_new_file_explains_itself() {
    let folder = Folder::new();
    let path = folder.path("new/tidegate.toml");
    add(&path, "time", &program(&["uvx", "mcp-server-time"]), false).unwrap();
    let mut entry = address("https://example.com/mcp");
    entry.headers.insert("Authorization".to_owned(), "Bearer ${TOKEN}".to_owned());
    entry.era = tidegate_client::EraChoice::Modern;
    add(&path, "web", &entry, false).unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        r##"#:schema https://raw.githubusercontent.com/tidegate/tidegate/main/docs/tidegate.schema.json
# The MCP servers behind Tidegate. Check this file with `tidegate check`.
# Secrets: ${NAME} is an environment variable (or one of .env beside this file), ${file:/path} a file.

[tools]
# Models accept tool names of up to 64 characters, and clients add a prefix such as mcp__tidegate__.
name_length = 48

[servers.time]
command = "uvx"
args = ["mcp-server-time"]

[servers.web]
url = "https://example.com/mcp"
era = "modern"
headers = { Authorization = "Bearer ${TOKEN}" }
"##
    );
    assert_eq!(Config::load(&path, &crate::builtins(), &env).unwrap().servers.len(), 2);
}

#[test]
fn a_file_that_is_there_says_nothing_new_about_names() {
    let folder = Folder::new();
    let path = folder.path("tidegate.toml");
    std::fs::write(&path, "[servers.a]\ncommand = \"a\"\n").unwrap();
    add(&path, "b", &program(&["b"]), false).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "[servers.a]\ncommand = \"a\"\n\n[servers.b]\ncommand = \"b\"\n");
}

#[test]
fn what_was_added_can_be_removed_without_a_trace() {
    let folder = Folder::new();
    let path = folder.path("tidegate.toml");
    for name in ["a", "b", "c"] {
        add(&path, name, &program(&[name]), false).unwrap();
    }
    let text = |path| std::fs::read_to_string(path).unwrap();
    let full = text(&path);
    remove(&path, "a").unwrap();
    let without = full.replace("[servers.a]\ncommand = \"a\"\n\n", "");
    assert_eq!(text(&path), without);
    remove(&path, "c").unwrap();
    remove(&path, "b").unwrap();
    let header = text(&path);
    assert_eq!(header, full[..full.find("\n[servers.a]").unwrap()]);
    add(&path, "a", &program(&["a"]), false).unwrap();
    assert_eq!(text(&path), format!("{header}\n[servers.a]\ncommand = \"a\"\n"));
}

#[test]
fn comments_at_the_end_stay_where_they_are() {
    let folder = Folder::new();
    let path = folder.write("t.toml", "[servers.a]\ncommand = \"a\"\n\n# [servers.later]\n");
    add(&path, "b", &program(&["b"]), false).unwrap();
    let text = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(
        text(&path),
        "[servers.a]\ncommand = \"a\"\n\n# [servers.later]\n\n[servers.b]\ncommand = \"b\"\n"
    );
    remove(&path, "b").unwrap();
    assert_eq!(text(&path), "[servers.a]\ncommand = \"a\"\n\n# [servers.later]\n");
}

const KEPT: &str = r#"# mine
listen = "127.0.0.1:1"   # low

# the first
[servers.b]
command = "b"  # yes

# the second
[servers.a]
url = "https://example.com"
"#;

#[test]
fn comments_and_order_stay() {
    let folder = Folder::new();
    let path = folder.write("t.toml", KEPT);
    add(&path, "c", &program(&["c"]), false).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{KEPT}\n[servers.c]\ncommand = \"c\"\n"));
    remove(&path, "c").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), KEPT);
    add(&path, "b", &program(&["new"]), true).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, KEPT.replace("command = \"b\"  # yes", "command = \"new\""));
    remove(&path, "b").unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("# mine\nlisten = \"127.0.0.1:1\"   # low\n") && text.contains("# the second"),
        "{text}"
    );
    assert!(!text.contains("# the first"), "{text}");
}

#[test]
fn every_form_of_a_table_can_be_changed() {
    for before in [
        "servers = { a = { command = \"a\" } }\n",
        "[servers]\na = { command = \"a\" }\n",
        "[servers]\n[servers.a]\ncommand = \"a\"\n",
        "servers.a.command = \"a\"\n",
        "[servers.a]\ncommand = \"a\"\n[servers.a.tools.t]\nname = \"t\"\n[tools]\nbatch = true\n",
    ] {
        let folder = Folder::new();
        let path = folder.write("t.toml", before);
        add(&path, "new", &program(&["x", "y z"]), false).unwrap();
        let names = |path| {
            let settings = Config::load(path, &crate::builtins(), &env)
                .unwrap_or_else(|error| panic!("{before}: {error}"));
            settings.servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&path), ["a", "new"], "{before}");
        add(&path, "a", &address("https://example.com"), true).unwrap();
        assert_eq!(names(&path), ["a", "new"], "{before}");
        remove(&path, "a").unwrap();
        assert_eq!(names(&path), ["new"], "{before}");
    }
}

#[test]
fn what_is_written_means_what_was_meant() {
    let folder = Folder::new();
    let path = folder.path("t.toml");
    let mut entry = program(&["my tool"]);
    entry.env.insert("ODD \"name\"".to_owned(), "multi\nline \\ 'quotes'".to_owned());
    entry.prefix = Some(String::new());
    entry.disabled = false;
    add(&path, "odd", &entry, false).unwrap();
    let settings = Config::load(&path, &crate::builtins(), &env).unwrap();
    let command = crate::command(&settings.servers[0]);
    assert_eq!((command.program.as_str(), command.args.len()), ("my tool", 0));
    assert_eq!(command.env["ODD \"name\""], "multi\nline \\ 'quotes'");
    assert_eq!(settings.servers[0].prefix, "");
}

#[test]
fn mistakes_change_nothing() {
    let folder = Folder::new();
    let path = folder.write("t.toml", KEPT);
    let told = |result: Result<(), EditError>| result.unwrap_err().to_string();
    let file = path.display();
    assert_eq!(told(add(&path, "a", &program(&["x"]), false)), format!("{file} already has a server \"a\""));
    assert!(told(add(&path, "a b", &program(&["x"]), false)).contains("only letters, digits"));
    assert_eq!(told(remove(&path, "z")), format!("{file} has no server \"z\"; it has b, a"));
    assert!(told(add(&folder.path(".mcp.json"), "a", &program(&["x"]), false)).contains("tidegate import"));
    let long = folder.write("long.toml", "[servers.github]\ncommand = \"a\"");
    assert!(told(remove(&long, "githb")).ends_with("did you mean \"github\"?"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), KEPT);
    for (text, expected) in
        [("servers = 5", "servers: must be a table"), ("a = ", ":1:5: this is not valid TOML")]
    {
        let broken = folder.write("broken.toml", text);
        assert!(told(add(&broken, "a", &program(&["x"]), false)).contains(expected));
        assert_eq!(std::fs::read_to_string(&broken).unwrap(), text);
    }
    assert!(told(remove(&folder.path("gone.toml"), "a")).contains("it has none"));
}

#[cfg(unix)]
#[test]
fn files_with_secrets_are_private_and_links_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let real = folder.write("real/t.toml", "");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    let path = folder.path("t.toml");
    std::os::unix::fs::symlink(&real, &path).unwrap();
    add(&path, "plain", &program(&["x"]), false).unwrap();
    assert_eq!(mode(&real), 0o640);
    assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
    let mut entry = program(&["x"]);
    entry.env.insert("TOKEN".to_owned(), "hush".to_owned());
    add(&path, "private", &entry, false).unwrap();
    assert_eq!(mode(&real), 0o600);
    assert_eq!(std::fs::read_dir(folder.path("real")).unwrap().count(), 1, "nothing is left behind");
    assert!(!format!("{entry:?}").contains("hush"));
    let fresh = folder.path("fresh.toml");
    add(&fresh, "private", &entry, false).unwrap();
    assert_eq!(mode(&fresh), 0o600);
}

#[test]
fn a_server_is_switched_off_and_on_where_it_stands() {
    let folder = Folder::new();
    let path = folder.path("tidegate.toml");
    for (on, off) in [
        ("[servers.a] # mine\ncommand = \"a\"\n", "[servers.a] # mine\ncommand = \"a\"\nenabled = false\n"),
        (
            "[servers.a]\ncommand = \"a\"\n\n[servers.a.env]\nX = \"1\"\n",
            "[servers.a]\ncommand = \"a\"\nenabled = false\n\n[servers.a.env]\nX = \"1\"\n",
        ),
        ("servers.a = { command = \"a\" }\n", "servers.a = { command = \"a\" , enabled = false }\n"),
    ] {
        std::fs::write(&path, on).unwrap();
        assert_eq!(set_enabled(&path, "a", true), Ok(false), "it is on");
        assert_eq!(set_enabled(&path, "a", false), Ok(true));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.replace(' ', ""), off.replace(' ', ""));
        let settings = Config::load(&path, &crate::builtins(), &env).unwrap();
        assert_eq!((settings.servers.len(), settings.disabled.len()), (0, 1));
        assert_eq!(set_enabled(&path, "a", false), Ok(false), "it is off");
        assert_eq!(set_enabled(&path, "a", true), Ok(true));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.replace(' ', ""), on.replace(' ', ""));
    }
    std::fs::write(&path, "[servers.a]\ncommand = \"a\"\nenabled = true # really\n").unwrap();
    set_enabled(&path, "a", false).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "[servers.a]\ncommand = \"a\"\nenabled = false # really\n");
    let unknown = set_enabled(&path, "aa", false).unwrap_err();
    assert!(matches!(&unknown, EditError::Unknown { near: Some(near), .. } if near == "a"), "{unknown}");
}

//! Servers of the program bring their sections: what is said about the memory's is said about anybody's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_builtin::{Builtin, BuiltinServer, Builtins, Host, Opened, Reading, Time};
use tidegate_config::{Config, ConfigError, Settings, schema};
use tidegate_protocol::Error;

struct LampServer;

/// A lamp.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Lamp {
    /// What it shines in.
    colour: Option<Colour>,
    /// How long it shines.
    period: Option<Time>,
    /// Where its log is.
    log: Option<String>,
    /// What lights it.
    lamp_token: Option<String>,
    /// What it stands on.
    stand: Option<Stand>,
}

/// What it stands on.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Stand {
    /// In metres.
    height: Option<u32>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

#[derive(Debug)]
struct LampSettings {
    period: Duration,
    log: Option<PathBuf>,
    is_lit: bool,
}

impl BuiltinServer for LampServer {
    const NAME: &'static str = "lamp";
    const DESCRIPTION: &'static str = "The lamp at the end of the pier.";
    type Written = Lamp;
    type Settings = LampSettings;

    fn settings(written: &Lamp, reading: &mut Reading<'_>) -> LampSettings {
        if written.stand.as_ref().and_then(|stand| stand.height) == Some(0) {
            reading.wrong(&["stand", "height"], "must be 1 or more");
        }
        if matches!(written.colour, Some(Colour::Red | Colour::Green)) && written.stand.is_none() {
            reading.note(&["colour"], "has no effect: the lamp stands nowhere.");
        }
        LampSettings {
            period: reading.time(&["period"], written.period.as_ref(), Duration::from_secs(5)),
            log: written.log.as_deref().and_then(|log| reading.path(&["log"], log)),
            is_lit: reading.secret(written.lamp_token.as_deref()).is_some(),
        }
    }

    fn open(_: &LampSettings, _: Host) -> Result<Opened, Error> {
        Err(Error::internal())
    }
}

fn builtins() -> Builtins {
    Builtins::new([Builtin::of::<LampServer>()])
}

fn parse(text: &str) -> Result<Settings, ConfigError> {
    Config::parse(text, "/srv/app/tidegate.toml", &builtins(), &crate::env)
}

fn lines(text: &str) -> Vec<String> {
    let error = parse(text).unwrap_err().to_string();
    assert!(!error.contains("hush"), "{error}");
    error.lines().map(|line| line.replace("/srv/app/tidegate.toml:", "")).collect()
}

#[test]
fn a_section_means_what_its_server_says() {
    let text = "[lamp]\nperiod = \"2s\"\nlog = \"lamp.log\"\nlamp_token = \"${TOKEN}\"\n[servers.a]\nbuiltin = \"lamp\"\n\
                [servers.b]\ncommand = \"b\"\n";
    let settings = parse(text).unwrap();
    let lamp = settings.servers[0].builtin.as_ref().and_then(|told| told.get::<LampSettings>()).unwrap();
    assert_eq!(
        (lamp.period, lamp.log.as_deref()),
        (Duration::from_secs(2), Some(Path::new("/srv/app/lamp.log")))
    );
    assert!(lamp.is_lit);
    assert!(settings.servers[1].builtin.is_none());
    assert!(!format!("{settings:?}").contains("hush"));
    // Without a section, everything is as usual.
    let usual = parse("[servers.a]\nbuiltin = \"lamp\"\n").unwrap();
    let lamp = usual.servers[0].builtin.as_ref().and_then(|told| told.get::<LampSettings>()).unwrap();
    assert_eq!((lamp.period, lamp.is_lit), (Duration::from_secs(5), false));
}

#[test]
fn what_changes_in_a_section_makes_another_server_and_where_it_stands_does_not() {
    let with = |section: &str| {
        let settings =
            parse(&format!("{section}\n[servers.a]\nbuiltin = \"lamp\"\n[servers.b]\ncommand = \"b\"\n"));
        settings.unwrap().servers.into_iter().map(|server| server.digest).collect::<Vec<_>>()
    };
    let before = with("[lamp]\nlamp_token = \"${TOKEN}\"");
    assert_eq!(before, with("\n\n# further down\n[lamp]\nlamp_token = \"hush\""));
    let after = with("[lamp]\nlamp_token = \"other\"");
    assert_ne!(before[0], after[0]);
    assert_eq!(before[1], after[1]);
}

#[test]
fn every_mistake_in_a_section_is_said_at_once() {
    let text = "[lamp]\nperiod = 5\ncolor = \"hush\"\nlog = \"\"\nstand = { heigth = 1 }\n[servers.a]\nbuiltin = \"lmap\"\n";
    assert_eq!(
        lines(text),
        [
            "2:10: lamp.period: must be a time with a unit in quotes, such as \"500ms\", \"30s\" or \"5m\", not a whole number",
            "3:1: lamp: unknown field \"color\"; did you mean \"colour\"?",
            "4:1: lamp.log: must be a path, and is empty",
            "5:11: lamp.stand: unknown field \"heigth\"; did you mean \"height\"?",
            "7:1: servers.a.builtin: Tidegate has no built-in server of this name, only lamp; did you mean \"lamp\"?",
        ]
    );
    for (text, expected) in [
        ("[lamp]\nperiod = \"0s\"", "2:1: lamp.period: must be longer than 0"),
        ("[lamp]\nstand.height = 0", "2:7: lamp.stand.height: must be 1 or more"),
        ("[lamp]\nstand = [5]", "2:1: lamp.stand: must be a table, not a list"),
        ("[[lamp]]\nperiod = \"5s\"", "1:3: lamp: must be a table, not a list"),
        ("lamp = 5", "1:8: lamp: must be a table, not a whole number"),
        ("[lamp]\ncolour = 5", "2:10: lamp.colour: must be one of \"red\", \"green\""),
        ("[lapm]", "1:2: unknown field \"lapm\"; did you mean \"lamp\"?"),
        (
            "[lamp]\nlog = \"${NONE}\"",
            "2:1: lamp.log: the environment variable NONE is not set; set it, or write ${NONE:-default}",
        ),
    ] {
        assert_eq!(lines(text), [expected], "{text}");
    }
    // A program without that server does not know its section.
    let none = Config::parse("[lamp]", "tidegate.toml", &Builtins::default(), &crate::env).unwrap_err();
    assert!(none.to_string().contains("unknown field \"lamp\""), "{none}");
}

#[test]
fn notes_and_plain_secrets_are_told() {
    let notes = parse("[lamp]\ncolour = \"red\"\n[servers.a]\nbuiltin = \"lamp\"").unwrap().notes;
    assert_eq!(notes, ["lamp.colour has no effect: the lamp stands nowhere."]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let folder = crate::folder::Folder::new();
        let text =
            "[lamp]\nlamp_token = \"plain\"\nlog = \"pg://me:plain@db\"\n[servers.a]\nbuiltin = \"lamp\"\n";
        let path = folder.write("tidegate.toml", text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let notes = Config::load(&path, &builtins(), &crate::env).unwrap().notes.join("\n");
        assert!(notes.contains("(lamp.lamp_token, lamp.log)"), "{notes}");
    }
}

#[test]
fn the_schema_has_the_section() {
    let schema = schema(&builtins());
    let lamp = &schema["properties"]["lamp"];
    assert_eq!(lamp["description"], "The lamp at the end of the pier.");
    assert_eq!(lamp["allOf"][0]["$ref"], "#/definitions/Lamp");
    assert_eq!(schema["definitions"]["Stand"]["properties"]["height"]["description"], "In metres.");
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&serde_json::json!({"lamp": {"colour": "red", "stand": {"height": 3}}})));
    assert!(!validator.is_valid(&serde_json::json!({"lamp": {"color": "red"}})));
}

//! The reference page: its examples are good configurations, and it forgets no field.

use tidegate_config::{Config, schema};

use crate::builtins;

fn page() -> String {
    read("docs/configuration.md")
}

fn read(page: &str) -> String {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The `toml` blocks of the page.
fn examples(page: &str) -> Vec<&str> {
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn every_example_is_a_good_configuration() {
    let pages = ["docs/configuration.md", "docs/security.md", "docs/policy.md", "docs/audit.md", "README.md"]
        .map(read);
    let examples: Vec<&str> = pages.iter().flat_map(|page| examples(page)).collect();
    assert!(examples.len() >= 12);
    // Examples may refer to whatever they like.
    let env = |name: &str| (!name.contains("SEALING")).then(|| "value".to_owned());
    let folder = crate::folder::Folder::new();
    folder.write("secrets/github-token", "value");
    folder.write("secrets/sealing-key", "0123456789abcdef0123456789abcdef");
    folder.write("search.env", "KEY=value");
    folder.write("introspection-secret", "value");
    for example in examples {
        let path = folder.write("tidegate.toml", example);
        Config::load(&path, &builtins(), &env).unwrap_or_else(|error| panic!("{example}\n{error}"));
    }
}

#[test]
fn every_field_is_on_the_page() {
    let page = page();
    let schema = schema(&builtins());
    let definitions = schema["definitions"].as_object().unwrap();
    let all = definitions.values().chain([&schema]).filter_map(|part| part["properties"].as_object());
    for field in all.flat_map(|fields| fields.keys()) {
        assert!(page.contains(&format!("`{field}`")), "{field} is not documented");
    }
}

//! `docs/builtin.md` goes through this server: what it quotes must be there.

use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_guide_quotes_the_program() {
    let sources = [
        "servers/demo/Cargo.toml",
        "servers/demo/src/lib.rs",
        "servers/demo/src/tools.rs",
        "servers/memory/src/configuration/mod.rs",
        "command/Cargo.toml",
        "command/src/builtins.rs",
    ]
    .map(read)
    .join("\n");
    let guide = read("docs/builtin.md");
    let quotes = |language: &str| -> Vec<&str> {
        let blocks = guide.split(language).skip(1);
        blocks.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
    };
    let (code, manifests) = (quotes("```rust\n"), quotes("```toml\n"));
    assert!(code.len() >= 5 && manifests.len() >= 2);
    for quote in code.into_iter().chain(manifests) {
        assert!(sources.contains(quote), "this is no code of the program any more:\n{quote}");
    }
}

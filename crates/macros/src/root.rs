//! Where the generated code finds the framework: under the name that the crate around it has for `tidegate`, or for
//! `tidegate-server`, if that is all that it uses. The manifest says which; `crate = …` in the attribute says it instead.

use std::env;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;
use toml::de::{DeTable, DeValue};

/// The packages that have what the generated code refers to, the better one first.
const PACKAGES: [&str; 2] = ["tidegate", "tidegate-server"];

/// The path of the framework in the crate that is being compiled.
pub(crate) fn of_manifest() -> TokenStream {
    let name = env::var_os("CARGO_MANIFEST_DIR").and_then(|folder| name_in(&PathBuf::from(folder)));
    // Builds without Cargo have no manifest; what is not there is told by the compiler.
    let name = Ident::new(&name.unwrap_or_else(|| crate_name(PACKAGES[0])), Span::call_site());
    quote!(::#name)
}

fn name_in(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    // Looked at only for dependencies that are inherited.
    let workspace = || {
        let above = folder.ancestors().map(|folder| folder.join("Cargo.toml"));
        above.filter_map(|file| std::fs::read_to_string(file).ok()).find(|text| is_workspace(text))
    };
    name(&text, workspace)
}

/// The name that a manifest has for the framework. What the library uses comes before what only its tests use.
fn name(manifest: &str, workspace: impl Fn() -> Option<String>) -> Option<String> {
    let manifest = DeTable::parse(manifest).ok()?;
    let manifest = manifest.get_ref();
    let own = text(table(manifest, "package")?, "name");
    // Tests, examples and documentation of the framework itself.
    if let Some(own) = own.filter(|own| PACKAGES.contains(own)) {
        return Some(crate_name(own));
    }
    let targets = || table(manifest, "target").into_iter().flat_map(DeTable::iter);
    for kind in ["dependencies", "dev-dependencies"] {
        let of_targets = targets().filter_map(|(_, target)| table(target.get_ref().as_table()?, kind));
        let lists: Vec<&DeTable<'_>> = table(manifest, kind).into_iter().chain(of_targets).collect();
        for package in PACKAGES {
            let known = lists.iter().find_map(|list| key_of(list, package, &workspace));
            if known.is_some() {
                return known;
            }
        }
    }
    None
}

/// The name of a package in a list of dependencies.
fn key_of(list: &DeTable<'_>, package: &str, workspace: &impl Fn() -> Option<String>) -> Option<String> {
    let is_it = |key: &str, value: &DeValue<'_>| {
        let inherited = value.get("workspace").is_some();
        match value.as_table().and_then(|table| text(table, "package")) {
            Some(renamed) => renamed == package,
            None if key == package => true,
            // Under another name it can be this package only by the word of the workspace.
            None => inherited && workspace().is_some_and(|text| inherits(&text, key, package)),
        }
    };
    list.iter()
        .find(|(key, value)| is_it(key.get_ref(), value.get_ref()))
        .map(|(key, _)| crate_name(key.get_ref()))
}

/// Whether the workspace says that a dependency of this name is that package.
fn inherits(workspace: &str, key: &str, package: &str) -> bool {
    let Ok(manifest) = DeTable::parse(workspace) else { return false };
    let listed = table(manifest.get_ref(), "workspace").and_then(|all| table(all, "dependencies"));
    listed.and_then(|all| table(all, key)).and_then(|one| text(one, "package")) == Some(package)
}

fn is_workspace(manifest: &str) -> bool {
    DeTable::parse(manifest).is_ok_and(|manifest| manifest.get_ref().contains_key("workspace"))
}

fn table<'a, 'i>(around: &'a DeTable<'i>, name: &str) -> Option<&'a DeTable<'i>> {
    around.get(name)?.get_ref().as_table()
}

fn text<'a>(around: &'a DeTable<'_>, name: &str) -> Option<&'a str> {
    around.get(name)?.get_ref().as_str()
}

/// What a package is called in Rust.
fn crate_name(package: &str) -> String {
    package.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_says_where_the_framework_is() {
        let workspace = "[workspace.dependencies]\nwaves = { package = \"tidegate\", version = \"1\" }\n";
        for (dependencies, expected) in [
            ("[dependencies]\ntidegate = \"0.1\"", Some("tidegate")),
            ("[dependencies]\ntidegate.workspace = true", Some("tidegate")),
            ("[dependencies.tidegate]\nversion = \"0.1\"", Some("tidegate")),
            ("[dependencies]\nmcp = { package = \"tidegate\", version = \"0.1\" }", Some("mcp")),
            ("[dependencies.my-mcp]\npackage = \"tidegate\"", Some("my_mcp")),
            ("[dependencies]\nwaves.workspace = true", Some("waves")),
            ("[dependencies]\nother.workspace = true", None),
            ("[dependencies]\ntidegate-server = \"0.1\"\ntidegate-macros = \"0.1\"", Some("tidegate_server")),
            ("[dependencies]\ntidegate-server = \"0.1\"\ntidegate = \"0.1\"", Some("tidegate")),
            // The library cannot name what only its tests use.
            (
                "[dependencies]\ntidegate-server = \"0.1\"\n[dev-dependencies]\ntidegate = \"0.1\"",
                Some("tidegate_server"),
            ),
            ("[dev-dependencies]\ntidegate = \"0.1\"", Some("tidegate")),
            ("[target.'cfg(unix)'.dependencies]\ntidegate = \"0.1\"", Some("tidegate")),
            ("[dependencies]\ntidegate-like = \"0.1\"\nother = { package = \"x\" }", None),
            ("[dependencies", None),
        ] {
            let manifest = format!("[package]\nname = \"hello\"\n{dependencies}\n");
            let found = name(&manifest, || Some(workspace.to_owned()));
            assert_eq!(found.as_deref(), expected, "{dependencies}");
        }
        let own = |package: &str| name(&format!("[package]\nname = \"{package}\"\n"), || None);
        assert_eq!(own("tidegate").as_deref(), Some("tidegate"));
        assert_eq!(own("tidegate-server").as_deref(), Some("tidegate_server"));
    }
}

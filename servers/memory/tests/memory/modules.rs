//! The modules of this crate, as its sources have them: none uses what stands below it in the picture of `ARCHITECTURE.md`, so
//! there is no cycle, and the picture says exactly what uses what.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Its parts stand in the picture one by one.
const GROUP: &str = "server";
/// What a path is called that leads to the root of the crate, and so to everything.
const ROOT: &str = "lib.rs";

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The lines of the picture, from the top: a module, and what it uses.
fn picture() -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(folder().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, rest) = text.split_once("```text\n").expect("a picture");
    let (picture, _) = rest.split_once("```").expect("the end of the picture");
    let line = |line: &str| {
        let (module, used) = line.split_once('→').unwrap_or((line, ""));
        (module.trim().to_owned(), used.split_whitespace().map(str::to_owned).collect())
    };
    picture.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

/// A source file, by the path of its module.
struct Source {
    module: Vec<String>,
    text: String,
}

/// All sources but those of tests.
fn sources() -> Vec<Source> {
    fn walk(folder: &Path, module: &[String], found: &mut Vec<Source>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let mut inner = module.to_vec();
            if path.is_dir() {
                inner.push(name);
                walk(&path, &inner, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                if name != "mod" {
                    inner.push(name);
                }
                let text = std::fs::read_to_string(&path).expect("a source");
                found.push(Source { module: inner, text: code(&text) });
            }
        }
    }
    let mut found = Vec::new();
    walk(&folder().join("src"), &[], &mut found);
    let tests: BTreeSet<Vec<String>> = found.iter().flat_map(tests_of).collect();
    found.retain(|source| !tests.iter().any(|test| source.module.starts_with(test)));
    for source in &mut found {
        if let Some(at) = source.text.find("#[cfg(test)]\nmod tests {") {
            source.text.truncate(at);
        }
    }
    found
}

/// The text without comments.
fn code(text: &str) -> String {
    let line = |line: &str| match line.trim_start().starts_with("//") {
        true => String::new(),
        false => line.split(" // ").next().unwrap_or_default().to_owned() + "\n",
    };
    text.lines().map(line).collect()
}

/// The modules of a file that are there for tests only.
fn tests_of(source: &Source) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = source.text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            continue;
        }
        let next = lines.find(|line| !line.starts_with("#[")).unwrap_or_default();
        let named = next.trim_start_matches("pub(crate) ").strip_prefix("mod ");
        if let Some(name) = named.and_then(|rest| rest.strip_suffix(';')) {
            let own = |file: &[String]| file.iter().cloned().chain([name.to_owned()]).collect();
            found.push(own(&source.module));
            // A file that another path was given for stands beside.
            let parent = source.module.split_last().map_or(&[][..], |(_, parent)| parent);
            found.push(own(parent));
            if let Some(last) = source.module.last() {
                found.push(parent.iter().cloned().chain([format!("{last}_{name}")]).collect());
            }
        }
    }
    found
}

/// The paths in a text that begin at the crate or at a module above, as they are from the crate on.
fn paths(source: &Source) -> Vec<Vec<String>> {
    let text = source.text.as_str();
    let mut found = Vec::new();
    for (at, _) in text.match_indices("::") {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let before = text[..at].trim_end_matches(is_word);
        // What stands before it is no part of a longer path.
        if before.ends_with("::") || before.ends_with('$') {
            continue;
        }
        let base = match &text[before.len()..at] {
            "crate" => Vec::new(),
            "super" => source.module[..source.module.len() - 1].to_vec(),
            "self" => source.module.clone(),
            _ => continue,
        };
        tree(&text[at + 2..], base, &mut found);
    }
    found
}

/// Follows a path with all its branches. Returns what comes after it.
fn tree<'a>(text: &'a str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start().trim_start_matches(',').trim_start();
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => rest = tree(rest, path.clone(), found),
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    match word {
        "super" => drop(path.pop()),
        "self" | "" => {}
        word => path.push(word.to_owned()),
    }
    if let Some(rest) = rest.strip_prefix("::") {
        return tree(rest, path, found);
    }
    found.push(path);
    let alias = rest
        .strip_prefix(" as ")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'));
    let rest = alias.unwrap_or(rest);
    match rest.is_empty() || rest.starts_with([',', '}']) || rest.trim_start().starts_with(['}', ',']) {
        true => rest,
        // Anything else that follows is no part of a list.
        false => &rest[rest.char_indices().nth(1).map_or(rest.len(), |(next, _)| next)..],
    }
}

/// The module of the picture that a path leads to.
fn part(modules: &BTreeSet<Vec<String>>, path: &[String]) -> String {
    match path {
        [first, second, ..] if first == GROUP && modules.contains(&path[..2]) => format!("{GROUP}::{second}"),
        [first, ..] if modules.contains(&path[..1]) => first.clone(),
        _ => ROOT.to_owned(),
    }
}

/// What uses what, as the sources have it.
fn arrows() -> Arrows {
    let sources = sources();
    let modules: BTreeSet<Vec<String>> = sources.iter().map(|source| source.module.clone()).collect();
    let mut arrows = Arrows::new();
    for source in &sources {
        let own = part(&modules, &source.module);
        if source.module == ["lib"] {
            continue;
        }
        let used = arrows.entry(own.clone()).or_default();
        used.extend(paths(source).iter().map(|path| part(&modules, path)).filter(|other| *other != own));
        if source.module == [GROUP] {
            // It puts its parts together.
            let parts = modules.iter().filter(|module| module.len() == 2 && module[0] == GROUP);
            used.extend(parts.map(|module| module.join("::")));
        }
    }
    arrows
}

/// The picture as it should be, in the order that it has.
fn drawn(order: &[(String, BTreeSet<String>)], arrows: &Arrows) -> String {
    let mut text = String::new();
    let rest = arrows.keys().filter(|module| !order.iter().any(|(known, _)| known == *module));
    for module in
        order.iter().map(|(module, _)| module).filter(|module| arrows.contains_key(*module)).chain(rest)
    {
        let used: Vec<&str> = arrows[module].iter().map(String::as_str).collect();
        let arrow = if used.is_empty() { String::new() } else { format!("→ {}", used.join(" ")) };
        let _ = writeln!(text, "{}", format!("{module:<18} {arrow}").trim_end());
    }
    text
}

#[test]
fn the_picture_is_what_the_sources_say() {
    let (picture, arrows) = (picture(), arrows());
    let shown: Arrows = picture.iter().cloned().collect();
    assert!(arrows.len() > 20, "the sources were not found: {arrows:?}");
    assert!(shown == arrows, "ARCHITECTURE.md should say\n\n{}", drawn(&picture, &arrows));
}

#[test]
fn no_arrow_goes_down() {
    let order: Vec<String> = picture().into_iter().map(|(module, _)| module).collect();
    let row = |name: &str| order.iter().position(|module| module == name);
    for (module, used) in arrows() {
        for other in used {
            assert_ne!(other, ROOT, "{module} must name where a thing is, and not the root of the crate");
            assert!(row(&other) < row(&module), "{module} must not use {other}, which stands below it");
        }
    }
}

#[test]
fn paths_are_found_in_all_their_forms() {
    let source = |text: &str| Source { module: vec!["a".to_owned(), "b".to_owned()], text: text.to_owned() };
    let found =
        |text: &str| -> Vec<String> { paths(&source(text)).iter().map(|path| path.join("::")).collect() };
    assert_eq!(found("use crate::x::{self, y::{Z, w as v}, q};"), ["x", "x::y::Z", "x::y::w", "x::q"]);
    assert_eq!(found("use super::c;\nuse super::super::d::E;"), ["a::c", "d::E"]);
    assert_eq!(found("let f: fn(crate::x::Y) = super::z(1, crate::w::V);"), ["x::Y", "a::z", "w::V"]);
    assert_eq!(found("pub(in crate::x) fn f() {}"), ["x"]);
    assert_eq!(found("serde_json::json!({}); Self::new()"), [""; 0]);
}

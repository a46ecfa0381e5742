//! What happens when a revision of the protocol is added: the compiler names what must be decided in the table, and the test
//! below lists every other place that knows one particular revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TABLE: &str = include_str!("../src/revision.rs");
const NEWEST: &str = "V2026_07_28 = \"2026-07-28\", Modern;";
const DECIDED: &str = "const DECIDED: Revision = Revision::V2026_07_28;";

/// What the compiler says about a table: each error with its line.
fn compile(name: &str, table: &str) -> Vec<(usize, String)> {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("revisions-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let source = folder.join(format!("{name}.rs"));
    fs::write(&source, table).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=short", "--out-dir"])
        .arg(&folder)
        .arg(&source)
        .output()
        .expect("tests are run where there is a compiler");
    fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let errors: Vec<_> = said
        .lines()
        .filter_map(|line| {
            let (place, what) = line.split_once(": error")?;
            let line = place.rsplit(':').nth(1)?.parse().ok()?;
            Some((line, what.to_owned()))
        })
        .collect();
    assert_eq!(output.status.success(), errors.is_empty(), "{said}");
    errors
}

/// The table with another row.
fn with_row(row: &str) -> String {
    assert_eq!(TABLE.matches(NEWEST).count(), 1, "the newest row is the last one");
    TABLE.replace(NEWEST, &format!("{NEWEST}\n    /// Invented.\n    {row}"))
}

fn line_of(table: &str, text: &str) -> usize {
    1 + table.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn a_new_revision_must_be_decided_upon() {
    assert_eq!(compile("as_it_is", TABLE), []);

    let undecided = with_row("V2099_01_01 = \"2099-01-01\";");
    let errors = compile("without_an_era", &undecided);
    assert!(errors.iter().any(|(line, _)| *line == line_of(&undecided, "V2099_01_01 =")), "{errors:?}");

    let undecided = with_row("V2099_01_01 = \"2099-01-01\", Modern;");
    let errors = compile("without_features", &undecided);
    let [(line, what)] = errors.as_slice() else { panic!("{errors:?}") };
    assert!(what.contains("write in Feature::range which features it knows"), "{what}");
    let assertion = line_of(&undecided, "const _: () = assert!(");
    assert!((assertion..assertion + 4).contains(line), "line {line}: {what}");
}

#[test]
fn what_was_decided_is_all_that_changes() {
    assert_eq!(TABLE.matches(DECIDED).count(), 1);
    let now = DECIDED.replace("V2026_07_28", "V2099_01_01");
    let check = |era: &str, also: &str| {
        let table = with_row(&format!("V2099_01_01 = \"2099-01-01\", {era};")).replace(DECIDED, &now);
        // No feature reaches a revision that the table does not name for it.
        let features = "assert!(!Revision::V2099_01_01.allows(Feature::Audio) && Revision::V2026_07_28.allows(Feature::Audio));";
        compile(&format!("decided_{era}"), &format!("{table}\nconst _: () = {{ {features} {also} }};\n"))
    };
    let modern = "assert!(Revision::V2099_01_01.is_modern() && Revision::MODERN.len() == 2 && Revision::LEGACY.len() == 4); \
                  assert!(matches!(Revision::LATEST_MODERN, Revision::V2099_01_01)); \
                  assert!(matches!(Revision::LATEST_LEGACY, Revision::V2025_11_25));";
    assert_eq!(check("Modern", modern), []);
    // Whatever comes after a modern revision is not taken for a legacy one, or the other way round: the table would have to
    // be of another shape then.
    let errors = check("Legacy", "");
    assert!(errors.iter().any(|(_, what)| what.contains("eras do not mix")), "{errors:?}");
}

/// Everything outside of the table that knows one particular revision, and why: a part of the line, and the reason. Whoever
/// adds a revision goes through these; whoever adds a line here says why a feature would not do.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "crates/protocol/src/error/symbol.rs",
        "Revision::V2025_11_25) => -32042",
        "the one revision that has this number; later ones must not send it",
    ),
    (
        "crates/protocol/src/lower/content.rs",
        "revision >= Revision::V2025_11_25",
        "a short cut: this revision knows all kinds of content that 2026-07-28 has",
    ),
    (
        "crates/protocol/src/lower/definition.rs",
        "revision < Revision::V2025_11_25",
        "not in its schema, but clients of this revision negotiate extensions all the same",
    ),
    (
        "crates/protocol/src/lower/question.rs",
        "content::tool_result(Revision::V2025_11_25",
        "results in sampling requests came with this revision, in its words",
    ),
    (
        "crates/edge/src/legacy/client_session.rs",
        "let revision = Revision::V2025_03_26",
        "what a client without a version header speaks (2025-11-25 transports, Protocol Version Header)",
    ),
    ("crates/edge/src/http/legacy_post.rs", "Some(Revision::V2025_03_26)", "the same"),
    ("crates/edge/src/http/http_sse.rs", "Some(Revision::V2024_11_05)", "whose transport HTTP+SSE is"),
    (
        "crates/edge/src/stdio/connection.rs",
        "batches are part of revision 2025-03-26 only",
        "a sentence about the one revision that has Feature::Batching",
    ),
    (
        "crates/config/src/resolve/protocol.rs",
        "const THREE_STEPS: Revision = Revision::V2024_11_05",
        "what servers with the three-step handshake speak",
    ),
    ("command/src/commands/doctor/clients.rs", "supports only 2026-07-28", "a sentence about eras"),
    ("command/src/commands/doctor/clients.rs", "does not support 2026-07-28", "a sentence about eras"),
    ("command/src/commands/doctor/clients.rs", "HTTP+SSE transport of 2024-11-05", "the name of a transport"),
    ("command/src/term/form/check.rs", "such as 2026-07-28", "a date like any other"),
];

#[test]
fn every_place_that_knows_one_revision_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for part in ["crates", "servers"] {
        for folder in fs::read_dir(root.join(part)).unwrap() {
            rust_files(&folder.unwrap().path().join("src"), &mut files);
        }
    }
    for part in ["command", "tidegate"] {
        rust_files(&root.join(part).join("src"), &mut files);
    }
    assert!(files.len() > 300, "only {} files were found", files.len());
    let mut seen = vec![false; KNOWN.len()];
    let mut unknown = Vec::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        if name == "crates/protocol/src/revision.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // Tests may name what they like. They come last in a file.
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, line)| names_a_revision(line)) {
            match KNOWN.iter().position(|(file, part, _)| *file == name && line.contains(part)) {
                Some(at) => seen[at] = true,
                None => unknown.push(format!("{name}:{}: {}", number + 1, line.trim())),
            }
        }
    }
    assert!(unknown.is_empty(), "these are not in the list of this test:\n{}", unknown.join("\n"));
    let gone: Vec<_> = KNOWN.iter().zip(seen).filter(|(_, seen)| !seen).map(|(known, _)| known).collect();
    assert!(gone.is_empty(), "these are in the list of this test, and nowhere else: {gone:#?}");
}

/// Whether a line of code names one revision, all of them at once, or has the date of one in a text.
fn names_a_revision(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("//") {
        return false;
    }
    let code = line.split(" // ").next().unwrap_or_default();
    let dated = tidegate_protocol::Revision::ALL.iter().any(|revision| {
        let name = revision.as_str();
        code.contains(&format!("V{}", name.replace('-', "_"))) || code.contains(name)
    });
    dated || code.contains("use Revision::") || code.contains("Revision::*")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            rust_files(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

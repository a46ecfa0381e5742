//! [`Kind`]: what kind of text a document is, by where it came from.

/// What kind of text it is. How it is cut depends on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Markdown,
    Html,
    Json,
    Csv,
    Code,
}

/// What can be read, for sentences that refuse something else.
pub(crate) const READABLE: &str = "plain text, Markdown, HTML, JSON, CSV and source code";

/// The endings of file names that are source code, or read like it.
const CODE: &[&str] = &[
    "awk",
    "bash",
    "bat",
    "c",
    "cc",
    "cfg",
    "clj",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "cxx",
    "d",
    "dart",
    "diff",
    "el",
    "elm",
    "erl",
    "ex",
    "exs",
    "f90",
    "fs",
    "go",
    "gradle",
    "graphql",
    "groovy",
    "h",
    "hcl",
    "hh",
    "hpp",
    "hs",
    "ini",
    "java",
    "jl",
    "js",
    "jsx",
    "kt",
    "less",
    "lisp",
    "lua",
    "m",
    "make",
    "mjs",
    "ml",
    "nim",
    "nix",
    "pas",
    "patch",
    "php",
    "pl",
    "pm",
    "properties",
    "proto",
    "ps1",
    "py",
    "pyi",
    "r",
    "rb",
    "rs",
    "scala",
    "scss",
    "sh",
    "sol",
    "sql",
    "swift",
    "tcl",
    "tex",
    "tf",
    "toml",
    "ts",
    "tsx",
    "v",
    "vb",
    "vim",
    "vue",
    "wat",
    "xml",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

impl Kind {
    /// The kind that the name of a file speaks of.
    pub(crate) fn of_name(name: &str) -> Option<Kind> {
        let (_, ending) = name.rsplit_once('.')?;
        let ending = ending.to_ascii_lowercase();
        Some(match ending.as_str() {
            "md" | "markdown" | "mdx" | "mkd" => Kind::Markdown,
            "html" | "htm" | "xhtml" => Kind::Html,
            "json" | "jsonl" | "ndjson" | "geojson" => Kind::Json,
            "csv" | "tsv" => Kind::Csv,
            "txt" | "text" | "log" | "rst" | "adoc" | "org" => Kind::Plain,
            other if CODE.contains(&other) => Kind::Code,
            _ => return None,
        })
    }

    /// The kind that a content type speaks of. `Err` if it is nothing that can be read, `Ok(None)` if it says nothing.
    pub(crate) fn of_type(content_type: &str) -> Result<Option<Kind>, ()> {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Ok(Some(match essence.as_str() {
            "" | "application/octet-stream" | "binary/octet-stream" | "text/plain" => return Ok(None),
            "text/html" | "application/xhtml+xml" => Kind::Html,
            "text/markdown" | "text/x-markdown" => Kind::Markdown,
            "text/csv" | "application/csv" | "text/tab-separated-values" => Kind::Csv,
            "application/json" | "application/x-ndjson" | "application/jsonl" => Kind::Json,
            "application/xml"
            | "application/javascript"
            | "application/x-javascript"
            | "application/ecmascript"
            | "application/yaml"
            | "application/x-yaml"
            | "application/toml"
            | "application/sql"
            | "application/x-sh"
            | "application/graphql" => Kind::Code,
            other if other.ends_with("+json") => Kind::Json,
            other if other.ends_with("+xml") && !other.starts_with("image/") => Kind::Code,
            other if other.starts_with("text/") => return Ok(None),
            _ => return Err(()),
        }))
    }

    /// The kind that a text looks like.
    pub(crate) fn of_text(text: &str) -> Kind {
        let start = text.trim_start();
        let starts =
            |what: &str| start.get(..what.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(what));
        let heading = |line: &str| {
            let marks = line.bytes().take_while(|b| *b == b'#').count();
            (1..=6).contains(&marks) && line[marks..].starts_with(' ')
        };
        if starts("<!doctype html") || starts("<html") {
            Kind::Html
        } else if text.lines().take(2_000).any(heading) {
            Kind::Markdown
        } else {
            Kind::Plain
        }
    }

    /// The content type of what is kept. HTML is kept as the text it shows, with headings as in Markdown.
    pub(crate) fn mime_type(self) -> &'static str {
        match self {
            Kind::Plain | Kind::Code => "text/plain",
            Kind::Markdown | Kind::Html => "text/markdown",
            Kind::Json => "application/json",
            Kind::Csv => "text/csv",
        }
    }

    /// What the file says of it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Markdown => "markdown",
            Kind::Html => "html",
            Kind::Json => "json",
            Kind::Csv => "csv",
            Kind::Code => "code",
        }
    }

    pub(crate) fn named(name: &str) -> Kind {
        let all = [Kind::Markdown, Kind::Html, Kind::Json, Kind::Csv, Kind::Code];
        all.into_iter().find(|kind| kind.as_str() == name).unwrap_or(Kind::Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_types_and_texts_speak_of_kinds() {
        assert_eq!(Kind::of_name("a/README.MD"), Some(Kind::Markdown));
        assert_eq!(Kind::of_name("main.rs"), Some(Kind::Code));
        assert_eq!(Kind::of_name("Makefile"), None);
        assert_eq!(Kind::of_type("text/html; charset=utf-8"), Ok(Some(Kind::Html)));
        assert_eq!(Kind::of_type("application/ld+json"), Ok(Some(Kind::Json)));
        assert_eq!(Kind::of_type("text/plain"), Ok(None));
        for refused in ["image/png", "image/svg+xml", "application/pdf", "application/zip", "video/mp4"] {
            assert_eq!(Kind::of_type(refused), Err(()), "{refused}");
        }
        assert_eq!(Kind::of_text("\n<!DOCTYPE html><p>"), Kind::Html);
        assert_eq!(Kind::of_text("x\n## y"), Kind::Markdown);
        assert_eq!(Kind::of_text("#!/bin/sh\n#x"), Kind::Plain);
        for kind in [Kind::Plain, Kind::Markdown, Kind::Html, Kind::Json, Kind::Csv, Kind::Code] {
            assert_eq!(Kind::named(kind.as_str()), kind);
        }
    }
}

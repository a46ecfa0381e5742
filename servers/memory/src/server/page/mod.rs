//! [`page`]: what is remembered, to look at in a browser.
//!
//! The page speaks MCP with the endpoint beside it, like any other client: what it shows comes from the tools and
//! resources that are there for everybody. The files are served as they are; `app.js` is where to begin reading.

mod timeline;

pub use tidegate_builtin::PageFile;

pub(crate) use timeline::{TIMELINE, add};

/// Where the page is.
pub const PAGE: &str = "/memory";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const FILES: &[(&str, &str, &str)] = &[
    (PAGE, HTML, include_str!("memory.html")),
    ("/memory/memory.css", CSS, include_str!("memory.css")),
    ("/memory/icon.svg", SVG, include_str!("icon.svg")),
    ("/memory/app.js", SCRIPT, include_str!("app.js")),
    ("/memory/mcp.js", SCRIPT, include_str!("mcp.js")),
    ("/memory/memory.js", SCRIPT, include_str!("memory.js")),
    ("/memory/layout.js", SCRIPT, include_str!("layout.js")),
    ("/memory/drawing.js", SCRIPT, include_str!("drawing.js")),
    ("/memory/view.js", SCRIPT, include_str!("view.js")),
    ("/memory/hands.js", SCRIPT, include_str!("hands.js")),
    ("/memory/time.js", SCRIPT, include_str!("time.js")),
    ("/memory/panes.js", SCRIPT, include_str!("panes.js")),
    ("/memory/dom.js", SCRIPT, include_str!("dom.js")),
    ("/memory/colour.js", SCRIPT, include_str!("colour.js")),
    ("/memory/changes.js", SCRIPT, include_str!("changes.js")),
    ("/memory/confirm.js", SCRIPT, include_str!("confirm.js")),
];

/// The files of the page, which talks to the MCP endpoint at the path `endpoint` of the same server.
pub fn page(endpoint: &str) -> Vec<PageFile> {
    let of = |&(path, media_type, body): &(&'static str, &'static str, &str)| PageFile {
        path,
        media_type,
        body: match path == PAGE {
            true => body.replace("{endpoint}", &escaped(endpoint)),
            false => body.to_owned(),
        },
    };
    FILES.iter().map(of).collect()
}

/// A text as the value of an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_knows_where_the_endpoint_is() {
        let html = &page("/a\"<b&")[0];
        assert_eq!((html.path, html.media_type), (PAGE, HTML));
        assert!(html.body.contains("content=\"/a&quot;&lt;b&amp;\""), "{}", html.body);
        assert!(!html.body.contains("{endpoint}"));
    }

    #[test]
    fn every_file_that_is_asked_for_is_there() {
        let files = page("/mcp");
        let there = |name: &str| files.iter().any(|file| file.path == format!("{PAGE}/{name}"));
        for file in &files {
            for line in file.body.lines() {
                let asked = line.split_once("from './").or_else(|| line.split_once("=\"memory/"));
                if let Some((_, rest)) = asked {
                    let name = rest.split(['\'', '"']).next().unwrap_or_default();
                    assert!(there(name), "{} asks for {name}", file.path);
                }
            }
        }
    }

    #[test]
    fn nothing_is_asked_of_others_and_no_text_becomes_markup() {
        for file in page("/mcp") {
            for forbidden in
                ["http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "style=\""]
            {
                // The name of the language of drawings looks like an address and is none.
                let body = file.body.replace("http://www.w3.org/2000/svg", "");
                assert!(!body.contains(forbidden), "{} has {forbidden}", file.path);
            }
        }
    }
}

//! [`Pages`]: what a server shows in a browser, beside the MCP endpoint.

/// The pages of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    /// What they are called where `tidegate serve` says where everything is: `Memory`.
    pub title: &'static str,
    /// The link to them on the front page: `Browse the memory`.
    pub link: &'static str,
    /// Their files. The first is the page that the link leads to; the paths of the others are below its own.
    pub files: Vec<PageFile>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFile {
    /// Where it is served.
    pub path: &'static str,
    /// What it is: `text/html; charset=utf-8`.
    pub media_type: &'static str,
    /// What is in it. Pages may have no scripts or styles inside: these are files of their own.
    pub body: String,
}

impl Pages {
    /// Where they begin.
    pub fn path(&self) -> Option<&'static str> {
        self.files.first().map(|file| file.path)
    }
}

//! Sending the user to a page (elicitation in URL mode).

use std::io;

use url::{Host, Url};

use super::fill::{choice, introduce};
use super::{Action, Answer, Ask};
use crate::term::clean;
use crate::term::style::Paint;

/// Shows where `server` wants to send the user, asks for consent, and waits until the user is done there. Nothing is
/// opened, and nothing of what happens there is seen here.
pub(crate) fn visit(
    ask: &mut dyn Ask,
    server: &str,
    message: &str,
    address: &str,
    paint: Paint,
) -> io::Result<Answer> {
    introduce(ask, server, "wants you to visit a page:", message, paint)?;
    let url = match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ => {
            ask.say(&paint.bad("Refused: the URL is not a web page (http or https)."))?;
            return Ok(Answer::bare(Action::Decline));
        }
    };
    // As a browser would take it; everything unusual is escaped in this form.
    ask.say(&format!("  URL:  {}", clean::line(url.as_str())))?;
    ask.say(&format!("  Host: {}", paint.bold(clean::line(url.host_str().unwrap_or_default()))))?;
    for warning in warnings(&url) {
        ask.say(&paint.warning(format!("  Careful: {warning}.")))?;
    }
    match choice(ask, "Go there? [y]es, [n]o, [c]ancel: ", "ync")? {
        Some('y') => {}
        Some('n') => return Ok(Answer::bare(Action::Decline)),
        _ => return Ok(Answer::bare(Action::Cancel)),
    }
    let prompt = "Open the URL in a browser. Press Enter when you are done there, or enter c to cancel: ";
    match ask.line(prompt)? {
        Some(line) if !line.trim().to_lowercase().starts_with('c') => Ok(Answer::bare(Action::Accept)),
        _ => Ok(Answer::bare(Action::Cancel)),
    }
}

/// What about an address deserves a second look.
fn warnings(url: &Url) -> Vec<String> {
    let mut warnings = Vec::new();
    if !url.username().is_empty() || url.password().is_some() {
        warnings.push("the part before the @ is not the host".to_owned());
    }
    match url.host() {
        Some(Host::Domain(domain)) if domain.split('.').any(|part| part.starts_with("xn--")) => {
            warnings.push("the host has characters that can look like others".to_owned());
        }
        Some(Host::Ipv4(ip)) if !ip.is_loopback() => {
            warnings.push("the host is an IP address".to_owned());
        }
        _ => {}
    }
    let is_here = match url.host() {
        Some(Host::Domain(domain)) => domain == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !is_here {
        warnings.push("the connection is not encrypted (http)".to_owned());
    }
    warnings
}

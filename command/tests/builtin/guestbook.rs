//! A server that brings everything: a guest book.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate::protocol::Error;
use tidegate::{Server, ToolError, tool};
use tidegate_builtin::{Builtin, BuiltinServer, Host, Opened, PageFile, Pages, Reading};

pub(crate) fn builtin() -> Builtin {
    Builtin::of::<GuestbookServer>()
}

struct GuestbookServer;

/// The guest book.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Guestbook {
    /// How many may sign, 1 to 100. Default 10.
    most: Option<usize>,
    /// Whose it is.
    owner: Option<String>,
}

#[derive(Debug)]
struct GuestbookSettings {
    most: usize,
    owner: String,
}

impl BuiltinServer for GuestbookServer {
    const NAME: &'static str = "guestbook";
    const DESCRIPTION: &'static str = "The guest book.";
    type Written = Guestbook;
    type Settings = GuestbookSettings;

    fn settings(written: &Guestbook, reading: &mut Reading<'_>) -> GuestbookSettings {
        let most = written.most.unwrap_or(10);
        if !(1..=100).contains(&most) {
            reading.wrong(&["most"], "must be from 1 to 100");
        }
        GuestbookSettings { most, owner: written.owner.clone().unwrap_or_else(|| "nobody".to_owned()) }
    }

    fn open(settings: &GuestbookSettings, _: Host) -> Result<Opened, Error> {
        let book = Book { most: settings.most, owner: settings.owner.clone(), guests: Mutex::default() };
        Ok(Opened::new(Server::new("guestbook", "1.0.0").tool(sign(Arc::new(book))).build().bare()))
    }

    fn pages(endpoint: &str) -> Option<Pages> {
        let body = format!("<!doctype html>\n<title>Guests</title>\n<p>Sign at {endpoint}</p>\n");
        let media_type = "text/html; charset=utf-8";
        let files = vec![PageFile { path: "/guestbook", media_type, body }];
        Some(Pages { title: "Guests", link: "Read the guest book", files })
    }
}

struct Book {
    most: usize,
    owner: String,
    guests: Mutex<Vec<String>>,
}

/// Signs the guest book
#[tool]
fn sign(#[state] book: Arc<Book>, name: String) -> Result<String, ToolError> {
    let mut guests = book.guests.lock().unwrap_or_else(PoisonError::into_inner);
    if guests.len() == book.most {
        return Err("the guest book is full".into());
    }
    guests.push(name);
    Ok(format!("{} thanks guest {}", book.owner, guests.len()))
}

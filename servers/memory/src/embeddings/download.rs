//! [`download`]: brings a model2vec model from Hugging Face, or from wherever else it is kept in the same way.

use std::path::Path;
use std::time::Duration;

use tidegate_web::{Error, Follow, Request, Web};
use tokio::task::spawn_blocking;
use url::Url;

use super::local::FILES;
use crate::error::{Code, Fault, Result};

/// Where models are.
pub const HUGGING_FACE: &str = "https://huggingface.co";
/// How long one file may take.
const WITHIN: Duration = Duration::from_secs(3600);
/// How long to wait for the next piece of it.
const SILENCE: Duration = Duration::from_secs(60);
/// Largest file.
const MAX_FILE: u64 = 4 * 1024 * 1024 * 1024;
/// How often a file may be somewhere else.
const ELSEWHERE: usize = 5;

/// Brings the three files of the model `repo`, such as `minishlab/potion-base-8M`, into `folder`. `progress` hears the
/// name of the file, how many bytes of it are there, and how many it has if that is known.
///
/// A file is there as a whole or not at all: what was begun has another name until it is complete.
pub async fn download(
    base: &str,
    repo: &str,
    folder: &Path,
    mut progress: impl FnMut(&str, u64, Option<u64>) + Send,
) -> Result<(), Fault> {
    let named = |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(plain);
    if repo.split('/').count() != 2 || !repo.split('/').all(named) {
        return Err(Fault::input("model", "must be an owner and a name, such as minishlab/potion-base-8M"));
    }
    let web = Web::default();
    std::fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
    for name in FILES {
        let address = format!("{}/{repo}/resolve/main/{name}", base.trim_end_matches('/'));
        let url = Url::parse(&address).map_err(|_| Fault::input("base", "must be an address"))?;
        // What began with a checked certificate goes on with one.
        let asked = Request::get(url).within(WITHIN).silence(SILENCE).follow(Follow::NoDowngrade, ELSEWHERE);
        let mut answer = web.send(asked).await.map_err(|error| failed(name, &said(&error)))?;
        if !answer.status().is_success() {
            return Err(failed(&address, &format!("the answer was {}", answer.status())));
        }
        let (whole, mut there) = (answer.length(), 0);
        let begun = folder.join(format!("{name}.part"));
        let mut file = std::fs::File::create(&begun).map_err(|error| unwritten(&begun, &error))?;
        progress(name, 0, whole);
        while let Some(chunk) = answer.chunk().await.map_err(|error| failed(name, &said(&error)))? {
            there += chunk.len() as u64;
            if there > MAX_FILE {
                return Err(failed(name, &format!("it has more than {MAX_FILE} bytes")));
            }
            let written =
                spawn_blocking(move || std::io::Write::write_all(&mut file, &chunk).map(|()| file)).await;
            let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            file = written.map_err(|error| unwritten(&begun, &error))?;
            progress(name, there, whole);
        }
        let end = folder.join(name);
        file.sync_all()
            .and_then(|()| std::fs::rename(&begun, &end))
            .map_err(|error| unwritten(&end, &error))?;
    }
    Ok(())
}

fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

fn said(error: &Error) -> String {
    match error.is_timeout() {
        true => "it took too long".to_owned(),
        false => "the server cannot be reached, or broke off".to_owned(),
    }
}

fn failed(what: &str, reason: &str) -> Fault {
    Fault::new(Code::Outside, format!("{what} could not be downloaded: {reason}"))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Fault {
    Fault::new(Code::Outside, format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::loopback::serve;
    use super::*;

    #[tokio::test]
    async fn three_files_are_brought_from_wherever_they_are() {
        let (base, seen) = serve(|_, (head, _)| match head.contains("/elsewhere/") {
            true => (200, String::new(), b"content".to_vec()),
            false => (302, "location: /elsewhere/x\r\n".to_owned(), Vec::new()),
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut heard = Vec::new();
        download(&base, "some/model", folder, |name, there, whole| {
            heard.push((name.to_owned(), there, whole))
        })
        .await
        .unwrap();
        for name in FILES {
            assert_eq!(std::fs::read(folder.join(name)).unwrap(), b"content");
            assert!(heard.contains(&(name.to_owned(), 7, Some(7))), "{heard:?}");
        }
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 3);
        assert!(seen.lock().unwrap()[0].0.starts_with("GET /some/model/resolve/main/config.json "));
    }

    #[tokio::test]
    async fn what_is_not_there_leaves_no_file() {
        let (base, _) = serve(|_, _| (404, String::new(), b"no".to_vec())).await;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let fault = download(&base, "some/model", folder, |_, _, _| ()).await.unwrap_err();
        assert!(fault.message.contains("404"), "{fault}");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
        for repo in ["model", "../model", "a/b/c", "a/b?c", "/b"] {
            let fault = download(&base, repo, folder, |_, _, _| ()).await.unwrap_err();
            assert!(fault.message.contains("owner"), "{repo}: {fault}");
        }
    }
}

//! Tokens in files.

use std::path::PathBuf;
use std::time::Duration;

use crate::oauth::{
    Credentials, FileStore, MemoryStore, Origin, Registration, Scopes, TokenKind, TokenStore, Tokens,
};

const SERVER: &str = "https://mcp.example/mcp?key=k";

fn credentials(server: &str, issuer: &str, saved_at: u64) -> Credentials {
    Credentials {
        server: server.to_owned(),
        issuer: issuer.to_owned(),
        token_endpoint: format!("{issuer}/token"),
        resource: server.to_owned(),
        registration: Registration {
            client_id: "c".to_owned(),
            origin: Origin::Dynamic,
            secret: Some("s".into()),
            auth_method: Some("client_secret_basic".to_owned()),
            expires_at: Some(5),
            redirect_uri: Some("http://127.0.0.1:1/callback".to_owned()),
        },
        tokens: Some(Tokens {
            access: "a".into(),
            kind: TokenKind::Dpop,
            refresh: Some("r".into()),
            issued_at: 1,
            expires_at: Some(2),
        }),
        requested: Scopes::parse("x y"),
        granted: Scopes::parse("x"),
        dpop_key: Some("k".into()),
        saved_at,
    }
}

#[tokio::test]
async fn stores_keep_servers_and_issuers_apart() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tokens");
    let stores: [Box<dyn TokenStore>; 2] =
        [Box::new(MemoryStore::new()), Box::new(FileStore::at(&directory))];
    for store in stores {
        assert!(store.load(SERVER).await.unwrap().is_empty());
        assert_eq!(store.remove(SERVER).await.unwrap(), 0);
        let first = credentials(SERVER, "https://one.example", 1);
        let second = credentials(SERVER, "https://two.example", 2);
        let other = credentials("https://mcp.example/mcp", "https://one.example", 3);
        for one in [&first, &second, &other] {
            store.save(one).await.unwrap();
        }
        assert_eq!(store.load(SERVER).await.unwrap(), [second.clone(), first.clone()]);
        // Saving replaces.
        let first = Credentials { tokens: None, saved_at: 4, ..first };
        store.save(&first).await.unwrap();
        assert_eq!(store.load(SERVER).await.unwrap(), [first, second]);
        assert_eq!(store.remove(SERVER).await.unwrap(), 2);
        assert!(store.load(SERVER).await.unwrap().is_empty());
        assert_eq!(store.load(&other.server).await.unwrap(), [other]);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_files() {
    use std::os::unix::fs::PermissionsExt;

    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tokens");
    // A directory that somebody left open is closed.
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    let store = FileStore::at(&directory);
    let own = credentials(SERVER, "https://one.example", 1);
    let guard = store.lock(SERVER, Duration::ZERO).await.unwrap();
    store.save(&own).await.unwrap();
    assert_eq!(mode(&directory), 0o700);
    let place = PathBuf::from(store.place(&own));
    assert!(place.starts_with(&directory) && !place.to_str().unwrap().contains("key"));
    let files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.contains(&place));
    assert_eq!(files.len(), 2, "nothing is left behind: {files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{file:?}");
    }
    drop(guard);
}

#[tokio::test]
async fn only_one_at_a_time_gets_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tokens");
    let stores: [[Box<dyn TokenStore>; 2]; 2] =
        [[Box::new(FileStore::at(&directory)), Box::new(FileStore::at(&directory))], {
            let store = MemoryStore::new();
            [Box::new(store.clone()), Box::new(store)]
        }];
    for [one, other] in stores {
        let guard = one.lock(SERVER, Duration::ZERO).await.unwrap();
        let error = other.lock(SERVER, Duration::from_millis(60)).await.unwrap_err();
        assert!(error.detail().contains("logging in"), "{error}");
        drop(guard);
        other.lock(SERVER, Duration::from_secs(1)).await.unwrap();
    }
}

#[tokio::test]
async fn damaged_files_are_passed_over_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tokens");
    let store = FileStore::at(&directory);
    let own = credentials(SERVER, "https://one.example", 1);
    store.save(&own).await.unwrap();
    std::fs::write(store.place(&own), "{").unwrap();
    assert!(store.load(SERVER).await.unwrap().is_empty());
    store.save(&own).await.unwrap();
    assert_eq!(store.load(SERVER).await.unwrap(), [own]);
}

#[tokio::test]
async fn trouble_with_files_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tokens");
    // A file where the directory should be.
    std::fs::write(&directory, "").unwrap();
    let store = FileStore::at(&directory);
    let error = store.save(&credentials(SERVER, "https://one.example", 1)).await.unwrap_err();
    assert!(error.detail().contains("check the permissions of"), "{error}");
}

#[tokio::test]
async fn readers_never_see_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tokens");
    let store = FileStore::at(&directory);
    let own = credentials(SERVER, "https://one.example", 1);
    store.save(&own).await.unwrap();
    let writer = {
        let (store, own) = (store.clone(), own.clone());
        tokio::spawn(async move {
            for saved_at in 2..100 {
                store.save(&Credentials { saved_at, ..own.clone() }).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        assert_eq!(store.load(SERVER).await.unwrap().len(), 1);
    }
    writer.await.unwrap();
}

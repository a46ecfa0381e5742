//! A memory to test with, and how to ask it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_memory::{Store, server};
use tidegate_protocol::{Error, Json, Limits, Method, Params};
use tidegate_server::{Principal, ServerDoor};
use tidegate_service::{Call, Context, Door, Reply};

use crate::cluster::Cluster;

/// Set to `postgres`, every test runs on a database of a PostgreSQL server of its own instead of a file.
pub(crate) const STORE: &str = "TIDEGATE_MEMORY_TEST_STORE";

/// The server of this process, if the tests are to run on one.
fn cluster() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    let wanted = std::env::var_os(STORE).is_some_and(|store| store == "postgres");
    let start = || wanted.then(|| Cluster::start(false).expect("PostgreSQL 15 or newer is installed"));
    CLUSTER.get_or_init(start).as_ref()
}

/// Whether the tests run on a server, and not on files.
pub(crate) fn on_postgres() -> bool {
    cluster().is_some()
}

/// A folder of its own, which goes when the test is over; on a server, also a database.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        let folder = Folder(tempfile::Builder::new().prefix("tidegate-memory-").tempdir().unwrap());
        if let Some(cluster) = cluster() {
            cluster.database(&folder.database());
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn database(&self) -> String {
        self.path().file_name().unwrap().to_str().unwrap().replace('-', "_").to_lowercase()
    }

    /// Where the memory is: the path of a file or the URL of a database.
    pub(crate) fn place(&self) -> String {
        match cluster() {
            Some(cluster) => cluster.url(&self.database()),
            None => self.path().join("memory.db").display().to_string(),
        }
    }

    pub(crate) fn store(&self) -> Store {
        open(&self.place())
    }

    pub(crate) fn server(&self) -> ServerDoor {
        server(self.store())
    }

    /// A number out of the file or the database itself.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        match cluster() {
            Some(cluster) => cluster.number(&self.database(), sql),
            None => {
                let file = rusqlite::Connection::open(self.place()).unwrap();
                file.query_row(sql, [], |row| row.get(0)).unwrap()
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(cluster) = cluster() {
            cluster.run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database()));
        }
    }
}

/// The store in a file or at a URL.
pub(crate) fn open(place: &str) -> Store {
    let store = match place.starts_with("postgres://") {
        true => Store::connect(place),
        false => Store::open(place),
    };
    store.unwrap()
}

/// The reply to any request.
pub(crate) async fn request(
    server: &ServerDoor,
    tenant: Option<&str>,
    method: Method,
    params: Value,
) -> Result<Value, Error> {
    // `~name` is a person without a tenant.
    let (subject, tenant) = match tenant.and_then(|name| name.strip_prefix('~')) {
        Some(subject) => (Some(subject), None),
        None => (None, tenant),
    };
    let principal =
        Principal { subject: subject.map(Arc::from), tenant: tenant.map(Arc::from), ..Principal::default() };
    request_by(server, &principal, method, params).await
}

/// The reply to any request of somebody.
pub(crate) async fn request_by(
    server: &ServerDoor,
    principal: &Principal,
    method: Method,
    params: Value,
) -> Result<Value, Error> {
    let params = Json::from(params);
    let mut context = Context::local();
    context.principal = principal.clone();
    context.client_info = Some(Json::from(json!({"name": "tester", "version": "1"})));
    let call = Call::new(method, Params::parse(&params, &Limits::default()).unwrap(), context);
    match server.answer(call).await.unwrap() {
        Reply::Complete(result) => Ok(result.to().unwrap()),
        Reply::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// The result of a tool.
pub(crate) async fn call_as(
    server: &ServerDoor,
    tenant: Option<&str>,
    tool: &str,
    arguments: Value,
) -> Value {
    request(server, tenant, Method::ToolsCall, json!({"name": tool, "arguments": arguments})).await.unwrap()
}

/// The structured content of a result that is no failure.
pub(crate) async fn ask(server: &ServerDoor, tool: &str, arguments: Value) -> Value {
    let result = call_as(server, None, tool, arguments).await;
    assert!(!result["isError"].as_bool().unwrap_or_default(), "{tool}: {result}");
    result["structuredContent"].clone()
}

/// The sentence of a failure.
pub(crate) async fn refused(server: &ServerDoor, tool: &str, arguments: Value) -> String {
    let result = call_as(server, None, tool, arguments).await;
    assert_eq!(result["isError"], json!(true), "{tool}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Somebody to know.
pub(crate) fn ann() -> Value {
    json!({"name": "Ann", "entityType": "person", "observations": ["likes tea", "lives in Kiel"]})
}

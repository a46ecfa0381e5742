//! A server that asks who calls: a layer between the guard and the endpoint, with one token for each user. Where tokens come from
//! an authorization server, the same layer checks them.
//!
//! ```sh
//! cargo run --example static_token
//! curl -i http://127.0.0.1:8765/mcp -H 'Content-Type: application/json' -H 'Authorization: Bearer ada-secret' \
//!     -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}'
//! ```

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Request, Response, header};
use tidegate::http::{Challenge, HttpService, Settings};
use tidegate::service::Identity;
use tidegate::{Cx, Principal, Server, http, tool};
use tower::Service;

/// Who has which token.
const TOKENS: [(&str, &str); 2] = [("ada-secret", "ada"), ("bob-secret", "bob")];

/// Lets in who brings a token, and says who that is.
#[derive(Clone)]
struct Authenticate<S>(S);

impl<S: HttpService> Service<Request<Body>> for Authenticate<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let refused = match sent.and_then(|sent| sent.strip_prefix("Bearer ")) {
            None => Challenge::unauthenticated(),
            // A real one compares in constant time.
            Some(token) => match TOKENS.iter().find(|(known, _)| *known == token) {
                None => Challenge::invalid_token("The token is unknown"),
                Some((_, user)) => {
                    let identity = Identity::from(Principal::subject(*user).issued_by("static tokens"));
                    request.extensions_mut().insert(identity);
                    return Box::pin(self.0.call(request));
                }
            },
        };
        Box::pin(std::future::ready(Ok(refused.respond())))
    }
}

/// Tells who you are.
#[tool(read_only)]
async fn whoami(cx: Cx) -> String {
    cx.principal().subject.as_deref().unwrap_or("nobody").to_owned()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tidegate::logging::init(Default::default(), None);
    let server = Server::new("whoami", "1.0.0").tool(whoami()).build();
    let settings = Settings::default();
    let front = http::front(server, &settings, Authenticate);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8765").await?;
    let ctrl_c = async { _ = tokio::signal::ctrl_c().await };
    http::serve_front(front, listener, settings, ctrl_c).await
}

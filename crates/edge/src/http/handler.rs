//! [`Handler`]: whatever answers everything at and below a path, beside the endpoint.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ::http::header::CACHE_CONTROL;
use ::http::{HeaderName, HeaderValue, Request, Response};
use axum::body::Body;
use tidegate_service::Identity;

use super::pages::GUARDS;

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Answers whatever is asked for at and below a path, with methods, bodies and streams of its own, for those whom the front lets
/// in. A [`Page`](super::Page) is for what is only looked at. No browser keeps an answer, or does more with it than show it.
///
/// ```
/// use axum::body::Body;
/// use http::Response;
/// use tidegate_edge::http::{Handler, Settings};
///
/// let hello = Handler::new("/hello", |request, _identity| async move {
///     Response::new(Body::from(format!("{} {}", request.method(), request.uri().path())))
/// });
/// let settings = Settings::default().handlers([hello]);
/// ```
#[derive(Clone)]
pub struct Handler {
    path: String,
    answer: Arc<dyn Fn(Request<Body>, Identity) -> Answering + Send + Sync>,
}

impl Handler {
    /// Answers at `path`, such as `/api`, and at everything below it.
    pub fn new<F>(
        path: impl Into<String>,
        answer: impl Fn(Request<Body>, Identity) -> F + Send + Sync + 'static,
    ) -> Handler
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let answer = move |request, identity| -> Answering { Box::pin(answer(request, identity)) };
        Handler { path: path.into(), answer: Arc::new(answer) }
    }

    /// Where it begins.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it answers there.
    pub(super) fn is_at(&self, path: &str) -> bool {
        path.strip_prefix(&*self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The answer to a request of somebody.
    pub(super) fn answer(
        &self,
        request: Request<Body>,
        identity: Identity,
    ) -> impl Future<Output = Response<Body>> + Send + 'static {
        let answer = (self.answer)(request, identity);
        async move {
            let mut response = answer.await;
            let headers = response.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            for (name, value) in GUARDS {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            response
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("path", &self.path).finish_non_exhaustive()
    }
}

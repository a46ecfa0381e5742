//! Our HTTP behind rmcp: it writes requests, we send them.

use std::sync::Arc;

use ::http::{Response, header};
use bytes::Bytes;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::json;
use url::form_urlencoded;

use super::fault::Fault;
use super::http::{Answer, Http};
use super::token::{Granted, TokenEndpoint};

/// Whatever address rmcp may have in mind, a [`TokenEndpoint`] sends the form to its own, and finishes it.
impl OAuthHttpClient for TokenEndpoint {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let form = form_urlencoded::parse(request.request.body()).into_owned().collect();
            match self.ask(form).await {
                Ok(granted) => Ok(canonical(&granted)),
                Err(fault) => {
                    *self.trouble.lock().unwrap_or_else(|broken| broken.into_inner()) = Some(fault.clone());
                    Err(fault.into())
                }
            }
        })
    }
}

impl TokenEndpoint {
    /// Why rmcp got no token from here. It passes on only text; `text` is for what went wrong inside of it.
    pub(super) fn take_trouble(&self, text: impl ToString) -> Fault {
        let trouble = self.trouble.lock().unwrap_or_else(|broken| broken.into_inner()).take();
        trouble.unwrap_or_else(|| Fault::Metadata(super::fault::quote(&text.to_string())))
    }
}

/// A token response as the specification has it. rmcp would refuse numbers in quotes, and has no use for the rest.
fn canonical(granted: &Granted) -> Response<Vec<u8>> {
    let mut body = json!({"access_token": granted.access.reveal(), "token_type": granted.kind.scheme()});
    if let Some(refresh) = &granted.refresh {
        body["refresh_token"] = refresh.reveal().into();
    }
    if let Some(seconds) = granted.expires_in {
        body["expires_in"] = seconds.into();
    }
    if let Some(scopes) = &granted.scopes {
        body["scope"] = scopes.to_string().into();
    }
    let mut response = Response::new(body.to_string().into_bytes());
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// Sends what rmcp wrote as it is, without following redirects.
pub(super) struct Plain(pub(super) Arc<Http>);

impl OAuthHttpClient for Plain {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let Answer { status, headers, body } = self.0.send(request.request.map(Bytes::from)).await?;
            let mut response = Response::new(body.to_vec());
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Ok(response)
        })
    }
}

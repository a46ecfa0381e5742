//! Tokens without a browser: for the program itself, or for its workload. Those through an enterprise are in
//! [`enterprise`](super::enterprise).

use super::client::Proof;
use super::fault::Fault;
use super::scopes::Scopes;
use super::settings::Assertion;
use super::token::{Form, Granted, JWT_BEARER, TokenEndpoint, form};

/// The program asks for itself (RFC 6749 section 4.4).
pub(super) async fn client_credentials(endpoint: &TokenEndpoint, scopes: &Scopes) -> Result<Granted, Fault> {
    if matches!(endpoint.proof, Proof::None) {
        let what = "a program that asks for itself has to prove who it is; configure a client secret or a private key";
        return Err(Fault::Settings(what.to_owned()));
    }
    endpoint.ask(scoped("client_credentials", scopes)).await
}

/// The platform has said who the program is (RFC 7523 section 2.1).
pub(super) async fn workload(
    endpoint: &TokenEndpoint,
    assertion: &Assertion,
    scopes: &Scopes,
) -> Result<Granted, Fault> {
    let mut form = scoped(JWT_BEARER, scopes);
    form.push(("assertion".to_owned(), assertion.get().await?.reveal().to_owned()));
    endpoint.ask(form).await
}

fn scoped(grant: &str, scopes: &Scopes) -> Form {
    let mut form = form(&[("grant_type", grant)]);
    if !scopes.is_empty() {
        form.push(("scope".to_owned(), scopes.to_string()));
    }
    form
}

//! A login with a browser (the authorization code grant with PKCE) and what renews it (the refresh grant).

use ring::digest::{SHA256, digest};
use url::Url;

use super::browser::Visit;
use super::fault::{Fault, quote};
use super::http::host;
use super::jwt::{encode, random_text};
use super::metadata::ServerMetadata;
use super::scopes::Scopes;
use super::token::{Granted, TokenEndpoint, form};
use tidegate_service::secrets::Secret;

/// Sends a person to the login page, and turns what comes back into tokens.
pub(super) async fn login(
    metadata: &ServerMetadata,
    endpoint: &TokenEndpoint,
    scopes: &Scopes,
    visit: Box<dyn Visit>,
    assume_pkce: bool,
) -> Result<Granted, Fault> {
    let Some(page) = &metadata.authorization_endpoint else {
        let issuer = quote(&metadata.issuer);
        return Err(Fault::Metadata(format!("the authorization server {issuer} has no login page")));
    };
    let page = endpoint.http.allowed().check("login page", page)?;
    check_pkce(metadata, assume_pkce)?;
    let redirect_uri = visit.redirect_uri().to_owned();
    let attempt = Attempt::new();
    let url = attempt.page(page, endpoint, &redirect_uri, scopes);
    let came_back = visit.visit(url.into()).await.map_err(|error| Fault::Browser(error.to_string()))?;
    let code = read_callback(&came_back, &attempt.state, metadata, endpoint)?;
    let form = form(&[
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("code_verifier", &attempt.verifier),
        ("redirect_uri", &redirect_uri),
    ]);
    endpoint.ask(form).await
}

/// Gets new tokens for a refresh token. Without scopes in the request they have those of the old ones (RFC 6749
/// section 6).
pub(super) async fn refresh(endpoint: &TokenEndpoint, refresh: &Secret) -> Result<Granted, Fault> {
    endpoint.ask(form(&[("grant_type", "refresh_token"), ("refresh_token", refresh.reveal())])).await
}

/// 2026-07-28 security-considerations: a server that does not say that it knows PKCE must not be used.
fn check_pkce(metadata: &ServerMetadata, assume: bool) -> Result<(), Fault> {
    let known = match &metadata.code_challenge_methods_supported {
        Some(methods) => methods.iter().any(|method| method == "S256"),
        None => assume,
    };
    if known {
        return Ok(());
    }
    Err(Fault::Unsupported(format!(
        "the authorization server {} does not say that it protects logins with PKCE (S256), so none is made; \
         tell whoever runs it to add code_challenge_methods_supported to its description",
        quote(&metadata.issuer)
    )))
}

/// What ties the answer of a login to its question.
struct Attempt {
    state: String,
    /// RFC 7636: known to nobody until the code is redeemed, so that a stolen code is of no use.
    verifier: String,
}

impl Attempt {
    fn new() -> Attempt {
        Attempt { state: random_text::<16>(), verifier: random_text::<32>() }
    }

    /// The address of the login page. What it has in its query stays there (RFC 6749 section 3.1), except for what is
    /// said anew.
    fn page(&self, mut page: Url, endpoint: &TokenEndpoint, redirect_uri: &str, scopes: &Scopes) -> Url {
        let challenge = encode(digest(&SHA256, self.verifier.as_bytes()));
        let scopes = scopes.to_string();
        let mut ours = vec![
            ("response_type", "code"),
            ("client_id", &endpoint.client_id),
            ("redirect_uri", redirect_uri),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if !scopes.is_empty() {
            ours.push(("scope", &scopes));
        }
        ours.extend(endpoint.resource.as_deref().map(|resource| ("resource", resource)));
        let said = |name: &str| ours.iter().any(|(own, _)| *own == name);
        let theirs: Vec<(String, String)> = page
            .query_pairs()
            .filter(|(name, _)| !said(name))
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        page.set_fragment(None);
        page.query_pairs_mut().clear().extend_pairs(theirs).extend_pairs(ours);
        page
    }
}

/// The code in the address to which the browser came back. Nothing in it counts, not even an error, before `state` and
/// `iss` are known to be right (2026-07-28 authorization, Authorization Response Validation).
fn read_callback(
    came_back: &str,
    state: &str,
    metadata: &ServerMetadata,
    endpoint: &TokenEndpoint,
) -> Result<String, Fault> {
    let url = Url::parse(came_back).map_err(|_| Fault::Callback("it is not an address"))?;
    if parameter(&url, "state")?.as_deref() != Some(state) {
        return Err(Fault::Callback("it does not belong to this login"));
    }
    match parameter(&url, "iss")? {
        Some(iss) if iss != metadata.issuer => {
            return Err(Fault::Callback("it is from another authorization server"));
        }
        None if metadata.authorization_response_iss_parameter_supported == Some(true) => {
            return Err(Fault::Callback("it does not say which authorization server it is from"));
        }
        _ => {}
    }
    if let Some(code) = parameter(&url, "error")? {
        let description = parameter(&url, "error_description")?.unwrap_or_default();
        return Err(Fault::Denied { host: host(&endpoint.url), code, description });
    }
    match parameter(&url, "code")? {
        Some(code) if !code.is_empty() => Ok(code),
        _ => Err(Fault::Callback("it holds no code")),
    }
}

/// A parameter of an address, which must not be there twice.
fn parameter(url: &Url, name: &str) -> Result<Option<String>, Fault> {
    let mut all = url.query_pairs().filter(|(own, _)| own == name).map(|(_, value)| value.into_owned());
    match (all.next(), all.next()) {
        (_, Some(_)) => Err(Fault::Callback("it says something twice")),
        (found, None) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::allowed_addresses::AllowedAddresses;
    use super::super::client::Proof;
    use super::super::http::Http;
    use super::*;

    #[test]
    fn a_login_page_keeps_its_query() {
        let endpoint = TokenEndpoint {
            http: Arc::new(Http::new(AllowedAddresses::anywhere())),
            url: Url::parse("https://as.example/token").unwrap(),
            issuer: "https://as.example".to_owned(),
            client_id: "me".to_owned(),
            proof: Proof::None,
            resource: Some("https://a.example/mcp".to_owned()),
            dpop: None,
        };
        // RFC 7636 appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let attempt = Attempt { state: "s".to_owned(), verifier };
        let page = Url::parse("https://as.example/login?tenant=a+b&state=theirs&resource=x#top").unwrap();
        let url = attempt.page(page, &endpoint, "http://127.0.0.1:1/back", &Scopes::parse("read write"));
        assert_eq!(
            url.as_str(),
            "https://as.example/login?tenant=a+b&response_type=code&client_id=me\
             &redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fback&state=s\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256\
             &scope=read+write&resource=https%3A%2F%2Fa.example%2Fmcp"
        );
    }

    #[test]
    fn no_two_logins_are_alike() {
        let (one, other) = (Attempt::new(), Attempt::new());
        assert!(one.state != other.state && one.verifier != other.verifier);
        // RFC 7636 section 4.1: 43 characters, of these kinds.
        assert_eq!(one.verifier.len(), 43);
        assert!(one.verifier.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)));
    }
}

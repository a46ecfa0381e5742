//! What a reload changes in who may call, said in the log.

use std::sync::Arc;

use crate::authenticator::State;

/// One sentence for each difference.
pub(crate) fn differences(before: &State, after: &State) -> Vec<String> {
    let mut told = Vec::new();
    let (old, new) = (before.issuers.names(), after.issuers.names());
    for issuer in new.iter().filter(|name| !old.contains(name)) {
        told.push(format!("tokens of the issuer {issuer} are accepted now"));
    }
    for issuer in old.iter().filter(|name| !new.contains(name)) {
        told.push(format!(
            "tokens of the issuer {issuer} are refused now; what was open with them has ended"
        ));
    }
    for issuer in new.iter().filter(|name| old.contains(name)) {
        if !before.issuers.has_same(&after.issuers, issuer) {
            told.push(format!("the settings of the issuer {issuer} have changed"));
        }
    }
    let endpoints = |state: &State| -> Vec<Arc<str>> {
        state.resources.iter().filter_map(|resource| resource.endpoint.clone()).collect()
    };
    let (old, new) = (endpoints(before), endpoints(after));
    for endpoint in new.iter().filter(|name| !old.contains(name)) {
        told.push(format!("callers are let in at the endpoint {endpoint} now"));
    }
    for endpoint in old.iter().filter(|name| !new.contains(name)) {
        told.push(format!("the endpoint {endpoint} is gone"));
    }
    let (old, new) = (&before.scopes, &after.scopes);
    if old.required != new.required {
        let scopes = match new.required.is_empty() {
            true => "none".to_owned(),
            false => new.required.join(" "),
        };
        told.push(format!("the scopes that every token needs have changed: {scopes}"));
    }
    if !old.is_same_for_tools(new) {
        told.push("the scopes that tools need have changed".to_owned());
    }
    told
}

#[cfg(test)]
mod tests {
    use tidegate_config::{AuthSettings, ClaimSettings, IntrospectionSettings};
    use tidegate_service::secrets::Secret;

    use super::*;
    use crate::issuers::Issuers;
    use crate::resource::{ProtectedResource, Resource};
    use crate::scopes::Scopes;

    fn state(issuers: &[(&str, &str)], endpoints: &[&str], scopes: &[&str], before: Option<&State>) -> State {
        let opaque = |(name, client): &(&str, &str)| IntrospectionSettings {
            issuer: format!("https://{name}.example.com"),
            url: format!("https://{name}.example.com/introspect"),
            client_id: client.to_string(),
            client_secret: Secret::new("a-secret-of-a-test"),
            audience: Vec::new(),
            claims: ClaimSettings::default(),
        };
        let introspection = issuers.iter().map(opaque).collect();
        let mut settings = AuthSettings { introspection, ..AuthSettings::default() };
        settings.scopes.required = scopes.iter().map(|scope| scope.to_string()).collect();
        let issuers = Issuers::start(&settings, &before.map(|one| one.issuers.clone()).unwrap_or_default());
        let (issuers, scopes) = (issuers.unwrap(), Arc::new(Scopes::new(&settings.scopes)));
        let resource = |name: Option<&str>| {
            let one = ProtectedResource { endpoint: name.map(Arc::from), ..ProtectedResource::default() };
            Arc::new(Resource::new(one, &issuers, &scopes))
        };
        let names = std::iter::once(None).chain(endpoints.iter().copied().map(Some));
        let resources = names.map(resource).collect();
        State { resources, issuers, scopes }
    }

    #[tokio::test]
    async fn each_difference_is_one_sentence() {
        let before = state(&[("a", "x"), ("b", "x")], &["one", "two"], &["mcp"], None);
        let same = state(&[("a", "x"), ("b", "x")], &["one", "two"], &["mcp"], Some(&before));
        assert_eq!(differences(&before, &same), [""; 0]);
        let after = state(&[("b", "y"), ("c", "x")], &["two", "three"], &["mcp", "more"], Some(&before));
        assert_eq!(
            differences(&before, &after),
            [
                "tokens of the issuer https://c.example.com are accepted now",
                "tokens of the issuer https://a.example.com are refused now; what was open with them has ended",
                "the settings of the issuer https://b.example.com have changed",
                "callers are let in at the endpoint three now",
                "the endpoint one is gone",
                "the scopes that every token needs have changed: mcp more",
            ]
        );
    }
}

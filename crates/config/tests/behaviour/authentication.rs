//! Who may call: what `[auth]` means, and what is wrong with one.

use std::path::Path;
use std::time::Duration;

use tidegate_config::{AuthSettings, JwksSource};

use crate::{parse, wrong};

fn auth(text: &str) -> AuthSettings {
    parse(text).unwrap().auth.unwrap()
}

fn notes(text: &str) -> String {
    parse(text).unwrap().notes.join("\n")
}

#[test]
fn what_is_written() {
    let auth = auth(
        r#"
        [auth]
        keys = "keys.toml"
        scopes = ["mcp"]
        max_buffered = "64MiB"
        [auth.tool_scopes]
        "files:write" = ["fs_write_*"]
        "files:read" = ["fs_*"]
        [auth.scope_includes]
        "files:admin" = ["files:write", "files:read"]
        [[auth.jwt]]
        issuer = "https://id.example.com"
        audience = "https://mcp.example.com/mcp"
        jwks = "https://id.example.com/jwks"
        algorithms = ["ES256"]
        tenant = "org_id"
        roles = "realm_access.roles"
        subject = "oid"
        scopes = "scp"
        clock_skew = "5m"
        [[auth.jwt]]
        issuer = "https://other.example.com/"
        audience = ["a", "b"]
        jwks = "jwks.json"
        [[auth.introspection]]
        issuer = "https://id.example.com"
        url = "https://id.example.com/introspect"
        client_id = "tidegate"
        client_secret = "${TOKEN}"
        audience = "https://mcp.example.com/mcp"
        tenant = "org"
        "#,
    );
    assert_eq!(auth.keys.as_deref(), Some(Path::new("/srv/app/keys.toml")));
    assert_eq!(
        (auth.scopes.required.as_slice(), auth.max_buffered),
        (&["mcp".to_owned()][..], Some(64 << 20))
    );
    let [(write, tools), (read, _)] = &auth.scopes.tools[..] else { panic!("{:?}", auth.scopes) };
    assert_eq!((write.as_str(), read.as_str()), ("files:write", "files:read"), "the order of the file");
    assert!(tools.matches("fs_write_file") && !tools.matches("fs_read_file"));
    assert_eq!(auth.scopes.includes["files:admin"], ["files:write", "files:read"]);
    let [first, second] = &auth.jwt[..] else { panic!() };
    assert_eq!((first.issuer.as_str(), first.audience.len()), ("https://id.example.com", 1));
    assert_eq!(first.jwks, JwksSource::Url("https://id.example.com/jwks".to_owned()));
    assert_eq!(
        (first.algorithms.as_slice(), first.clock_skew),
        (&["ES256".to_owned()][..], Duration::from_secs(300))
    );
    assert_eq!(first.claims.roles.as_deref(), Some("realm_access.roles"));
    assert_eq!(
        (first.claims.subject.as_deref(), first.claims.tenant.as_deref()),
        (Some("oid"), Some("org_id"))
    );
    assert_eq!((second.audience.len(), second.clock_skew), (2, Duration::from_secs(60)));
    assert_eq!(second.jwks, JwksSource::File("/srv/app/jwks.json".into()));
    assert_eq!(second.algorithms.len(), 9);
    let asked = &auth.introspection[0];
    assert_eq!((asked.client_id.as_str(), asked.client_secret.reveal()), ("tidegate", "hush"));
    assert!(!format!("{auth:?}").contains("hush"));
    assert!(parse("").unwrap().auth.is_none());
    let discovered = self::auth("[[auth.jwt]]\nissuer = \"http://localhost:8080/realms/x\"");
    assert_eq!((&discovered.jwt[0].jwks, discovered.jwt[0].audience.len()), (&JwksSource::Discovered, 0));
}

#[test]
fn an_auth_that_lets_nobody_in() {
    for text in ["[auth]", "[auth]\nscopes = [\"mcp\"]", "[auth]\njwt = []", "auth = {}"] {
        wrong(text, ": auth: lets nobody in: add keys = \"keys.toml\"");
    }
    // Whatever is wrong or missing never means that nobody is asked.
    for (text, expected) in [
        ("[auth]\nkeys = \"${NONE}\"", "2:1: auth.keys: the environment variable NONE is not set"),
        ("[auth]\nkeys = \"\"", "2:1: auth.keys: must be a path, and is empty"),
        ("[auth]\nkees = \"keys.toml\"", "2:1: auth: unknown field \"kees\"; did you mean \"keys\"?"),
        ("[auht]\nkeys = \"keys.toml\"", "1:2: unknown field \"auht\"; did you mean \"auth\"?"),
        ("auth = [\"keys.toml\"]", "1:1: auth: must be a table, not a list"),
        ("auth = true", "1:8: auth: must be a table, not true or false"),
        ("[auth]\nkeys = 5", "2:8: auth.keys: must be a string in quotes, not a whole number"),
        ("[auth.jwt]\nissuer = \"https://a.example\"", "1:7: auth.jwt: must be written [[auth.jwt]]"),
        ("[auth]\njwt = [[\"https://a.example\"]]", "2:1: auth.jwt: must be a table, not a list"),
        ("[auth]\njwt = [\"hush\"]", "auth.jwt: must be a table, not a string"),
    ] {
        wrong(text, expected);
        assert_eq!(parse(text).unwrap_err().problems().len(), 1, "{text}");
    }
}

#[test]
fn mistakes_are_told_with_their_own_line() {
    let first = "[[auth.jwt]]\nissuer = \"https://a.example\"\n";
    for (second, expected) in [
        ("audience = \"a\"", "3:1: auth.jwt: needs issuer, the iss of its tokens"),
        ("issuer = 5", "4:10: auth.jwt.issuer: must be a string in quotes"),
        ("isuer = \"https://b.example\"", "4:1: auth.jwt: unknown field \"isuer\"; did you mean \"issuer\"?"),
        ("issuer = \"${NONE}\"", "4:1: auth.jwt.issuer: the environment variable NONE is not set"),
        (
            "issuer = \"${file:/does/not/exist}\"",
            "4:1: auth.jwt.issuer: the file /does/not/exist cannot be read",
        ),
        ("issuer = \"https://a.example\"", "4:1: auth.jwt.issuer: this issuer has an [[auth.jwt]] already"),
        (
            "issuer = \"https://b.example\"\nclock_skew = \"6m\"",
            "5:1: auth.jwt.clock_skew: must be at most \"5m\"",
        ),
        (
            "issuer = \"https://b.example\"\nalgorithms = [\"none\"]",
            "5:1: auth.jwt.algorithms: \"none\" would accept",
        ),
    ] {
        let text = format!("{first}[[auth.jwt]]\n{second}");
        wrong(&text, expected);
        assert_eq!(parse(&text).unwrap_err().problems().len(), 1, "{text}");
    }
}

#[test]
fn issuers_of_tokens() {
    let jwt = |field: &str| format!("[[auth.jwt]]\nissuer = \"https://a.example\"\n{field}");
    for (issuer, expected) in [
        ("", "must be a URL"),
        ("a.example", "must be a URL"),
        ("http://a.example", "must begin with https://"),
        ("http://10.0.0.7:8080", "must begin with https://"),
        ("https://a.example ", "must be a URL, which has no spaces"),
        ("https://a.example?x=1", "must not have a query"),
        ("https://a.example#x", "must not have a fragment"),
        ("https://hush@a.example", "must not have a user name"),
    ] {
        wrong(&format!("[[auth.jwt]]\nissuer = {issuer:?}"), &format!("2:1: auth.jwt.issuer: {expected}"));
    }
    for (field, expected) in [
        ("audience = \"\"", "3:1: auth.jwt.audience: must not be empty"),
        ("audience = []", "auth.jwt.audience: must have at least one audience"),
        ("audience = \"*\"", "auth.jwt.audience: is compared character by character"),
        ("audience = [\"a\", \"account\"]", "auth.jwt.audience: \"account\" is in most tokens of Keycloak"),
        ("audience = \"https://graph.microsoft.com\"", "auth.jwt.audience: is that of Microsoft Graph"),
        (
            "audience = \"https://x.auth0.com/userinfo\"",
            "auth.jwt.audience: is that of the issuer's userinfo",
        ),
        ("audience = \"a b\"", "auth.jwt.audience: has spaces in it"),
        ("audience = 5", "auth.jwt.audience: must be a string, or a list of strings"),
        ("jwks = \"http://a.example/jwks\"", "auth.jwt.jwks: must begin with https://"),
        ("jwks = \"\"", "auth.jwt.jwks: must be a path, and is empty"),
        ("algorithms = []", "auth.jwt.algorithms: must have at least one algorithm"),
        ("algorithms = [\"None\"]", "auth.jwt.algorithms: \"none\" would accept"),
        ("algorithms = [\"RS256\", \"HS256\"]", "auth.jwt.algorithms: algorithms with a shared secret"),
        ("algorithms = [\"RS265\"]", "did you mean \"RS256\"?"),
        ("algorithms = [\"rs256\"]", "did you mean \"RS256\"?"),
        ("algorithms = [\"ES512\"]", "auth.jwt.algorithms: each must be one of RS256, RS384"),
        ("tenant = \"\"", "auth.jwt.tenant: must be the name of a claim"),
        ("roles = \" \"", "auth.jwt.roles: must be the name of a claim"),
        ("clock_skew = \"301s\"", "auth.jwt.clock_skew: must be at most \"5m\""),
        ("clock_skew = 60", "auth.jwt.clock_skew: must be a time with a unit in quotes"),
    ] {
        wrong(&jwt(field), expected);
    }
}

#[test]
fn who_is_asked_about_tokens() {
    let all = "[[auth.introspection]]\nissuer = \"https://a.example\"\nurl = \"https://a.example/i\"\nclient_id = \"x\"\n\
               client_secret = \"${TOKEN}\"\n";
    assert_eq!(auth(all).introspection.len(), 1);
    let twice = format!("{all}{all}");
    wrong(&twice, "7:1: auth.introspection.issuer: this issuer has an [[auth.introspection]] already");
    for (from, to, expected) in [
        ("issuer = \"https://a.example\"\n", "", "1:1: auth.introspection: needs issuer"),
        ("url = \"https://a.example/i\"\n", "", "auth.introspection: needs url, the introspection endpoint"),
        ("client_id = \"x\"\n", "", "auth.introspection: needs client_id, the client that asks"),
        ("client_secret = \"${TOKEN}\"\n", "", "auth.introspection: needs client_secret"),
        (
            "${TOKEN}",
            "${NONE}",
            "5:1: auth.introspection.client_secret: the environment variable NONE is not set",
        ),
        (
            "${TOKEN}",
            "",
            "5:1: auth.introspection.client_secret: must be the secret of that client, and is empty",
        ),
        (
            "https://a.example/i",
            "http://a.example/i",
            "3:1: auth.introspection.url: must begin with https://",
        ),
    ] {
        wrong(&all.replace(from, to), expected);
        assert_eq!(parse(&all.replace(from, to)).unwrap_err().problems().len(), 1, "{to}");
    }
}

#[test]
fn scopes() {
    let keys = "[auth]\nkeys = \"keys.toml\"\n";
    for (field, expected) in [
        (
            "scopes = [\"mcp tools\"]",
            "3:1: auth.scopes: a scope may contain only ASCII characters other than spaces",
        ),
        ("scopes = [\"\"]", "auth.scopes: a scope must not be empty"),
        ("scopes = [\"mcp\", \"offline_access\"]", "auth.scopes: offline_access asks for a refresh token"),
        ("scopes = \"mcp\"", "auth.scopes: must be a list in [brackets]"),
        ("tool_scopes.\"a\\\"b\" = [\"x\"]", "auth.tool_scopes.\"a\\\"b\": a scope may contain only"),
        ("tool_scopes.a = [\"x[\"]", "3:13: auth.tool_scopes.a: pattern 1 is not a valid glob"),
        ("scope_includes.a = [\"b c\"]", "auth.scope_includes.a: a scope may contain only"),
        (
            "scope_includes.offline_access = [\"b\"]",
            "auth.scope_includes.offline_access: offline_access asks",
        ),
        ("max_buffered = \"1MiB\"", "3:1: auth.max_buffered: must be at least max_message"),
    ] {
        wrong(&format!("{keys}{field}"), expected);
    }
    let cycle = format!(
        "{keys}scope_includes = {{ a = [\"b\"], b = [\"c\"], c = [\"a\"], d = [\"a\"], e = [\"e\"] }}"
    );
    let notes = notes(&cycle);
    for scope in ["a", "b", "c", "e"] {
        assert!(notes.contains(&format!("auth.scope_includes.{scope} includes itself")), "{notes}");
    }
    assert!(!notes.contains("auth.scope_includes.d"), "{notes}");
    assert!(self::notes(&format!("{keys}tool_scopes.a = []")).contains("auth.tool_scopes.a has no effect"));
}

#[cfg(unix)]
#[test]
fn a_secret_in_plain_text_is_noted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = crate::folder::Folder::new();
    let file = folder.write(
        "tidegate.toml",
        "[[auth.introspection]]\nissuer = \"https://a.example\"\nurl = \"https://a.example/i\"\nclient_id = \"x\"\n\
         client_secret = \"correct-horse-battery\"\n",
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let settings = tidegate_config::Config::load(&file, &crate::builtins(), &crate::env).unwrap();
    assert!(
        settings.notes.iter().any(|note| note.contains("(auth.introspection.client_secret)")),
        "{:?}",
        settings.notes
    );
}

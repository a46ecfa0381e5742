//! What a gateway needs before other machines may reach it.

use tidegate_config::{ExposureError, ListenAddress, check_exposure};

use crate::{parse, wrong};

const AUTH: &str = "[auth]\nkeys = \"keys.toml\"\n";
const JWT: &str = "[[auth.jwt]]\nissuer = \"https://id.example.com\"\n";
const TLS: &str = "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n";

#[test]
fn beyond_loopback_callers_are_known_and_connections_encrypted() {
    use ExposureError::*;
    for (top, tables, expected) in [
        ("", "", Err(Unauthenticated)),
        ("insecure = true", "", Err(NoHost)),
        ("insecure = true\nallow_hosts = [\"mcp.example.com\"]", "", Ok(())),
        ("insecure = true\npublic_url = \"https://mcp.example.com\"", "", Ok(())),
        // This is the name of another machine there.
        ("insecure = true\npublic_url = \"http://localhost:8765\"", "", Err(NoHost)),
        ("", TLS, Err(Unauthenticated)),
        ("trusted_proxies = [\"10.0.0.7\"]", "", Err(Unauthenticated)),
        ("public_url = \"https://mcp.example.com\"", "", Err(Unauthenticated)),
        ("", AUTH, Err(Unencrypted)),
        ("insecure = true", AUTH, Err(NoHost)),
        ("trusted_proxies = [\"10.0.0.7\"]", AUTH, Err(NoHost)),
        ("trusted_proxies = [\"10.0.0.7\"]\nallow_hosts = [\"mcp.example.com\"]", AUTH, Ok(())),
        ("", &format!("{AUTH}{TLS}"), Err(NoHost)),
        ("public_url = \"https://mcp.example.com\"", &format!("{AUTH}{TLS}"), Ok(())),
        ("", JWT, Err(Unencrypted)),
        ("", &format!("{JWT}{TLS}"), Err(Unnamed)),
        ("insecure = true", JWT, Err(Unnamed)),
        ("public_url = \"https://mcp.example.com\"", &format!("{JWT}{TLS}"), Ok(())),
    ] {
        // The address of the command line goes by the same rules as that of the file.
        let here = parse(&format!("{top}\n{tables}")).unwrap();
        for (address, expected) in [
            ("0.0.0.0:8765", expected),
            ("[::]:8765", expected),
            ("192.168.1.5:8765", expected),
            ("gateway.internal:8765", expected),
            ("127.0.0.1:8765", Ok(())),
            ("localhost:8765", Ok(())),
            ("[::1]:8765", Ok(())),
        ] {
            let parsed: ListenAddress = address.parse().unwrap();
            assert_eq!(
                check_exposure(&parsed, &here.listen, here.auth.as_ref()),
                expected,
                "{address} {top} {tables}"
            );
            let text = format!("listen = {address:?}\n{top}\n{tables}");
            match expected {
                Ok(()) => drop(parse(&text).unwrap()),
                Err(error) => wrong(&text, &format!("toml:1:1: listen: {error}")),
            }
        }
    }
}

#[test]
fn what_could_not_be_read_says_so_and_nothing_else() {
    for text in [
        "listen = \"0.0.0.0:1\"\n[auth]\nkeys = \"${NONE}\"",
        "listen = \"0.0.0.0:1\"\n[auth]\nkees = \"keys.toml\"",
        "listen = \"0.0.0.0:1\"\nauth = []",
        "listen = \"0.0.0.0:1\"\npublic_url = \"mcp.example.com\"\n[[auth.jwt]]\nissuer = \"https://a.example\"\n[tls]\ncert = \"a\"\nkey = \"b\"",
        "listen = \"0.0.0.0:1\"\nallow_hosts = [\"*\"]\ninsecure = true",
        "listen = \"0.0.0.0:1\"\npublic_url = \"${NONE}\"\n[[auth.jwt]]\nissuer = \"https://a.example\"\n[tls]\ncert = \"a\"\nkey = \"b\"",
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.problems().len(), 1, "{text}: {error}");
    }
}

#[test]
fn the_url_that_others_know() {
    for (written, means, host) in [
        ("https://mcp.example.com", "https://mcp.example.com", Some("mcp.example.com")),
        ("https://MCP.Example.com:443/", "https://mcp.example.com", Some("mcp.example.com")),
        ("https://mcp.example.com:8443", "https://mcp.example.com:8443", Some("mcp.example.com")),
        ("https://[2001:db8::1]", "https://[2001:db8::1]", Some("[2001:db8::1]")),
        ("http://localhost:8765/", "http://localhost:8765", None),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765", None),
        ("http://[::1]:8765", "http://[::1]:8765", None),
    ] {
        let listen = parse(&format!("public_url = {written:?}")).unwrap().listen;
        assert_eq!(listen.public_url.as_deref(), Some(means));
        assert_eq!(listen.hosts.first().map(String::as_str), host, "{written}");
    }
    let both = "allow_hosts = [\"mcp.example.com\"]\npublic_url = \"https://mcp.example.com\"";
    assert_eq!(parse(both).unwrap().listen.hosts, ["mcp.example.com"]);
    for (written, expected) in [
        ("mcp.example.com", "must be a URL, such as \"https://mcp.example.com\""),
        ("https://", "must be a URL"),
        ("ftp://mcp.example.com", "must be a URL"),
        ("https://mcp.example.com ", "must be a URL, which has no spaces"),
        ("http://mcp.example.com", "must begin with https://"),
        ("http://localhost.example.com", "must begin with https://"),
        ("https://mcp.example.com/mcp", "must not have a path or a query"),
        ("https://mcp.example.com/?hush", "must not have a path or a query"),
        ("https://mcp.example.com/#hush", "must not have a fragment"),
        ("https://ada:hush@mcp.example.com", "must not have a user name or a password"),
        ("https://hush@mcp.example.com", "must not have a user name or a password"),
    ] {
        wrong(&format!("\npublic_url = {written:?}"), &format!("toml:2:1: public_url: {expected}"));
    }
    let tls = "public_url = \"http://localhost:1\"\n[tls]\ncert = \"a\"\nkey = \"b\"";
    wrong(tls, "1:1: public_url: must begin with https://, because the gateway serves HTTPS");
}

#[test]
fn proxies_that_are_trusted() {
    let good = ["10.0.0.7", "10.0.0.0/8", "192.168.1.0/24", "::1", "fd00::/8", "2001:db8::7/128"];
    let listen = parse(&format!("trusted_proxies = {good:?}")).unwrap().listen;
    assert_eq!(listen.trusted_proxies, good);
    for (network, expected) in [
        ("0.0.0.0/0", "would trust most of the Internet"),
        ("::/0", "would trust most of the Internet"),
        ("128.0.0.0/1", "would trust most of the Internet"),
        ("::ffff:0:0/96", "without ::ffff:"),
        ("::ffff:10.0.0.7", "without ::ffff:"),
        ("0.0.0.0", "is no proxy's address"),
        ("10.0.0.0/33", "each must be an address or a network"),
        ("10.0.0.0/", "each must be an address or a network"),
        ("10.0.0.0/+8", "each must be an address or a network"),
        ("proxy.internal", "each must be an address or a network"),
        ("*", "each must be an address or a network"),
        ("", "each must be an address or a network"),
    ] {
        let text = format!("\ntrusted_proxies = [\"10.0.0.7\", {network:?}]");
        wrong(&text, "toml:2:1: trusted_proxies: ");
        wrong(&text, expected);
    }
}

#[test]
fn certificates() {
    let tls = parse(TLS).unwrap().listen.tls.unwrap();
    assert_eq!(tls.cert, std::path::Path::new("/srv/app/cert.pem"));
    assert_eq!(tls.key, std::path::Path::new("/srv/app/key.pem"));
    assert!(parse("").unwrap().listen.tls.is_none());
    wrong("[tls]\ncert = \"a\"", "1:2: tls: needs key, the file of the private key");
    wrong("[tls]\nkey = \"a\"", "1:2: tls: needs cert, the file of the certificate");
    wrong("[tls]\ncert = \"\"\nkey = \"b\"", "2:1: tls.cert: must be a path, and is empty");
    wrong(
        "[tls]\ncert = \"${NONE}\"\nkey = \"b\"",
        "2:1: tls.cert: the environment variable NONE is not set",
    );
    wrong("[tls]\ncertificate = \"a\"\nkey = \"b\"", "2:1: tls: unknown field \"certificate\"");
    wrong("tls = [\"a\", \"b\"]", "1:1: tls: must be a table, not a list");
}

#[test]
fn what_is_worth_a_note() {
    let notes = |text: &str| parse(text).unwrap().notes.join("\n");
    assert!(notes("public_url = \"https://mcp.example.com\"").contains("There is no [auth]"));
    assert!(notes("trusted_proxies = [\"10.0.0.7\"]").contains("There is no [auth]"));
    assert!(!notes("insecure = true\ntrusted_proxies = [\"10.0.0.7\"]").contains("There is no [auth]"));
    let null = "allow_origins = [\"null\"]\n";
    assert!(notes(&format!("{null}{AUTH}")).contains("allow_origins has \"null\""));
    assert!(!notes(null).contains("allow_origins"));
}

#[test]
fn whoever_does_not_serve_it_can_read_it_all_the_same() {
    let folder = crate::folder::Folder::new();
    let file = folder.write("tidegate.toml", "listen = \"0.0.0.0:8765\"\n");
    let load = |serves: bool| match serves {
        true => tidegate_config::Config::load(&file, &crate::builtins(), &crate::env),
        false => tidegate_config::Config::load_unserved(&file, &crate::builtins(), &crate::env),
    };
    assert!(load(true).is_err());
    assert_eq!(load(false).unwrap().listen.address, "0.0.0.0:8765");
    folder.write("tidegate.toml", "[auth]\n");
    assert!(load(false).is_err(), "other mistakes are mistakes");
}

use tidegate_service::{Claims, Context as CallContext, Principal};

use super::*;

fn caller() -> CallContext {
    let mut context = CallContext::local();
    context.principal = Principal::subject("ann").in_tenant("acme").issued_by("https://id.example.com");
    let claims =
        Claims { roles: vec!["dev".into(), "ops".into()], client: Some("cli".into()), ..Claims::default() };
    context.claims = Some(Arc::new(claims));
    context
}

fn holds(text: &str, arguments: &'static str) -> Result<bool, String> {
    let condition =
        Condition::compile(text, &[ObjectKind::Tool]).unwrap_or_else(|error| panic!("{text}: {error}"));
    let object = Object { kind: ObjectKind::Tool, name: "git_log", server: "git" };
    let arguments = Json::trusted(arguments);
    let given = Given::new(Some(&arguments));
    condition.holds(&Facts { caller: &caller(), object: &object, arguments: &given })
}

fn refused(text: &str, kinds: &[ObjectKind]) -> String {
    Condition::compile(text, kinds).expect_err(text)
}

#[test]
fn conditions_over_everything_that_is_known() {
    for (text, arguments, expected) in [
        (r#"args.owner == "acme""#, r#"{"owner":"acme"}"#, true),
        (r#"args.owner == "acme""#, r#"{"owner":"other"}"#, false),
        (r#"args.owner == principal.tenant"#, r#"{"owner":"acme"}"#, true),
        (r#"has(args.path) && args.path.startsWith("/tmp/")"#, "{}", false),
        (r#""dev" in claims.roles && !("admin" in claims.roles)"#, "{}", true),
        (r#"claims["client"] == "cli" && principal["subject"] == "ann""#, "{}", true),
        (r#"tool.startsWith("git_") && server == "git" && endpoint == "default""#, "{}", true),
        ("args.n <= 100", r#"{"n":100}"#, true),
        ("args.n <= 100", r#"{"n":100.5}"#, false),
        ("args.n == 1", r#"{"n":1.0}"#, true),
        ("args.n > 0", r#"{"n":18446744073709551615}"#, true),
        (r#"args.paths.all(p, p.startsWith("/tmp/"))"#, r#"{"paths":["/tmp/a","/tmp/b"]}"#, true),
        (r#"args.paths.exists(p, p.contains(".."))"#, r#"{"paths":["/tmp/a","/../b"]}"#, true),
        (r#"args.to.matches("^[a-z]+@acme\\.com$")"#, r#"{"to":"ann@acme.com"}"#, true),
        (r#"args.to.matches("^[a-z]+@acme\\.com$")"#, r#"{"to":"ann@evil.com"}"#, false),
        (r#"args.mode.lowerAscii() == "delete""#, r#"{"mode":"DELETE"}"#, true),
        (r#"size(args) == 0 || args.x == null"#, r#"{"x":null}"#, true),
        (r#"args.x in ["a", "b"] ? true : false"#, r#"{"x":"b"}"#, true),
        ("size(claims.scopes) == 0 && size(claims.actors) == 0", "{}", true),
        ("true", "{}", true),
    ] {
        assert_eq!(holds(text, arguments), Ok(expected), "{text} over {arguments}");
    }
}

#[test]
fn what_cannot_be_told_is_an_error_that_says_why_and_shows_no_values() {
    for (text, arguments, said) in [
        (r#"args.owner == "acme""#, "{}", r#"there is no "owner""#),
        (r#"args.path.startsWith("/")"#, r#"{"path":["sesame"]}"#, "startsWith"),
        (r#"args.path.matches("^/")"#, r#"{"path":["sesame"]}"#, "another type"),
        (r#"args.path.matches("^/")"#, r#"{"path":{"sesame":1}}"#, "another type"),
        ("args.n < 5", r#"{"n":"sesame"}"#, "compared|applied"),
        ("args.x", r#"{"x":"sesame"}"#, "neither true nor false"),
        ("args.l[5] == 1", r#"{"l":["sesame"]}"#, "beyond the end"),
        (r#"args.o.a == 1"#, r#"{"o":{"a":1,"a":2}}"#, "a member twice"),
    ] {
        let why = holds(text, arguments).expect_err(text);
        assert!(said.split('|').any(|said| why.contains(said)), "{text}: {why}");
        assert!(!why.contains("sesame"), "{why}");
    }
}

#[test]
fn mistakes_are_found_when_a_condition_is_compiled() {
    use ObjectKind::*;
    for (text, kinds, said) in [
        ("", &[Tool][..], "is empty"),
        ("args.x ==", &[Tool], "not valid CEL, at character"),
        ("(((((", &[Tool], "not valid CEL"),
        ("arg.x == 1", &[Tool], "did you mean args?"),
        ("principal.role == 'x'", &[Tool], "principal has issuer, subject, tenant"),
        ("principal.roles == []", &[Tool], "did you mean claims.roles?"),
        ("claims.rols == []", &[Tool], "did you mean claims.roles?"),
        ("claims['nope'] == 1", &[Tool], "claims.nope, which does not exist"),
        ("has(claims.email)", &[Tool], "claims.email, which does not exist"),
        ("principal == 'ann'", &[Tool], "as a whole"),
        ("args.x == 1", &[Resource], "uses args, which is not there"),
        ("args.x == 1", &ObjectKind::ALL, "resources, methods, pages"),
        ("tool == 'x'", &[Prompt], "uses tool, which is not there"),
        ("server == 'x'", &[Page], "uses server, which is not there"),
        ("args.x.startWith('a')", &[Tool], "did you mean startsWith()?"),
        ("frobnicate(args.x)", &[Tool], "which does not exist"),
        ("args.x.matches(args.p)", &[Tool], "must be string literals"),
        ("args.x.matches('(')", &[Tool], "not a valid regular expression"),
        ("args.x.matches('a{1000}{1000}')", &[Tool], "not a valid regular expression"),
        ("args.x.matches('a[ab]{500}[^ab]')", &[Tool], "not a valid regular expression"),
        ("args.all(args, true)", &[Tool], "choose another name"),
        ("'text'", &[Tool], "a string, and must be true or false"),
        ("1 + 2", &[Tool], "must be true or false"),
        ("args", &[Tool], "must be true or false"),
        ("principal.tenant", &[Tool], "a text, and must be true or false"),
        ("claims.roles.contains('dev')", &[Tool], "write \"dev\" in claims.roles"),
        ("startsWith(args.path, '/x')", &[Tool], "behind a text"),
        ("args.a = 5", &[Tool], "compared with =="),
        ("args.a == 1 and args.b == 2", &[Tool], "&&"),
        ("a.b.C{x: 1} == 1", &[Tool], "cannot be made here"),
        ("args.a.all(a, args.a.all(b, args.a.all(c, args.a.all(d, true))))", &[Tool], "more than three deep"),
    ] {
        let error = refused(text, kinds);
        assert!(error.contains(said), "{text}: {error}");
    }
    assert!(refused(&"a".repeat(MAX_CONDITION_BYTES + 1), &[Tool]).contains("is longer than"));
}

#[test]
fn a_text_that_goes_deep_is_refused_and_ends_nothing() {
    let pairs = |open: &str, close: &str| {
        let n = (MAX_CONDITION_BYTES - 4) / (open.len() + close.len());
        format!("{}true{}", open.repeat(n), close.repeat(n))
    };
    for text in [
        pairs("(", ")"),
        pairs("[", "]"),
        pairs("!", ""),
        pairs("!(", ")"),
        pairs("true?", ":true"),
        pairs("true&&(", ")"),
        pairs("{'a':", "}"),
        format!("args{}", ".a".repeat(2000)),
        format!("args{}", "[0]".repeat(1300)),
        format!("1{} == 1", "+1".repeat(2000)),
        format!("args.x == {}1", "-".repeat(4000)),
        "(".repeat(MAX_CONDITION_BYTES),
        "\u{0}\u{7}".repeat(1000),
    ] {
        let _ = Condition::compile(&text, &[ObjectKind::Tool]);
    }
    let deep = Condition::compile(&format!("args{} == 1", ".a".repeat(2000)), &[ObjectKind::Tool]);
    assert!(deep.unwrap_err().contains("nested too deeply"));
}

#[test]
fn nothing_is_evaluated_that_would_take_too_long() {
    let list = |n: usize| -> &'static str {
        let items = vec!["1"; n].join(",");
        Box::leak(format!(r#"{{"a":[{items}]}}"#).into_boxed_str())
    };
    let once = "args.a.all(x, x == 1)";
    let thrice = "args.a.all(x, args.a.all(y, args.a.all(z, x == y)))";
    assert_eq!(holds(once, list(1000)), Ok(true));
    assert_eq!(holds(thrice, list(8)), Ok(true));
    for (text, n) in [(once, 100_000), (thrice, 100)] {
        assert!(holds(text, list(n)).unwrap_err().contains("too large"), "{text}");
    }
    // The work that bytes are, too.
    let big: &'static str = Box::leak(
        format!(r#"{{"blob":"{}","a":[{}]}}"#, "x".repeat(200_000), vec!["\"y\""; 1000].join(","))
            .into_boxed_str(),
    );
    assert!(holds("args.a.exists(x, args.blob.contains(x))", big).unwrap_err().contains("too large"));
    assert_eq!(holds(r#"args.blob.startsWith("x")"#, big), Ok(true));
    let huge: &'static str = Box::leak(format!(r#"{{"blob":"{}"}}"#, "x".repeat(300_000)).into_boxed_str());
    assert!(
        holds(r#"args.blob.startsWith("x")"#, huge).unwrap_err().contains("too many to be decided about")
    );
}

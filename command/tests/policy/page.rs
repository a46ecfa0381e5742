//! The examples of docs/policy.md, as they are written there.

/// An example: a configuration, and what becomes of calls.
pub(crate) struct Example {
    pub(crate) title: String,
    pub(crate) config: String,
    pub(crate) cases: Vec<Case>,
}

/// A line such as `ann role=dev call github_get_file {"owner":"acme"} -> allowed by "developers read code"`.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) line: String,
    pub(crate) who: Who,
    pub(crate) what: What,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) times: usize,
    pub(crate) verdict: Verdict,
    /// The name of the rule, or `default`; none where there is no policy.
    pub(crate) rule: Option<String>,
}

/// Somebody who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) roles: Vec<String>,
    pub(crate) tenant: Option<String>,
    /// None for API keys.
    pub(crate) issuer: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) endpoint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Call,
    Get,
    Read,
    Page,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    Refused,
    Unknown,
    WouldBeRefused,
    /// With the beginning of what the caller is told.
    Limited(String),
}

/// All examples of the page.
pub(crate) fn examples() -> Vec<Example> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/policy.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, examples) = page.split_once("\n## Examples\n").expect("the page has examples");
    examples.split("\n### ").skip(1).map(example).collect()
}

fn example(text: &str) -> Example {
    let title = text.lines().next().unwrap().to_owned();
    let block = |language: &str| {
        let blocks: Vec<&str> = text.split(&format!("```{language}\n")).skip(1).collect();
        assert_eq!(blocks.len(), 1, "{title} has one block of {language}");
        blocks[0].split("```").next().unwrap()
    };
    let cases: Vec<Case> = block("text").lines().map(case).collect();
    assert!(cases.len() >= 3, "{title} has cases");
    Example { config: block("toml").to_owned(), cases, title }
}

fn case(line: &str) -> Case {
    let wrong = || -> ! { panic!("this is no case: {line}") };
    let Some((asked, said)) = line.split_once(" -> ") else { wrong() };
    let mut words = asked.split_whitespace();
    let mut who = Who { name: words.next().unwrap_or_else(|| wrong()).to_owned(), ..Who::default() };
    let what = loop {
        let word = words.next().unwrap_or_else(|| wrong());
        match word.split_once('=') {
            Some(("role", role)) => who.roles.push(role.to_owned()),
            Some(("tenant", tenant)) => who.tenant = Some(tenant.to_owned()),
            Some(("issuer", issuer)) => who.issuer = Some(issuer.to_owned()),
            Some(("client", client)) => who.client = Some(client.to_owned()),
            Some(("endpoint", endpoint)) => who.endpoint = Some(endpoint.to_owned()),
            Some(_) => wrong(),
            None => break word,
        }
    };
    let what = match what {
        "call" => What::Call,
        "get" => What::Get,
        "read" => What::Read,
        "page" => What::Page,
        _ => wrong(),
    };
    let name = words.next().unwrap_or_else(|| wrong()).to_owned();
    let rest = words.collect::<Vec<_>>().join(" ");
    let (arguments, times) = match rest.rsplit_once("} ") {
        Some((arguments, times)) if times.ends_with(" times") => {
            (format!("{arguments}}}"), times.trim_end_matches(" times").parse().unwrap_or_else(|_| wrong()))
        }
        _ => (rest, 1),
    };
    let quoted = |text: &str| text.trim().trim_matches('"').to_owned();
    let (verdict, rule) = match said.split_once(" by ") {
        Some((verdict, rule)) => (verdict.trim(), Some(quoted(rule))),
        None => (said.trim(), None),
    };
    let verdict = match verdict {
        "allowed" => Verdict::Allowed,
        "refused" => Verdict::Refused,
        "unknown" => Verdict::Unknown,
        "would be refused" => Verdict::WouldBeRefused,
        other => match other.strip_prefix("limited ") {
            Some(told) => Verdict::Limited(quoted(told)),
            None => wrong(),
        },
    };
    Case { line: line.to_owned(), who, what, name, arguments, times, verdict, rule }
}

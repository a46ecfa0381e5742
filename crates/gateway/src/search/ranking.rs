//! Tests of what is found, and in which order.

use bytestring::ByteString;
use tidegate_protocol::{Error, Json, Symbol};

use super::index::{Index, Seen};
use crate::snapshot::{Row, Table};

/// Tools of two servers. The own name is what stands behind the prefix.
fn index() -> Index {
    let gh = |own: &str, rest: &str| (0, format!("gh_{own}"), own.to_owned(), rest.to_owned());
    let mail = |own: &str, rest: &str| (1, own.to_owned(), own.to_owned(), rest.to_owned());
    of(vec![
        gh(
            "create_issue",
            r#""description":"Opens a new issue in a repository","inputSchema":{"properties":{"labels":{"description":"Tags such as bug"}}}"#,
        ),
        gh("create_issue_comment", r#""description":"Adds a remark below an issue""#),
        gh("list_issues", r#""description":"Lists the issues of a repository""#),
        gh(
            "get_file_contents",
            r#""description":"Reads a file. Mentions an issue that may exist when you create things: issue, issue, issue""#,
        ),
        gh("merge_pull_request", r#""title":"Land a change""#),
        mail(
            "sendEmail",
            r#""description":"Sends a message to somebody","inputSchema":{"properties":{"recipient":{},"action":{"enum":["draft","schedule"]}}}"#,
        ),
        mail("weather", r#""description":"Forecast for a town""#),
        mail("search", r#""description":"Finds mail""#),
    ])
}

fn of(tools: Vec<(usize, String, String, String)>) -> Index {
    let mut table = Table::default();
    for (server, name, own, rest) in tools {
        let definition = Json::trusted(format!("{{\"name\":\"{name}\",{rest}}}"));
        table.add(
            ByteString::from(name),
            Row { server, own: own.into(), definition, withheld: None, rules: Default::default() },
        );
    }
    Index::new(&table, &["gh", "mail"])
}

fn found(query: &str) -> Vec<String> {
    index().search(query, None, 50, Seen(None)).names.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_meant_comes_first() {
    for (query, first) in [
        // Names, in every spelling.
        ("create issue", "gh_create_issue"),
        ("gh_create_issue", "gh_create_issue"),
        ("createIssue", "gh_create_issue"),
        ("create-issue-comment", "gh_create_issue_comment"),
        ("createissue", "gh_create_issue"),
        ("send email", "sendEmail"),
        ("search", "search"),
        // Other forms of the words.
        ("listing issue", "gh_list_issues"),
        ("creating issues", "gh_create_issue"),
        ("How can I merge pull requests?", "gh_merge_pull_request"),
        // Titles, descriptions, parameters and their values.
        ("land changes", "gh_merge_pull_request"),
        ("forecast", "weather"),
        ("recipients", "sendEmail"),
        ("schedule", "sendEmail"),
        ("label an issue with a tag", "gh_create_issue"),
        // Slips.
        ("wether", "weather"),
        ("waether", "weather"),
        ("isue comment", "gh_create_issue_comment"),
        ("pul reqeust", "gh_merge_pull_request"),
        ("forcast", "weather"),
        // Beginnings.
        ("gh_merge", "gh_merge_pull_request"),
        ("weath", "weather"),
        ("merg", "gh_merge_pull_request"),
    ] {
        assert_eq!(found(query).first().map(String::as_str), Some(first), "{query}: {:?}", found(query));
    }
}

#[test]
fn a_name_that_is_the_query_stands_before_names_that_begin_with_it() {
    let names = found("create_issue");
    assert_eq!(names[..2], ["gh_create_issue", "gh_create_issue_comment"], "{names:?}");
    assert!(names.contains(&"gh_get_file_contents".to_owned()), "a mention is found as well, further down");
}

#[test]
fn who_has_all_the_words_stands_before_who_has_one_often() {
    let index = of(vec![
        (0, "a".into(), "a".into(), r#""description":"invoice invoice invoice invoice""#.into()),
        (
            0,
            "b".into(),
            "b".into(),
            r#""description":"pay the invoice of a month, or do many other things with it""#.into(),
        ),
    ]);
    assert_eq!(index.search("pay invoice", None, 5, Seen(None)).names[0], "b");
}

#[test]
fn nothing_is_found_where_nothing_fits() {
    assert!(found("xylophone").is_empty());
    assert!(found("???").is_empty());
    assert!(found("").is_empty());
}

#[test]
fn one_server_and_a_limit() {
    let index = index();
    let found = index.search("issue", Some(1), 50, Seen(None));
    assert_eq!((found.names.len(), found.total), (0, 0), "{found:?}");
    let found = index.search("issue", None, 2, Seen(None));
    assert_eq!((found.names.len(), found.total), (2, 4), "{found:?}");
    let all = index.search("issue", None, 50, Seen(None));
    assert_eq!(all.names[..2], found.names[..], "a limit does not change the order");
    let all = Seen(None);
    assert_eq!(index.of_server(1, 2, all).names, ["sendEmail", "weather"]);
    assert_eq!((index.of_server(1, 2, all).total, index.count(0, all)), (3, 5));
    let without_email = [true, true, true, true, true, false, true, true];
    let some = Seen(Some(&without_email));
    assert_eq!((index.of_server(1, 2, some).total, index.count(1, some)), (2, 2));
}

#[test]
fn words_that_only_hidden_tools_have_are_not_there() {
    let tool =
        |name: &str, said: &str| (0, name.to_owned(), name.to_owned(), format!(r#""description":"{said}""#));
    let seen = || vec![tool("a", "sail a boat"), tool("b", "boil an egg")];
    let mut both = seen();
    both.push(tool("c", "sai boilerplat eggs eggs"));
    let (some, all) = (of(seen()), of(both));
    let is_seen = [true, true, false];
    // A beginning, a misspelling and a word of the hidden tool lead where they lead without it.
    for query in ["sai", "boilerplat", "boilr", "egs", "eggs", "sail egg", "c"] {
        assert_eq!(
            all.search(query, None, 5, Seen(Some(&is_seen))),
            some.search(query, None, 5, Seen(None)),
            "{query}"
        );
    }
}

#[test]
fn what_is_withheld_is_not_found() {
    let mut table = Table::default();
    for (name, withheld) in [("open", None), ("closed", Some(Error::new(Symbol::ToolExecution, "changed")))] {
        let definition = Json::trusted(format!("{{\"name\":\"{name}\",\"description\":\"a door\"}}"));
        table.add(
            name.into(),
            Row { server: 0, own: name.into(), definition, withheld, rules: Default::default() },
        );
    }
    assert_eq!(Index::new(&table, &["s"]).search("door", None, 5, Seen(None)).names, ["open"]);
}

#[test]
fn names_in_other_scripts_and_hostile_queries() {
    let index = of(vec![
        (0, "x1".into(), "x1".into(), r#""description":"Создать задачу""#.into()),
        (0, "x2".into(), "x2".into(), r#""description":"ファイルを検索する""#.into()),
    ]);
    assert_eq!(index.search("задачу", None, 5, Seen(None)).names, ["x1"]);
    assert_eq!(index.search("検索", None, 5, Seen(None)).names, ["x2"]);
    let long = "create issue ".repeat(100_000);
    assert_eq!(index.search(&long, None, 5, Seen(None)).total, 0);
}

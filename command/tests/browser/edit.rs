//! What is changed in the page: nothing without asking, and what others changed in between is not lost.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::Browser;
use crate::site::Site;

/// The dialog that asks. (`confirm` alone is a function of every window.)
const OPEN: &str = "document.querySelector('#confirm').open";
const ASKED: &str = "document.querySelector('#confirm').innerText";
const FAILURE: &str = "document.querySelector('#confirm-failure').innerText";
const FOCUSED: &str = "document.activeElement.id || document.activeElement.textContent";
/// What is known of the entity that is shown.
const KNOWN: &str = "[...document.querySelectorAll('#detail .said')].map((said) => said.textContent)";
/// The key that leaves a dialog, as WebDriver writes it.
const ESCAPE: &str = "\u{e00c}";

fn observations(site: &Site) -> Value {
    site.call("open_nodes", json!({"names": ["Ann"]}))["entities"][0]["observations"].clone()
}

/// A page that shows Ann.
fn ann(site: &Site) -> Browser {
    let browser = Browser::open(&site.url());
    browser.wait("document.body.dataset.state", "ready");
    browser.click("#list .entry");
    browser.wait(KNOWN, json!(["likes tea", "lives in Kiel"]));
    browser
}

fn site() -> Site {
    let site = Site::start();
    site.remember("Ann", "person", &["likes tea", "lives in Kiel"]);
    site
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn an_observation_is_edited_and_forgotten_after_asking() {
    let site = site();
    let browser = ann(&site);
    let (edit, forget) = ("#detail .observations li .link", "#detail .observations li .link + .link");
    // Escape changes nothing, and the keyboard goes back to where it was.
    browser.click(edit);
    browser.wait(OPEN, true);
    assert_eq!(browser.value(FOCUSED), json!("observation-text"));
    assert_eq!(browser.value("document.querySelector('#observation-text').value"), json!("likes tea"));
    browser.write("#observation-text", " and cake");
    browser.write("#observation-text", ESCAPE);
    browser.wait(OPEN, false);
    browser.wait(FOCUSED, "Edit");
    assert_eq!(browser.value("detail.hidden"), json!(false), "only the dialog has gone");
    assert_eq!(observations(&site), json!(["likes tea", "lives in Kiel"]));

    browser.click(edit);
    browser.wait(OPEN, true);
    browser.write("#observation-text", " and cake");
    browser.click("#confirm-do");
    browser.wait(KNOWN, json!(["lives in Kiel", "likes tea and cake"]));
    assert_eq!(browser.value(OPEN), json!(false));
    assert_eq!(observations(&site), json!(["lives in Kiel", "likes tea and cake"]));

    browser.click(forget);
    browser.wait(OPEN, true);
    let asked = browser.value(ASKED);
    assert!(asked.as_str().unwrap().contains("lives in Kiel"), "{asked}");
    assert_eq!(browser.value(FOCUSED), json!("confirm-cancel"), "Enter does no harm");
    browser.click("#confirm-cancel");
    browser.wait(OPEN, false);
    assert_eq!(observations(&site).as_array().unwrap().len(), 2);
    browser.click(forget);
    browser.wait(OPEN, true);
    browser.click("#confirm-do");
    browser.wait(KNOWN, json!(["likes tea and cake"]));

    // Somebody else was faster.
    browser.click(edit);
    browser.wait(OPEN, true);
    let gone = json!({"entityName": "Ann", "observations": ["likes tea and cake"]});
    site.call("delete_observations", json!({"deletions": [gone]}));
    browser.write("#observation-text", "!");
    browser.click("#confirm-do");
    browser.wait(&format!("{FAILURE}.includes('has no observation')"), true);
    browser.click("#confirm-cancel");
    browser.wait(KNOWN, json!([]));
    assert_eq!(observations(&site), json!([]));
    // What was cannot be changed.
    browser.value("(moment.value = 0, moment.dispatchEvent(new Event('input')))");
    browser.wait(KNOWN, json!(["likes tea", "lives in Kiel"]));
    browser.wait("document.querySelectorAll('#detail .observations .link').length", 0);
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn changes_are_undone_and_what_is_in_the_way_is_shown() {
    let site = site();
    let add = |text: &str| site.call("add_observations", json!({"entityName": "Ann", "contents": [text]}));
    add("sings");
    let added = site.call("list_changes", json!({"limit": 1}))["changes"][0]["id"].clone();
    let deletion = json!({"entityName": "Ann", "observations": ["sings"]});
    site.call("delete_observations", json!({"deletions": [deletion]}));
    let deleted = site.call("list_changes", json!({"limit": 1}))["changes"][0]["id"].clone();
    let browser = Browser::open(&site.url());
    browser.wait("document.body.dataset.state", "ready");
    browser.click("#tab-changes");
    browser.wait("document.querySelectorAll('#list .made').length", 3);
    // A chosen one, with another in its way.
    browser.click(&format!("#list [data-change=\"{added}\"] .link"));
    browser.wait(OPEN, true);
    let asked = browser.value(ASKED);
    for said in
        [format!("Undo change {added}?"), "add_observations".to_owned(), "removes 1 observation".to_owned()]
    {
        assert!(asked.as_str().unwrap().contains(&said), "{said}: {asked}");
    }
    browser.click("#confirm-do");
    browser.wait(&format!("{FAILURE}.includes('undo change {deleted} first')"), true);
    browser
        .wait(&format!("{FAILURE}.includes('In the way: Change {deleted}, delete_observations: Ann')"), true);
    browser.click("#confirm-cancel");
    browser.wait(OPEN, false);
    assert_eq!(observations(&site), json!(["likes tea", "lives in Kiel"]));
    // The last one, not at first and then at last.
    browser.click("#undo-last");
    browser.wait(OPEN, true);
    browser.write("#confirm-cancel", ESCAPE);
    browser.wait(OPEN, false);
    browser.wait(FOCUSED, "undo-last");
    assert_eq!(observations(&site), json!(["likes tea", "lives in Kiel"]));
    browser.click("#undo-last");
    browser.wait(OPEN, true);
    browser.click("#confirm-do");
    browser.wait("document.querySelectorAll('#list .made').length", 4);
    browser.wait(OPEN, false);
    assert_eq!(observations(&site), json!(["likes tea", "lives in Kiel", "sings"]));
    browser.wait("document.querySelectorAll('#list .made.undone').length", 1);
    browser.assert_well_behaved(site.port);
}

/// What has been downloaded under a name that ends so.
fn downloaded(site: &Site, end: &str) -> String {
    let start = Instant::now();
    loop {
        let files = std::fs::read_dir(site.folder()).unwrap().map(|file| file.unwrap().path());
        let found = files.into_iter().find(|file| file.to_string_lossy().ends_with(end));
        if let Some(text) =
            found.and_then(|file| std::fs::read_to_string(file).ok()).filter(|text| text.ends_with('\n'))
        {
            return text;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "nothing was downloaded");
        std::thread::sleep(Duration::from_millis(40));
    }
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn the_memory_is_exported_with_and_without_history() {
    let site = site();
    let browser = Browser::open(&site.url());
    browser.download_to(site.folder());
    browser.wait("document.body.dataset.state", "ready");
    browser.click("#export");
    browser.wait(OPEN, true);
    let asked = browser.value(ASKED);
    assert!(asked.as_str().unwrap().contains("The memory is not changed"), "{asked}");
    browser.write("#confirm-cancel", ESCAPE);
    browser.wait(OPEN, false);
    assert_eq!(browser.value("document.querySelector('#confirm').dataset.downloaded ?? null"), Value::Null);
    assert_eq!(browser.value(FOCUSED), json!("export"));

    let today = browser.value("new Date().toISOString().slice(0, 10)");
    let today = today.as_str().unwrap();
    for (choice, end, begin) in [
        ("now", format!("{today}.jsonl"), "{\"type\":\"entity\",\"name\":\"Ann\""),
        ("history", format!("{today}-history.jsonl"), "{\"type\":\"memory\",\"format\":\"tidegate-memory\""),
    ] {
        browser.click("#export");
        browser.wait(OPEN, true);
        browser.click(&format!("#confirm input[value={choice}]"));
        browser.click("#confirm-do");
        browser.wait(OPEN, false);
        let text = downloaded(&site, &end);
        assert!(text.starts_with(begin), "{choice}: {text}");
    }
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn a_type_has_the_same_colour_everywhere() {
    const DOTS: &str = "Object.fromEntries([...document.querySelectorAll('#list .entry')].map((entry) =>
        [entry.querySelector('.kind').textContent, entry.querySelector('.dot').className]))";
    let colours = |types: &[&str]| {
        let site = Site::start();
        for kind in types {
            site.remember(&format!("a {kind}"), kind, &[]);
        }
        let browser = Browser::open(&site.url());
        let all = "document.querySelectorAll('#list .entry').length";
        browser.wait(all, types.len());
        let listed = browser.value(DOTS);
        let legend = "Object.fromEntries([...document.querySelectorAll('#legend button')].map((button) =>
            [button.textContent, button.querySelector('.dot').className]))";
        assert_eq!(browser.value(legend), listed, "the legend says the same");
        browser.go(&site.url());
        browser.wait(all, types.len());
        assert_eq!(browser.value(DOTS), listed, "and so does the next load");
        browser.click("#list .entry");
        browser.wait("document.querySelector('#detail .type .dot').className", listed[types[0]].clone());
        listed
    };
    let (one, other) = (colours(&["decision", "person", "project"]), colours(&["person", "ship", "zebra"]));
    assert_eq!(one["person"], other["person"]);
    let all: std::collections::HashSet<String> =
        one.as_object().unwrap().values().map(Value::to_string).collect();
    assert_eq!(all.len(), 3, "usual types differ: {one}");
}

//! What was known before, and what comes while somebody looks.

use std::time::Duration;

use serde_json::json;

use crate::driver::Browser;
use crate::site::Site;

/// The moment that is shown, in words.
const WHEN: &str = "document.querySelector('#when').textContent";
const LISTED: &str = "[...document.querySelectorAll('#list .entry .name')].map((name) => name.textContent)";

/// Moves the slider as a hand does.
fn slide(browser: &Browser, to: usize) {
    browser.value(&format!("(moment.value = {to}, moment.dispatchEvent(new Event('input')))"));
}

/// Changes at the same millisecond would be one moment.
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn the_slider_goes_back_in_time() {
    let site = Site::start();
    site.remember("Ann", "person", &["likes tea"]);
    pause();
    site.remember("Ben", "person", &[]);
    pause();
    site.call("delete_entities", json!({"entityNames": ["Ann"]}));
    let browser = Browser::open(&site.url());
    browser.wait("document.body.dataset.state", "ready");
    assert_eq!(browser.value(LISTED), json!(["Ben"]));
    assert_eq!(browser.value("[moment.max, moment.value]"), json!(["3", "3"]));
    assert_eq!(browser.value(WHEN), json!("Now"));

    slide(&browser, 0);
    browser.wait(LISTED, json!(["Ann"]));
    let year = browser.value("new Date().getFullYear()");
    let when = browser.value(WHEN);
    assert!(when.as_str().unwrap().contains(&year.to_string()), "the date in words: {when}");
    assert_eq!(browser.value("moment.getAttribute('aria-valuetext')"), when);
    // What was known then is found, too.
    browser.write("#query", "tea");
    browser.wait(LISTED, json!(["Ann"]));
    browser.value("(query.value = '', query.dispatchEvent(new Event('input')))");

    slide(&browser, 1);
    browser.wait(LISTED, json!(["Ann", "Ben"]));
    browser.click("#now");
    browser.wait(LISTED, json!(["Ben"]));
    browser.wait("document.body.dataset.time", "now");

    // Played from the beginning, it ends at now.
    browser.click("#play");
    browser.wait("play.dataset.playing", "true");
    browser.wait("[play.dataset.playing, document.body.dataset.time]", json!(["false", "now"]));
    browser.wait(LISTED, json!(["Ben"]));
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn changes_are_shown_as_they_come_but_not_into_the_past() {
    let site = Site::start();
    let browser = Browser::open(&site.url());
    browser.wait("document.body.dataset.state", "ready");
    assert_eq!(browser.value("[empty.hidden, moment.disabled]"), json!([false, true]));
    site.remember("Ann", "person", &[]);
    browser.wait(LISTED, json!(["Ann"]));
    assert_eq!(browser.value("[empty.hidden, moment.disabled]"), json!([true, false]));

    slide(&browser, 0);
    browser.wait("document.body.dataset.time === 'now'", false);
    pause();
    site.remember("Ben", "person", &[]);
    browser.wait("moment.max", "2");
    assert_eq!(browser.value("[moment.value, graph.dataset.nodes]"), json!(["0", "1"]));
    browser.click("#now");
    browser.wait(LISTED, json!(["Ann", "Ben"]));
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn documents_that_came_later_are_not_shown() {
    let site = Site::start();
    site.remember("Ann", "person", &[]);
    pause();
    site.call("ingest_document", json!({"title": "First", "text": "one"}));
    pause();
    site.call("ingest_document", json!({"title": "Second", "text": "two"}));
    let browser = Browser::open(&site.url());
    browser.wait("document.body.dataset.state", "ready");
    browser.click("#tab-documents");
    browser.wait("document.querySelectorAll('#list .entry').length", 2);
    slide(&browser, 1);
    browser.wait(LISTED, json!(["First"]));
    assert!(browser.value("list.innerText").as_str().unwrap().contains("as they are now"));
    slide(&browser, 0);
    browser.wait("list.innerText.includes('There were no documents at that time.')", true);
    browser.click("#now");
    browser.wait("document.querySelectorAll('#list .entry').length", 2);
    browser.assert_well_behaved(site.port);
}

//! What is known now: the graph, the list, what is found, and what is known of one entity.

use serde_json::{Value, json};

use crate::driver::Browser;
use crate::http::{self, header};
use crate::site::Site;

/// A name that would be a picture, and a script with it, if anybody took it for markup.
const NASTY: &str = "<img src=x onerror=\"document.title='taken'\">";

/// The names in the list, in its order.
const LISTED: &str = "[...document.querySelectorAll('#list .entry .name')].map((name) => name.textContent)";
/// The heading of what is shown of one thing, if anything is.
const TITLE: &str = "document.querySelector('#detail:not([hidden]) h2')?.textContent ?? null";

fn harbour(prefix: &'static str) -> Site {
    let site = Site::with_prefix(prefix);
    site.remember("Ann", "person", &["likes tea", "lives in Kiel"]);
    site.remember("Ben", "person", &["writes the manual"]);
    site.remember("Harbour", "project", &["began in March"]);
    let properties = json!({"email": "ann@example.com", "tall": true});
    site.call("set_properties", json!({"entityName": "Ann", "properties": properties}));
    site.relate("Ann", "leads", "Harbour");
    site.relate("Ben", "works_on", "Harbour");
    site
}

/// Waits until everything is drawn and nothing moves.
#[track_caller]
fn wait_for_graph(browser: &Browser, nodes: usize, links: usize) {
    browser.wait("document.body.dataset.state", "ready");
    let drawn = "[graph.dataset.nodes, graph.dataset.links, graph.dataset.layout]";
    browser.wait(drawn, json!([nodes.to_string(), links.to_string(), "still"]));
}

/// Clicks an entity where it is drawn.
fn click_node(browser: &Browser, name: &str) {
    let at = browser.value(&format!("graph.where({})", json!(name)));
    browser.click_at(at["x"].as_f64().expect("it is drawn"), at["y"].as_f64().unwrap());
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn the_graph_is_drawn_and_an_entity_shows_what_is_known() {
    // Behind a gateway with other servers, the tools have a prefix.
    let site = harbour("memory_");
    site.call(
        "delete_observations",
        json!({"deletions": [{"entityName": "Ann", "observations": ["lives in Kiel"]}]}),
    );
    let browser = Browser::open(&site.url());
    wait_for_graph(&browser, 3, 2);
    browser.wait("counts.textContent", "3 entities, 2 relations");
    assert_eq!(browser.value(LISTED), json!(["Ann", "Ben", "Harbour"]));
    // Something is on the canvas, where the node is said to be.
    let painted = "(() => { const { x, y } = graph.where('Harbour'); const box = graph.getBoundingClientRect();
        const ratio = graph.width / box.width;
        return graph.getContext('2d').getImageData((x - box.left) * ratio, (y - box.top) * ratio, 1, 1).data[3]; })()";
    assert_eq!(browser.value(painted), json!(255));

    click_node(&browser, "Ann");
    browser.wait(TITLE, "Ann");
    let detail = browser.value("detail.innerText");
    let detail = detail.as_str().unwrap();
    for known in ["person", "likes tea", "leads", "Harbour", "email", "ann@example.com", "true"] {
        assert!(detail.contains(known), "{known}: {detail}");
    }
    assert!(!detail.contains("lives in Kiel"), "{detail}");
    browser.click("#detail .history summary");
    browser.wait("document.querySelector('.change.removed')?.textContent", "− lives in Kiel");
    let listed = site.call("list_entities", json!({"prefix": "Ann"}));
    browser.wait(
        "document.querySelector('#detail .identity dd')?.textContent",
        listed["entities"][0]["id"].clone(),
    );

    // From one to the next, and away.
    browser.click("#detail .relations .link");
    browser.wait(TITLE, "Harbour");
    browser.click("#detail .close");
    browser.wait(TITLE, Value::Null);
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn search_finds_what_is_known() {
    let site = harbour("");
    let browser = Browser::open(&site.url());
    wait_for_graph(&browser, 3, 2);
    browser.write("#query", "manual");
    browser.wait(LISTED, json!(["Ben"]));
    browser.value("(query.value = 'xylophone', query.dispatchEvent(new Event('input')))");
    browser.wait(LISTED, json!([]));
    browser.wait("list.textContent", "No results.");
    browser.value("(query.value = '', query.dispatchEvent(new Event('input')))");
    browser.wait(LISTED, json!(["Ann", "Ben", "Harbour"]));
    // Only one type.
    browser.click("#legend button");
    browser.wait(LISTED, json!(["Ann", "Ben"]));
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn what_is_remembered_stays_text() {
    let site = Site::start();
    site.remember(NASTY, NASTY, &[NASTY, "<script>document.title = 'taken'</script>"]);
    site.remember("Ann", "person", &[]);
    site.relate("Ann", NASTY, NASTY);
    let browser = Browser::open(&site.url());
    wait_for_graph(&browser, 2, 1);
    click_node(&browser, NASTY);
    browser.wait(TITLE, NASTY);
    browser.click("#detail .history summary");
    browser.wait("document.querySelectorAll('.change').length", 3);
    let markup = "document.querySelectorAll('main img, main script, header img:not([src=\"memory/icon.svg\"])').length";
    assert_eq!(browser.value(markup), json!(0));
    assert_eq!(browser.value("document.title"), json!("Memory"));
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn an_empty_memory_says_how_to_begin_in_light_and_dark() {
    let site = Site::start();
    let browser = Browser::open(&site.url());
    browser.wait("document.body.dataset.state", "ready");
    let empty = browser.value("empty.innerText");
    let endpoint = format!("http://127.0.0.1:{}/mcp", site.port);
    assert!(empty.as_str().unwrap().contains(&endpoint), "{empty}");
    let brightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)
        .reduce((sum, part) => sum + part)";
    browser.prefer("prefers-color-scheme", "light");
    assert!(browser.value(brightness).as_i64().unwrap() > 600);
    browser.prefer("prefers-color-scheme", "dark");
    assert!(browser.value(brightness).as_i64().unwrap() < 150);
    // What other parts of a memory would list.
    for tab in ["documents", "agents"] {
        browser.click(&format!("#tab-{tab}"));
        browser.wait(&format!("document.querySelector('#tab-{tab}').ariaSelected"), "true");
        browser.wait("/^Loading/.test(list.textContent) || list.textContent === ''", false);
        assert_eq!(browser.value("trouble.hidden"), json!(true));
    }
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn a_large_graph_is_drawn_and_can_be_searched() {
    let site = Site::start();
    let entities: Vec<Value> = (0..1500)
        .map(|n| json!({"name": format!("Thing {n}"), "entityType": format!("kind {}", n % 14), "observations": []}))
        .collect();
    let relations: Vec<Value> = (1..1500)
        .map(|n| json!({"from": format!("Thing {n}"), "to": format!("Thing {}", n / 4), "relationType": "follows"}))
        .collect();
    site.call("create_entities", json!({"entities": entities}));
    site.call("create_relations", json!({"relations": relations}));
    let browser = Browser::open(&site.url());
    wait_for_graph(&browser, 1500, 1499);
    // A list shows its beginning, and more when it is wanted.
    let rows = "document.querySelectorAll('#list .entry').length";
    assert_eq!(browser.value(rows), json!(200));
    browser.click("#list .more");
    assert_eq!(browser.value(rows), json!(400));
    browser.write("#query", "Thing 1499");
    browser.wait(LISTED, json!(["Thing 1499"]));
    browser.click("#list .entry");
    browser.wait(TITLE, "Thing 1499");
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn documents_and_agents_are_found_and_shown_whole() {
    let site = Site::start();
    site.relate("nobody", "knows", "noone");
    for n in 1..=3 {
        let text = format!("The text of number {n}{}", if n == 2 { ", with a herring" } else { "" });
        site.call("ingest_document", json!({"title": format!("Doc {n}"), "text": text}));
    }
    let prompt = format!("Find the way. {}The end.", "Look at the stars. ".repeat(40));
    site.call(
        "create_agent",
        json!({
            "agent_name": "Pilot", "description": prompt, "tools": ["search_nodes"],
            "output_schema": {"type": "object", "properties": {"heading": {"type": "string"}}},
        }),
    );
    let browser = Browser::open(&site.url());
    browser.wait("document.body.dataset.state", "ready");
    // No entity is not nothing.
    browser.wait(
        "empty.innerText.includes('There are no entities') && empty.innerText.includes('1 relation ')",
        true,
    );
    browser.click("#empty .link");
    browser.wait("document.querySelectorAll('#list .entry').length", 3);
    browser.write("#query", "Doc 3");
    browser.wait("document.querySelector('#list .entry .name')?.textContent", "Doc 3");
    browser.value("(query.value = 'herring', query.dispatchEvent(new Event('input')))");
    browser.wait(LISTED, json!(["Doc 2"]));
    assert_eq!(browser.value("document.querySelector('#tab-documents').ariaSelected"), json!("true"));
    browser.value("(query.value = 'absent', query.dispatchEvent(new Event('input')))");
    browser.wait("list.textContent", "No results.");

    browser.value("(query.value = 'pilot', query.dispatchEvent(new Event('input')))");
    browser.click("#tab-agents");
    browser.wait(LISTED, json!(["Pilot"]));
    browser.click("#list .entry");
    browser.wait("detail.innerText.includes('The end.')", true);
    let detail = browser.value("detail.innerText");
    for told in ["Look at the stars.", "search_nodes", "Search for nodes in the knowledge graph", "heading"] {
        assert!(detail.as_str().unwrap().contains(told), "{told}: {detail}");
    }
    browser.assert_well_behaved(site.port);
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn every_file_is_guarded() {
    let site = Site::start();
    for path in ["/memory", "/memory/app.js", "/memory/memory.css", "/memory/icon.svg"] {
        let answer = http::request(site.port, "GET", path, None);
        assert_eq!(answer.status, 200, "{path}");
        let policy = header(&answer.head, "content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header(&answer.head, "x-content-type-options"), Some("nosniff"), "{path}");
    }
    assert_eq!(http::request(site.port, "GET", "/memory/other.js", None).status, 404);
    assert_eq!(http::request(site.port, "POST", "/memory", Some(&json!({}))).status, 405);
}

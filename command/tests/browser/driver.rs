//! [`Browser`]: a Chromium without a window, told what to do through its driver (W3C WebDriver).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http;

/// What must come has come by then.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser with one page, which goes when the test is over.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// A browser that shows the page at `url`.
    pub(crate) fn open(url: &str) -> Browser {
        let browser = Browser::start();
        browser.go(url);
        browser
    }

    /// A browser that shows nothing yet.
    pub(crate) fn start() -> Browser {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.by_ref().find_map(|line| {
            line.split("started successfully on port ").nth(1)?.trim_end_matches('.').parse().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Browser { driver, port: port.expect("a port"), session: String::new() };
        let options = json!({
            "binary": chromium(),
            // The sandbox needs rights that containers do not have; only our own page is opened.
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--window-size=1280,860", "--no-first-run", "--disable-background-networking"],
        });
        let capabilities = json!({
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        });
        let made = browser.driver("POST", "/session", json!({"capabilities": {"alwaysMatch": capabilities}}));
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    pub(crate) fn go(&self, url: &str) {
        self.ask("POST", "/url", json!({"url": url}));
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.ask("POST", "/execute/sync", json!({"script": format!("return {expression};"), "args": []}))
    }

    /// Waits until an expression in the page has this value.
    #[track_caller]
    pub(crate) fn wait(&self, expression: &str, wanted: impl Into<Value>) {
        let wanted = wanted.into();
        let start = Instant::now();
        loop {
            let value = self.value(expression);
            if value == wanted {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{expression} is {value}, and not {wanted}");
            std::thread::sleep(Duration::from_millis(40));
        }
    }

    /// Clicks at a point of the page, as the mouse does.
    pub(crate) fn click_at(&self, x: f64, y: f64) {
        let to = json!({"type": "pointerMove", "duration": 0, "x": x.round(), "y": y.round()});
        let pointer = json!({
            "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
            "actions": [to, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}],
        });
        self.ask("POST", "/actions", json!({"actions": [pointer]}));
    }

    /// Clicks the element of this selector. One that the page has drawn anew in between is looked for again.
    pub(crate) fn click(&self, selector: &str) {
        let start = Instant::now();
        loop {
            let path = format!("/session/{}{}/click", self.session, self.element(selector));
            let answer = http::request(self.port, "POST", &path, Some(&json!({})));
            if answer.status == 200 {
                return;
            }
            let stale = answer.body.contains("stale element reference") && start.elapsed() < PATIENCE;
            assert!(stale, "{selector} cannot be clicked: {}", answer.body);
        }
    }

    /// Types into the element of this selector. Keys are those of WebDriver.
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let path = format!("{}/value", self.element(selector));
        self.ask("POST", &path, json!({"text": text}));
    }

    /// Makes the page believe that the reader prefers something.
    pub(crate) fn prefer(&self, feature: &str, value: &str) {
        let params = json!({"features": [{"name": feature, "value": value}]});
        self.ask("POST", "/goog/cdp/execute", json!({"cmd": "Emulation.setEmulatedMedia", "params": params}));
    }

    /// Puts what the page downloads into a folder.
    pub(crate) fn download_to(&self, folder: &std::path::Path) {
        let params = json!({"behavior": "allow", "downloadPath": folder});
        self.ask(
            "POST",
            "/goog/cdp/execute",
            json!({"cmd": "Browser.setDownloadBehavior", "params": params}),
        );
    }

    /// Fails if the page complained, or asked anybody but the server at `port` for anything.
    #[track_caller]
    pub(crate) fn assert_well_behaved(&self, port: u16) {
        let told = self.ask("POST", "/se/log", json!({"type": "browser"}));
        let told: Vec<&Value> =
            told.as_array().unwrap().iter().filter(|entry| entry["level"] != "INFO").collect();
        assert!(told.is_empty(), "the console says: {told:?}");
        let own = format!("http://127.0.0.1:{port}/");
        // What the page made itself, to be downloaded.
        let made = format!("blob:{own}");
        let events = self.ask("POST", "/se/log", json!({"type": "performance"}));
        let mut asked = 0;
        for event in events.as_array().unwrap() {
            let message: Value = serde_json::from_str(event["message"].as_str().unwrap()).unwrap();
            if message["message"]["method"] == "Network.requestWillBeSent" {
                let url = message["message"]["params"]["request"]["url"].as_str().unwrap();
                let fine = [own.as_str(), made.as_str(), "data:,"].iter().any(|begin| url.starts_with(begin));
                assert!(fine, "the page asked {url}");
                asked += 1;
            }
        }
        assert!(asked > 5, "the page and its files were asked for: {asked}");
    }

    fn element(&self, selector: &str) -> String {
        let found = self.ask("POST", "/element", json!({"using": "css selector", "value": selector}));
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        format!("/element/{}", id.unwrap_or_else(|| panic!("no element {selector}: {found}")))
    }

    fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        self.driver(method, &format!("/session/{}{path}", self.session), body)
    }

    fn driver(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = http::request(self.port, method, path, Some(&body));
        let mut told: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        assert_eq!(answer.status, 200, "{method} {path} {body}: {told}");
        told["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser too: a driver that is only killed leaves it behind. Nothing here may panic.
        let line = format!(
            "DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
            self.session, self.port
        );
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ = stream.write_all(line.as_bytes()).and_then(|()| stream.read(&mut [0; 256]));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Where Chromium is.
fn chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    found.expect("Chromium is installed")
}

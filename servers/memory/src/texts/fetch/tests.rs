//! Pages of a server on this machine, under names that a resolver of the test's own knows.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};

use tidegate_web::Lookup;

use super::*;
use crate::texts::MAX_BYTES;

/// A server whose answer depends on the path, and the paths that were asked for.
struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// It listens on every address of this machine, so that whatever is wrongly connected to would answer.
    fn new(answer: impl Fn(&str) -> String + Send + 'static) -> Site {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let paths = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                    request.push(byte[0]);
                }
                let request = String::from_utf8(request).unwrap();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = answer(&path);
                // Before it is answered: the test looks as soon as it is.
                paths.lock().unwrap().push(path);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Site { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn page(content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A fetcher for which 127.0.0.1 is the public internet. Each lookup of a name takes the next of its answers, and the last
/// one stays.
fn fetcher(names: &[(&str, &[&[IpAddr]])], max: usize) -> (Fetcher, Arc<Mutex<Vec<String>>>) {
    let names: Vec<(String, Vec<Vec<IpAddr>>)> = names
        .iter()
        .map(|(name, answers)| ((*name).to_owned(), answers.iter().map(|one| one.to_vec()).collect()))
        .collect();
    let looked_up = Arc::new(Mutex::new(Vec::<String>::new()));
    let asked = looked_up.clone();
    let lookup: Lookup = Arc::new(move |name| {
        let before = asked.lock().unwrap().iter().filter(|other| **other == name).count();
        let known = names.iter().find(|(other, _)| *other == name).map(|(_, answers)| answers);
        let answer = known.map(|answers| answers[before.min(answers.len() - 1)].clone());
        asked.lock().unwrap().push(name);
        Box::pin(std::future::ready(answer.ok_or_else(|| std::io::Error::other("no such name"))))
    });
    let allowed = |address| address == HOME || Zone::of(address) == Zone::Public;
    (Fetcher::within(Guard::new(allowed).with_lookup(lookup), max), looked_up)
}

async fn refused(fetcher: &Fetcher, url: &str) -> String {
    match fetcher.fetch(url).await {
        Ok(taken) => panic!("{url}: {taken:?}"),
        Err(fault) => fault.message,
    }
}

#[tokio::test]
async fn every_spelling_of_a_private_address_is_refused() {
    let fetcher = Fetcher::new(false, MAX_BYTES);
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST",
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "100.64.0.1",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::169.254.169.254]",
        "[2002:7f00:1::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "224.0.0.1",
        "255.255.255.255",
        "203.0.113.7",
    ] {
        for url in [format!("http://{host}:9/x"), format!("https://{host}/")] {
            let why = refused(&fetcher, &url).await;
            assert!(why.contains("not on the public internet"), "{url}: {why}");
        }
    }
}

#[tokio::test]
async fn what_is_no_address_of_a_page_is_refused() {
    let (fetcher, looked_up) = fetcher(&[("public.test", &[&[HOME]])], 1_000);
    let long = format!("http://public.test/{}", "a".repeat(3_000));
    for (url, why) in [
        ("", "not a valid URL"),
        ("public.test", "not a valid URL"),
        ("//public.test/", "not a valid URL"),
        ("http://", "not a valid URL"),
        ("http://[::1", "not a valid URL"),
        ("http://[fe80::1%25eth0]/", "not a valid URL"),
        ("file:///etc/passwd", "only http"),
        ("ftp://public.test/", "only http"),
        ("gopher://public.test/", "only http"),
        ("data:text/plain,x", "only http"),
        ("javascript:alert(1)", "only http"),
        ("http://name@public.test/", "password"),
        ("http://name:word@public.test/", "password"),
        (&long, "at most 2000"),
    ] {
        let said = refused(&fetcher, url).await;
        assert!(said.starts_with("url: ") && said.contains(why), "{url}: {said}");
    }
    assert!(looked_up.lock().unwrap().is_empty(), "nothing of this is worth a lookup");
    assert!(refused(&fetcher, "http://nowhere.test/").await.contains("there is no host"));
}

#[tokio::test]
async fn redirects_are_followed_only_where_pages_may_be_fetched() {
    let site = Site::new(|path| match path.strip_prefix("/to?") {
        Some(to) => redirect(to),
        None if path == "/loop" => redirect("/loop"),
        None if path == "/nowhere" => {
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()
        }
        None => page("text/plain", "arrived"),
    });
    let (fetcher, _) = fetcher(
        &[("public.test", &[&[HOME]]), ("inner.test", &[&[ELSEWHERE]]), ("both.test", &[&[HOME, ELSEWHERE]])],
        1_000,
    );
    let port = site.port;
    let base = format!("http://public.test:{port}");
    for good in [
        "/page",
        "/to?/page",
        "/to?/to?/page",
        &format!("/to?http://127.0.0.1:{port}/page"),
        "/to?//public.test",
    ] {
        let good = good.replace("//public.test", &format!("//public.test:{port}/page"));
        let taken = fetcher.fetch(&format!("{base}{good}#part")).await.unwrap();
        assert_eq!((taken.text.as_str(), taken.source), ("arrived", format!("{base}{good}")));
    }
    for (to, why) in [
        (format!("http://127.0.0.2:{port}/secret"), "not on the public internet"),
        (format!("http://inner.test:{port}/secret"), "not on the public internet"),
        (format!("http://both.test:{port}/secret"), "not on the public internet"),
        (format!("http://[::1]:{port}/secret"), "not on the public internet"),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "not on the public internet"),
        (format!("/to?http://inner.test:{port}/secret"), "not on the public internet"),
        ("file:///etc/passwd".to_owned(), "only http"),
        (format!("http://a:b@public.test:{port}/secret"), "password"),
        ("http://[".to_owned(), "not a URL"),
    ] {
        let said = refused(&fetcher, &format!("{base}/to?{to}")).await;
        assert!(said.contains(why), "{to}: {said}");
    }
    assert!(!site.asked().iter().any(|path| path == "/secret"), "{:?}", site.asked());
    assert!(refused(&fetcher, &format!("{base}/loop")).await.contains("more than 5 times"));
    let said = refused(&fetcher, &format!("{base}/nowhere")).await;
    assert!(said.contains("answered 302 without a Location header"), "{said}");
    let asked = site.asked().iter().filter(|path| *path == "/loop").count();
    assert_eq!(asked, 6);
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_not_believed() {
    let site = Site::new(|path| match path {
        "/again" => redirect("/secret"),
        _ => page("text/plain", "arrived"),
    });
    let port = site.port;
    // The connection goes to what was checked, whatever the name means by then.
    let (once, looked_up) = fetcher(&[("rebind.test", &[&[HOME], &[ELSEWHERE]])], 1_000);
    once.fetch(&format!("http://rebind.test:{port}/page")).await.unwrap();
    assert_eq!(*looked_up.lock().unwrap(), ["rebind.test"], "one lookup for one request");
    // A redirect is a request of its own.
    let (twice, _) = fetcher(&[("rebind.test", &[&[HOME], &[ELSEWHERE]])], 1_000);
    let said = refused(&twice, &format!("http://rebind.test:{port}/again")).await;
    assert!(said.contains("not on the public internet"), "{said}");
    // One bad address among good ones is enough.
    for answer in [&[HOME, ELSEWHERE][..], &[ELSEWHERE, HOME]] {
        let (mixed, _) = fetcher(&[("rebind.test", &[answer])], 1_000);
        let said = refused(&mixed, &format!("http://rebind.test:{port}/secret")).await;
        assert!(said.contains("not on the public internet"), "{said}");
    }
    assert_eq!(site.asked(), ["/page", "/again"]);
    // Names are the same in capitals and with a dot in the end.
    let (dotted, _) = fetcher(&[("rebind.test", &[&[HOME]]), ("rebind.test.", &[&[HOME]])], 1_000);
    for host in ["REBIND.test", "rebind.test."] {
        dotted.fetch(&format!("http://{host}:{port}/page")).await.unwrap();
    }
}

#[tokio::test]
async fn pages_are_read_by_what_they_are_and_within_limits() {
    let site = Site::new(|path| match path {
        "/html" => page("text/html; charset=utf-8", "<title>T</title><p>Hi"),
        "/latin" => page("text/plain; charset=\"iso-8859-1\"", "caf\u{e9}"),
        "/notes.md" => page("text/plain", "words"),
        "/untyped" => "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nwords".to_owned(),
        "/image" => page("image/png", "x"),
        "/pdf" => page("application/pdf", "%PDF-1.7"),
        "/zip" => page("application/octet-stream", "PK\u{3}\u{4}...."),
        "/binary" => page("text/plain", "a\0b"),
        "/packed" => page("text/plain\r\ncontent-encoding: gzip", "x"),
        "/large" => page("text/plain", &"x".repeat(1_001)),
        "/endless" => format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n{}", "x".repeat(5_000)),
        "/short" => "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nx".to_owned(),
        "/fits" => page("text/plain", &"x".repeat(1_000)),
        _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    });
    let (fetcher, _) = fetcher(&[], 1_000);
    let base = format!("http://127.0.0.1:{}", site.port);
    for (path, kind) in [
        ("/html", Kind::Html),
        ("/latin", Kind::Plain),
        ("/notes.md", Kind::Markdown),
        ("/untyped", Kind::Plain),
        ("/fits", Kind::Plain),
    ] {
        let taken = fetcher.fetch(&format!("{base}{path}")).await.unwrap();
        assert_eq!(taken.kind, kind, "{path}");
    }
    for (path, why) in [
        ("/image", "\"image/png\"; plain text, Markdown"),
        ("/zip", "not unpacked"),
        ("/binary", "binary data"),
        ("/packed", "compressed"),
        ("/pdf", "pdftotext"),
        ("/large", "1000 bytes"),
        ("/endless", "1000 bytes"),
        ("/short", "did not arrive completely"),
        ("/absent", "404"),
    ] {
        let said = refused(&fetcher, &format!("{base}{path}")).await;
        assert!(said.starts_with("url: ") && said.contains(why), "{path}: {said}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert!(refused(&fetcher, &format!("http://127.0.0.1:{closed}/")).await.contains("cannot be reached"));
}

#[tokio::test]
async fn what_a_cloud_tells_its_machines_is_never_fetched() {
    let site = Site::new(|path| match path.strip_prefix("/to?") {
        Some(to) => redirect(to),
        None => page("text/html", "<a href=there>go</a>"),
    });
    let fetcher = Fetcher::new(true, MAX_BYTES);
    let base = format!("http://127.0.0.1:{}", site.port);
    let taken = fetcher.fetch(&format!("{base}/here")).await.unwrap().readable("url", 1_000).unwrap();
    assert_eq!(taken.text, format!("go ({base}/there)\n"));
    for secret in ["http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://[fe80::1]/"]
    {
        for url in [secret.to_owned(), format!("{base}/to?{secret}")] {
            let said = refused(&fetcher, &url).await;
            assert!(said.contains("nothing is ever fetched from there"), "{url}: {said}");
        }
    }
}

#[tokio::test]
async fn a_host_that_keeps_failing_is_left_alone() {
    let site = Site::new(|path| match path {
        "/fine" => page("text/plain", "arrived"),
        "/absent" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    });
    let (fetcher, _) = fetcher(&[("a.test", &[&[HOME]]), ("b.test", &[&[HOME]])], 1_000);
    let at = |host: &str, path: &str| format!("http://{host}:{}{path}", site.port);
    // What the host answers below 500 is no failure of the host.
    for path in ["/down", "/down", "/absent", "/down", "/down"] {
        let said = refused(&fetcher, &at("a.test", path)).await;
        assert!(said.contains("the server answered"), "{said}");
    }
    assert!(refused(&fetcher, &at("a.test", "/down")).await.contains("503"));
    let asked = site.asked().len();
    let said = refused(&fetcher, &at("a.test", "/fine")).await;
    assert!(said.starts_with("Service temporarily unavailable"), "{said}");
    assert!(said.contains("a.test") && said.contains("failed 3 times in a row"), "{said}");
    assert_eq!(site.asked().len(), asked, "nothing was sent");
    // Each host has a circuit of its own.
    assert_eq!(fetcher.fetch(&at("b.test", "/fine")).await.unwrap().text, "arrived");
}

#[tokio::test]
async fn no_host_is_asked_for_many_pages_at_once() {
    let site = Site::new(|_| page("text/plain", "arrived"));
    let (fetcher, _) = fetcher(&[("a.test", &[&[HOME]])], 1_000);
    let hold = Settings {
        guard: Guard::anywhere(),
        proxies: Proxies::none(),
        rate: Some(Rate { burst: 1, per_second: 0.001 }),
        ..Settings::default()
    };
    let fetcher = Fetcher { web: Web::new(hold), ..fetcher };
    let url = format!("http://127.0.0.1:{}/", site.port);
    fetcher.fetch(&url).await.unwrap();
    // It is we who hold back, so the host is not taken for one that fails.
    for _ in 0..4 {
        let fault = fetcher.fetch(&url).await.unwrap_err();
        assert_eq!(fault.code, Code::Unavailable);
        assert!(fault.message.contains("too many requests go to 127.0.0.1"), "{fault}");
    }
    assert_eq!(site.asked().len(), 1);
}

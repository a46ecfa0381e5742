//! What comes in on one side goes out on the other byte by byte, apart from what [`Differs`] lists. The list is closed,
//! and `docs/faithfulness.md` has it for people.

use tidegate_gateway::Gateway;
use tidegate_protocol::{Json, Limits, Object};

use crate::callers::Wire;
use crate::raw::{ODD, Raw, asking, definition, error, log, progress, question, result};
use crate::rig::*;

/// What may differ, and nothing else.
#[derive(Debug, Clone, Copy)]
enum Differs {
    Envelope,
    Names,
    WhoAsks,
    Ids,
    CallIds,
    ProgressTokens,
    RequestStates,
    Terms,
    ResultType,
    CacheHints,
    Questions,
}

impl Differs {
    const ALL: [Differs; 11] = [
        Differs::Envelope,
        Differs::Names,
        Differs::WhoAsks,
        Differs::Ids,
        Differs::CallIds,
        Differs::ProgressTokens,
        Differs::RequestStates,
        Differs::Terms,
        Differs::ResultType,
        Differs::CacheHints,
        Differs::Questions,
    ];

    /// Its heading in the documentation.
    fn title(self) -> &'static str {
        match self {
            Differs::Envelope => "The envelope",
            Differs::Names => "Names",
            Differs::WhoAsks => "Who is asking",
            Differs::Ids => "Request ids",
            Differs::CallIds => "Ids of calls",
            Differs::ProgressTokens => "Progress tokens",
            Differs::RequestStates => "Request states",
            Differs::Terms => "Request metadata",
            Differs::ResultType => "Result type",
            Differs::CacheHints => "Cache hints",
            Differs::Questions => "Questions between the eras",
        }
    }
}

/// A text that was sent, turned step by step into what must arrive.
struct Sent(String);

impl Sent {
    /// One of the things that may differ does: `from`, which stands there once, arrives as `to`.
    #[track_caller]
    fn but(self, what: Differs, from: &str, to: &str) -> Sent {
        assert_eq!(self.0.matches(from).count(), 1, "{what:?}: {from} in {}", self.0);
        Sent(self.0.replacen(from, to, 1))
    }
}

fn sent(text: impl Into<String>) -> Sent {
    Sent(text.into())
}

/// One gateway with one server, and a caller in front of it who writes and reads text.
struct Pair {
    raw: Raw,
    gateway: Gateway,
    caller: Wire,
    /// Whether the caller is modern.
    modern: bool,
    at: String,
}

/// What the caller says about itself, once (legacy) or each time (modern).
const INFO: &str = r#"{"name":"r\u0061w","odd":1.0,"version":"1"}"#;
const ABILITIES: &str = r#"{"elicitation":{"form":{}},"vendor":{"n":1E+2}}"#;
/// Ids that few libraries can hold.
const ID: &str = "12345678901234567890123";
const TOKEN: &str = r#""t\u006fken""#;

impl Pair {
    async fn all() -> Vec<Pair> {
        let mut all = Vec::new();
        for modern in [true, false] {
            let servers =
                [Raw::http(true).await, Raw::http(false).await, Raw::stdio(true), Raw::stdio(false)];
            for (raw, over) in servers.into_iter().zip(["HTTP", "HTTP", "stdio", "stdio"]) {
                let era = |modern| if modern { "modern" } else { "legacy" };
                let at = format!("{} caller, {} server over {over}", era(modern), era(raw.modern));
                let mut settings = raw.settings.clone();
                // A token of the gateway's own would be the only thing that the caller did not say.
                settings.options.extend_on_progress = false;
                let gateway = gateway([settings]).await;
                assert_eq!(health(&gateway, "s").as_str(), "ready", "{at}");
                let mut edge = tidegate_edge::stdio::Settings::default();
                edge.edge.call_ids = true;
                let mut caller = Wire::served(&gateway, "raw", "2025-11-25", edge);
                if !modern {
                    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":ABILITIES,"clientInfo":INFO}}"#;
                    caller.write(&hello.replace("ABILITIES", ABILITIES).replace("INFO", INFO)).await;
                    caller.line().await;
                    caller.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
                }
                all.push(Pair { raw, gateway, caller, modern, at });
            }
        }
        all
    }

    /// The `_meta` of a request, without what everybody adds: in odd places, as nobody would write it.
    fn meta(&self, token: bool) -> String {
        let token = if token { format!(r#""progressToken":{TOKEN},"#) } else { String::new() };
        let terms = match self.modern {
            true => format!(
                r#""io.modelcontextprotocol/clientCapabilities":{ABILITIES},{token}"io.modelcontextprotocol/clientInfo":{INFO},"io.modelcontextprotocol/logLevel":"info","#
            ),
            false => token,
        };
        let version = match self.modern {
            true => r#","io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
            false => "",
        };
        format!(r#"{{"vendor/a":{{{ODD}}},{terms}"vendor/b" : [1.0]{version}}}"#)
    }

    /// Sends a request with these parameters, in which `META` stands for its `_meta`.
    async fn send(&mut self, method: &str, params: &str, token: bool) {
        let params = params.replace("META", &self.meta(token));
        let text =
            format!(r#"{{"extra":1.0,"params":{params},"method":"{method}","id":{ID},"jsonrpc":"2.0"}}"#);
        self.caller.write(&text).await;
    }

    /// The next line, which names the call in its result, without the id: behind everything else that `_meta` has.
    #[track_caller]
    fn named(&self, line: &str) -> String {
        const ID: &str = r#""dev.tidegate/correlationId":""#;
        assert_eq!(line.matches(ID).count(), 1, "{}: {line}", self.at);
        let (before, rest) = line.split_once(ID).unwrap();
        let (_, after) = rest.split_once('"').unwrap();
        match before.strip_suffix(r#","_meta":{"#) {
            Some(before) => format!("{before}{}", after.strip_prefix('}').expect("nothing else")),
            None => format!("{}{after}", before.strip_suffix(',').expect("something before it")),
        }
    }

    /// The `_meta` that the server must have heard.
    fn meta_there(&self, id: &str, token: bool) -> String {
        let token = if token { format!(r#","progressToken":{id}"#) } else { String::new() };
        let terms = match self.raw.modern {
            true => format!(
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{INFO},"io.modelcontextprotocol/clientCapabilities":{ABILITIES},"io.modelcontextprotocol/logLevel":"info"{token},"dev.tidegate/hops":1"#
            ),
            false => format!(
                r#"{token},"dev.tidegate/caller":{{"clientInfo":{INFO},"clientCapabilities":{ABILITIES}}},"dev.tidegate/hops":1"#
            )
            .trim_start_matches(',')
            .to_owned(),
        };
        format!(r#"{{{terms},"vendor/a":{{{ODD}}},"vendor/b" : [1.0]}}"#)
    }

    /// Checks the last request of a method that the server has heard against what was sent.
    #[track_caller]
    fn check_request(&self, method: &str, params: &str, names: Option<(&str, &str)>, token: bool) {
        let heard = self.raw.last(Some(method));
        let id = heard.get("id").unwrap().to_owned();
        let mut expected = sent(params.replace("META", &self.meta(token)));
        if let Some((ours, theirs)) = names {
            expected = expected.but(Differs::Names, ours, theirs);
        }
        let expected = expected.but(Differs::Terms, &self.meta(token), &self.meta_there(&id, token));
        assert_eq!(heard.get("params").unwrap(), expected.0, "{}", self.at);
        assert_ne!(id, ID, "{:?}: ids are the gateway's own", Differs::Ids);
        let envelope: Vec<_> = heard.members().map(|member| member.name.into_owned()).collect();
        assert_eq!(envelope, ["jsonrpc", "id", "method", "params"], "{:?}", Differs::Envelope);
    }

    /// A result of the server as the caller must get it.
    fn result(&self, text: String, cached: Option<&str>) -> String {
        let done = sent(text);
        let done = match (self.modern, self.raw.modern) {
            (false, true) => done.but(Differs::ResultType, r#""resultType":"complete","#, ""),
            (true, false) => {
                let end = if cached.is_some() { r#","ttlMs":0,"cacheScope":"private"}"# } else { "}" };
                let text = done.0.strip_suffix('}').expect("an object").to_owned();
                // At the end, so that nothing before it has to move.
                let typed = sent(format!("{text}END")).but(
                    Differs::ResultType,
                    "END",
                    r#","resultType":"complete"END"#,
                );
                typed.but(Differs::CacheHints, "END", end)
            }
            _ => done,
        };
        match cached {
            Some(hints) if !self.modern && self.raw.modern => done.but(Differs::CacheHints, hints, "").0,
            _ => done.0,
        }
    }

    fn answer(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{ID},"result":{result}}}"#)
    }
}

#[tokio::test]
async fn calls_results_progress_and_logs() {
    for mut pair in Pair::all().await {
        let params =
            format!(r#"{{"unknown":{{{ODD}}},"_meta":META,"name":"s_chat","ar\u0067uments" : {{{ODD}}}}}"#);
        pair.send("tools/call", &params, true).await;
        let told = |method: &str, params: String| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
        };
        let mut lines = [pair.caller.line().await, pair.caller.line().await, pair.caller.line().await];
        // Whichever of the two comes first.
        lines[..2].sort();
        lines[2] = pair.named(&lines[2]);
        let progress = sent(progress("TOKEN")).but(Differs::ProgressTokens, "TOKEN", TOKEN).0;
        let expected = pair.answer(&pair.result(result(pair.raw.modern, ""), None));
        assert_eq!(lines, [told("message", log()), told("progress", progress), expected], "{}", pair.at);
        pair.check_request("tools/call", &params, Some((r#""s_chat""#, r#""chat""#)), true);
        pair.gateway.close().await;
    }
}

#[tokio::test]
async fn errors() {
    for mut pair in Pair::all().await {
        for (tool, code) in [("fail", "-31999"), ("far", "12345678901")] {
            let params = format!(r#"{{"name":"s_{tool}","arguments":{{{ODD}}},"_meta":META}}"#);
            pair.send("tools/call", &params, false).await;
            let expected = format!(r#"{{"jsonrpc":"2.0","id":{ID},"error":{}}}"#, error(code));
            // The id of the call, behind everything else.
            let line = pair.caller.line().await;
            let (before, id) = line.split_once(r#","correlationId":""#).expect("an id");
            assert_eq!(before.to_owned() + id.split_once('"').unwrap().1, expected, "{}", pair.at);
        }
        pair.gateway.close().await;
    }
}

#[tokio::test]
async fn other_methods() {
    for mut pair in Pair::all().await {
        let hints = r#""ttlMs":1E+2,"cacheScope":"public","#;
        for (method, members, names, cached) in [
            (
                "prompts/get",
                r#""name":"s_p","arguments":{ "a":"\u0061"}"#,
                Some((r#""s_p""#, r#""p""#)),
                None,
            ),
            ("resources/read", r#""uri":"r\u0061w://r""#, None, Some(hints)),
            (
                "completion/complete",
                r#""ref":{"odd":1.0,"type":"ref/prompt","name":"s_p"},"argument":{"value":"\u0061","name":"a"}"#,
                Some((r#""s_p""#, r#""p""#)),
                None,
            ),
            ("vendor/odd", r#""any":[1.0 ,2E+2]"#, None, None),
        ] {
            let params = format!(r#"{{"unknown":{{{ODD}}},{members},"_meta":META,"last":1.0}}"#);
            pair.send(method, &params, false).await;
            let more = if pair.raw.modern { cached.unwrap_or_default() } else { "" };
            let expected = pair.answer(&pair.result(result(pair.raw.modern, more), cached));
            let line = pair.caller.line().await;
            let line = match method {
                "prompts/get" | "resources/read" => pair.named(&line),
                _ => line,
            };
            assert_eq!(line, expected, "{method}: {}", pair.at);
            pair.check_request(method, &params, names, false);
        }
        pair.gateway.close().await;
    }
}

#[tokio::test]
async fn definitions() {
    for mut pair in Pair::all().await {
        for (method, definition, ours) in [
            ("tools/list", definition("chat"), definition("s_chat")),
            (
                "prompts/list",
                r#"{"name":"p","odd":1.0}"#.to_owned(),
                r#"{"name":"s_p","odd":1.0}"#.to_owned(),
            ),
            ("resources/list", r#"{"uri":"raw://r","name":"r","odd":1E+2}"#.to_owned(), String::new()),
        ] {
            pair.send(method, r#"{"_meta":META}"#, false).await;
            let line = pair.caller.line().await;
            let expected = match ours.is_empty() {
                true => definition,
                false => sent(definition.as_str()).but(Differs::Names, &definition, &ours).0,
            };
            assert!(line.contains(&expected), "{}: {line}", pair.at);
        }
        pair.gateway.close().await;
    }
}

/// An answer to a question, and the parameters of a call that asks.
fn answered() -> String {
    format!(r#"{{"unknown":{{{ODD}}},"action":"accept","content":{{ "name":"\u0041nn","n":1.0}}}}"#)
}

#[tokio::test]
async fn questions_and_answers() {
    for mut pair in Pair::all().await {
        let params = format!(r#"{{"name":"s_ask","arguments":{{{ODD}}},"_meta":META}}"#);
        pair.send("tools/call", &params, false).await;
        let line = pair.caller.line().await;
        let got = Object::parse(line.clone(), &Limits::default()).unwrap();
        if pair.modern && pair.raw.modern {
            let named = sent(asking()).but(Differs::WhoAsks, r#""who\u003f""#, r#""[s] who\u003f""#);
            assert_eq!(pair.named(&line), pair.answer(&named.0), "{}", pair.at);
            let retry = format!(
                r#""inputResponses":{{"k\u0065y":{}}},"requestState":"st\u0061te","name""#,
                answered()
            );
            let again = params.replacen("\"name\"", &retry, 1);
            pair.send("tools/call", &again, false).await;
            pair.caller.line().await;
            pair.check_request("tools/call", &again, Some((r#""s_ask""#, r#""ask""#)), false);
        } else if pair.modern {
            // A question of a legacy server has no key and no state; both are made up.
            let result = got.object("result").unwrap();
            let asked = result.object("inputRequests").unwrap();
            let key = asked.members().next().unwrap().name.into_owned();
            let named = sent(question()).but(Differs::WhoAsks, r#""who\u003f""#, r#""[s] who\u003f""#);
            assert_eq!(asked.object(&key).unwrap().get("params"), Some(&*named.0), "{}", pair.at);
            let state = result.get("requestState").unwrap();
            let retry =
                format!(r#""inputResponses":{{"{key}":{}}},"requestState":{state},"name""#, answered());
            pair.send("tools/call", &params.replacen("\"name\"", &retry, 1), false).await;
            let line = pair.caller.line().await;
            let line = pair.named(&line);
            assert_eq!(line, pair.answer(&pair.result(crate::raw::result(false, ""), None)), "{}", pair.at);
            assert_eq!(pair.raw.last(None).get("result"), Some(&*answered()), "{}", pair.at);
        } else {
            let hint = Json::trusted(
                got.object("params")
                    .unwrap()
                    .object("_meta")
                    .unwrap()
                    .get("dev.tidegate/input")
                    .unwrap()
                    .to_owned(),
            );
            let added = format!(r#"{{"vendor/q":1.0,"dev.tidegate/input":{hint}}}"#);
            let expected = sent(question()).but(Differs::Questions, r#"{"vendor/q":1.0}"#, &added).but(
                Differs::WhoAsks,
                r#""who\u003f""#,
                r#""[s] who\u003f""#,
            );
            assert_eq!(got.get("params"), Some(&*expected.0), "{}", pair.at);
            let id = got.get("id").unwrap();
            pair.caller.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, answered())).await;
            let line = pair.caller.line().await;
            let line = pair.named(&line);
            assert_eq!(line, pair.answer(&pair.result(result(pair.raw.modern, ""), None)), "{}", pair.at);
            if pair.raw.modern {
                let heard = pair.raw.last(Some("tools/call"));
                let heard = heard.object("params").unwrap();
                assert_eq!(heard.get("inputResponses").unwrap(), format!(r#"{{"key":{}}}"#, answered()));
                let state = sent(r#""st\u0061te""#).but(Differs::RequestStates, r"\u0061", "a").0;
                assert_eq!(heard.get("requestState"), Some(&*state), "the same text, written anew");
                assert_eq!(heard.get("arguments").unwrap(), format!("{{{ODD}}}"));
            } else {
                assert_eq!(pair.raw.last(None).get("result"), Some(&*answered()), "{}", pair.at);
            }
        }
        pair.gateway.close().await;
    }
}

#[test]
fn what_may_differ_is_documented() {
    let page = include_str!("../../../../docs/faithfulness.md");
    for differs in Differs::ALL {
        assert!(page.contains(&format!("**{}.**", differs.title())), "{differs:?}");
    }
    for more in [
        "URIs that several servers have",
        "Cursors",
        "Task ids",
        "Error codes",
        "Ids of failed calls",
        "Lists",
        "Change notifications",
        "Whitespace",
    ] {
        assert!(page.contains(&format!("**{more}.**")), "{more}");
    }
}

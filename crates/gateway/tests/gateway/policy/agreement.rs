//! Whatever the policy is, all ways in agree: what is listed is what is known, and what is done is what the policy decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use serde_json::{Value, json};
use tidegate_config::{Settings, ToolMode};
use tidegate_policy::{DefaultEffect, Object, ObjectKind, Policy, PolicySpec, RuleSpec};
use tidegate_protocol::{Json, Limits, Method, Params, Symbol};
use tidegate_service::{Call, Claims, Principal, Reply, UNLISTED};

use super::{World, listed, listening, roles};
use crate::rig::{Caller, endpoint, keys, modern};

const SERVERS: [&str; 2] = ["reef", "vault"];
const TOOLS: [&str; 3] = ["read", "write", "wipe"];
const PATTERNS: [&str; 14] = [
    "*",
    "reef_*",
    "*_read",
    "vault_wipe",
    "reef_hidden",
    "tool:*",
    "prompt:*",
    "prompt:reef_*",
    "resource:*",
    "resource:reef://*",
    "resource:*://notes/*",
    "resource:vault://secret",
    "method:*",
    "method:vendor/echo",
];
const CONDITIONS: [&str; 8] = [
    r#"args.where == "sandbox""#,
    r#"args.where != "sandbox""#,
    r#"has(args.where) && args.where == "acme""#,
    "args.where == principal.tenant",
    r#""dev" in claims.roles"#,
    r#"principal.tenant == "acme""#,
    r#"server == "reef""#,
    "server == principal.tenant",
];
const ARGUMENTS: [&str; 4] =
    ["{}", r#"{"where":"sandbox"}"#, r#"{"where":"acme"}"#, r#"{"where":"elsewhere"}"#];
const ROLES: [&str; 2] = ["dev", "ops"];
const TENANTS: [&str; 2] = ["acme", "reef"];
/// The endpoint where tools are searched for.
const SEARCHING: &str = "searching";

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::weighted(0.4, prop::sample::subsequence(of.to_vec(), 1..=of.len()))
        .prop_map(|all| all.map(|all| super::owned(&all)))
}

fn any_rule() -> impl Strategy<Value = RuleSpec> {
    let patterns = prop::sample::subsequence(PATTERNS.to_vec(), 1..=3);
    let when = prop::option::weighted(0.4, prop::sample::select(CONDITIONS.to_vec()));
    (prop::bool::weighted(0.6), patterns, some(&ROLES), some(&TENANTS), some(&SERVERS), when).prop_map(
        |(allows, patterns, roles, tenants, servers, when)| {
            let patterns = super::owned(&patterns);
            let (allow, deny) = if allows { (patterns, vec![]) } else { (vec![], patterns) };
            let when = when.map(str::to_owned);
            RuleSpec { allow, deny, roles, tenants, servers, when, ..RuleSpec::default() }
        },
    )
}

/// Policies that make no sense are refused when they are read, so there is none of them.
fn any_policy() -> impl Strategy<Value = PolicySpec> {
    let default = prop::option::of(prop::sample::select(vec![DefaultEffect::Allow, DefaultEffect::Deny]));
    let rules = prop::collection::vec(any_rule(), 1..6);
    (rules, default).prop_filter_map("a policy with contradictions", |(rules, default)| {
        let spec = PolicySpec { rules, default, ..PolicySpec::default() };
        Policy::new(&spec).is_ok().then_some(spec)
    })
}

fn any_caller() -> impl Strategy<Value = Caller> {
    let roles = prop::sample::subsequence(ROLES.to_vec(), 0..=ROLES.len());
    (roles, prop::option::of(prop::sample::select(TENANTS.to_vec()))).prop_map(|(roles, tenant)| {
        let mut caller = modern();
        let tenant = tenant.map(Arc::from);
        caller.0.principal = Principal { subject: Some("ann".into()), tenant, issuer: None };
        let roles = roles.into_iter().map(Arc::from).collect();
        caller.0.claims = Some(Arc::new(Claims { roles, ..Claims::default() }));
        caller
    })
}

#[test]
fn lists_and_calls_agree_in_all_ways_in() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::with(roles(), |settings| {
        let mut searching = endpoint(SEARCHING);
        searching.mode = Some(ToolMode::Search);
        settings.endpoints = vec![searching];
    }));
    let config = ProptestConfig {
        cases: 48,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    };
    let callers = prop::collection::vec(any_caller(), 1..3);
    let cases = (any_policy(), callers, prop::sample::select(ARGUMENTS.to_vec()));
    let tried = TestRunner::new(config).run(&cases, |(spec, callers, arguments)| {
        runtime.block_on(async {
            let policy = Arc::new(Policy::new(&spec).unwrap());
            let settings = Settings { policy: Some(policy.clone()), ..world.settings.clone() };
            world.gateway.reload(settings).await.unwrap();
            for caller in &callers {
                let case = Case { world: &world, policy: &policy, caller, arguments };
                case.tools().await;
                case.unlisted_tools().await;
                case.prompts().await;
                case.resources().await;
                case.methods().await;
            }
        });
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(world.gateway.close());
}

/// Somebody calls with some arguments, under some policy.
struct Case<'a> {
    world: &'a World,
    policy: &'a Policy,
    caller: &'a Caller,
    arguments: &'static str,
}

/// Something that is about to be asked for.
fn object<'a>(kind: ObjectKind, name: &'a str, server: &'a str) -> Object<'a> {
    Object { kind, name, server }
}

/// Whether an answer says that there is no such thing.
fn is_unknown(reply: &Reply, symbol: Symbol) -> bool {
    matches!(reply, Reply::Error(error) if error.symbol() == symbol)
}

impl Case<'_> {
    /// What the policy says.
    fn decides(&self, object: &Object<'_>) -> bool {
        let arguments = Json::trusted(self.arguments);
        self.policy.decide(&self.policy.caller(&self.caller.0), object, Some(&arguments)).is_allowed
    }

    fn shows(&self, object: &Object<'_>) -> bool {
        self.policy.shows(&self.policy.caller(&self.caller.0), object)
    }

    fn given(&self) -> Value {
        serde_json::from_str(self.arguments).unwrap()
    }

    /// Asks, and says how often `what` was done.
    async fn ask(&self, caller: &Caller, method: &str, params: Value, what: &str) -> (Reply, usize) {
        self.world.done.take();
        let reply = caller.ask(&self.world.gateway, method, params).await;
        (reply, self.world.done.count(what))
    }

    async fn list(&self, method: &str) -> BTreeSet<String> {
        listed(self.caller, &self.world.gateway, method).await.into_iter().collect()
    }

    async fn tools(&self) {
        let (gateway, searching) = (&self.world.gateway, self.caller.at(SEARCHING));
        let names = self.list("tools/list").await;
        let mut found = BTreeSet::new();
        for server in SERVERS {
            let query =
                json!({"name": "search_tools", "arguments": {"query": "", "server": server, "limit": 50}});
            if let Reply::Complete(result) = searching.ask(gateway, "tools/call", query).await {
                let result: Value = result.to().unwrap();
                if result["isError"] != true {
                    found.extend(keys(&result["structuredContent"]));
                }
            }
        }
        assert_eq!(found, names, "what is found is what is listed");
        for server in SERVERS {
            for own in TOOLS {
                let name = format!("{server}_{own}");
                let tool = object(ObjectKind::Tool, &name, server);
                let (is_listed, may) = (names.contains(&name), usize::from(self.decides(&tool)));
                assert_eq!(is_listed, self.shows(&tool), "{name}");
                let call = json!({"name": name, "arguments": self.given()});
                let (reply, done) = self.ask(self.caller, "tools/call", call.clone(), &name).await;
                assert_eq!(
                    (is_unknown(&reply, Symbol::ToolNotFound), done),
                    (!is_listed, may),
                    "{name}: {reply:?}"
                );
                let through = json!({"name": "call_tool", "arguments": call});
                let (reply, done) = self.ask(&searching, "tools/call", through, &name).await;
                assert_eq!(
                    (is_unknown(&reply, Symbol::ToolNotFound), done),
                    (!is_listed, may),
                    "{name}: {reply:?}"
                );
                let batch = json!({"calls": [call]});
                let (reply, done) = self.ask(self.caller, "tools/call_batch", batch, &name).await;
                let Reply::Complete(results) = reply else { panic!("{reply:?}") };
                assert_eq!(
                    (results.as_str().contains("Unknown tool"), done),
                    (!is_listed, may),
                    "{name}: {results}"
                );
                assert_eq!(
                    self.allows(server, Method::ToolsCall, json!({"name": own, "arguments": self.given()})),
                    may == 1
                );
            }
        }
    }

    async fn unlisted_tools(&self) {
        for server in SERVERS {
            let name = format!("{server}_hidden");
            let tool = object(ObjectKind::Tool, &name, server);
            let definition = json!({"_meta": {UNLISTED: name}});
            let found = keys(&self.caller.get(&self.world.gateway, "tools/list", definition).await);
            assert_eq!(!found.is_empty(), self.shows(&tool), "{name}");
            let call = json!({"name": name, "arguments": self.given()});
            let (reply, done) = self.ask(self.caller, "tools/call", call, &name).await;
            let expected = (found.is_empty(), usize::from(self.decides(&tool)));
            assert_eq!((is_unknown(&reply, Symbol::ToolNotFound), done), expected, "{name}: {reply:?}");
        }
    }

    async fn prompts(&self) {
        let names = self.list("prompts/list").await;
        for server in SERVERS {
            for own in ["review", "ask"] {
                let name = format!("{server}_{own}");
                let prompt = object(ObjectKind::Prompt, &name, server);
                let is_listed = names.contains(&name);
                assert_eq!(is_listed, self.shows(&prompt), "{name}");
                let get = json!({"name": name, "arguments": self.given()});
                let (reply, done) = self.ask(self.caller, "prompts/get", get, &name).await;
                let expected = (!is_listed, usize::from(self.decides(&prompt)));
                assert_eq!((is_unknown(&reply, Symbol::PromptNotFound), done), expected, "{name}: {reply:?}");
                let reference = json!({"type": "ref/prompt", "name": name});
                let complete = json!({"ref": reference, "argument": {"name": "where", "value": ""}});
                let reply = self.caller.ask(&self.world.gateway, "completion/complete", complete).await;
                assert_eq!(matches!(reply, Reply::Complete(_)), is_listed, "{name}: {reply:?}");
            }
        }
    }

    async fn resources(&self) {
        let (shared, templates) =
            (self.list("resources/list").await, self.list("resources/templates/list").await);
        for server in SERVERS {
            for at in ["open", "secret", "notes/ann", "diaries/ann", "notes/2"] {
                let uri = format!("{server}://{at}");
                let may = self.decides(&object(ObjectKind::Resource, &uri, server));
                if at != "notes/2" {
                    assert_eq!(shared.contains(&uri), may, "{uri}");
                }
                let (reply, done) = self.ask(self.caller, "resources/read", json!({"uri": uri}), &uri).await;
                let expected = (!may, usize::from(may));
                assert_eq!(
                    (is_unknown(&reply, Symbol::ResourceNotFound), done),
                    expected,
                    "{uri}: {reply:?}"
                );
                let wanted = json!({"resourceSubscriptions": [uri]});
                let (kept, events) = listening(self.caller, &self.world.gateway, wanted).await;
                events.close();
                let kept = kept["resourceSubscriptions"].as_array().is_some_and(|kept| !kept.is_empty());
                assert_eq!(kept, may, "{uri}");
                assert_eq!(self.allows(server, Method::ResourcesRead, json!({"uri": uri})), may, "{uri}");
            }
            for own in ["notes", "diaries"] {
                let template = format!("{server}://{own}/{{id}}");
                let is_listed = templates.contains(&template);
                assert_eq!(
                    is_listed,
                    self.shows(&object(ObjectKind::Resource, &template, server)),
                    "{template}"
                );
                let reference = json!({"type": "ref/resource", "uri": template});
                let complete = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
                let reply = self.caller.ask(&self.world.gateway, "completion/complete", complete).await;
                assert_eq!(matches!(reply, Reply::Complete(_)), is_listed, "{template}: {reply:?}");
            }
        }
    }

    async fn methods(&self) {
        for server in SERVERS {
            for method in ["vendor/echo", "vendor/other"] {
                let uri = format!("{server}://open");
                let may = self.decides(&object(ObjectKind::Method, method, server))
                    && self.decides(&object(ObjectKind::Resource, &uri, server));
                let what = format!("{server} {method}");
                let (reply, done) = self.ask(self.caller, method, json!({"uri": uri}), &what).await;
                let expected = (!may, usize::from(may));
                assert_eq!((is_unknown(&reply, Symbol::MethodNotFound), done), expected, "{what}: {reply:?}");
            }
        }
    }

    /// Whether the server may do it in the name of the caller.
    fn allows(&self, server: &str, method: Method, params: Value) -> bool {
        let params = Params::parse(&params.into(), &Limits::default()).unwrap();
        self.world.gateway.allows(server, &Call::new(method, params, self.caller.0.clone())).is_ok()
    }
}

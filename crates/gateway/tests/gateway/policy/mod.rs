//! One gate for every way in: what a policy decides about is decided whichever door somebody comes through.
//!
//! All of it is tried over the same two servers, as an admin who may do everything, a developer who may do some of it (and some
//! only with certain arguments), a guest who has one tool, and somebody of whom nothing is known.

mod agreement;
mod alike;
mod changing;
mod lists;
mod names;
mod records;
mod shadow;
mod side_doors;
mod speech;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_config::Settings;
use tidegate_gateway::Gateway;
use tidegate_policy::{Policy, PolicyMode, PolicySpec, RuleSpec};
use tidegate_protocol::{ClientCapabilities, Json, Method};
use tidegate_server::{
    Argument, Completing, Cx, PageRequest, Prompt, PromptArgs, Resource, ResourcePage, ResourceTemplate,
    Server, ServerDoor, TaskSupport, Tool, ToolError, Vars,
};
use tidegate_service::{Call, Claims, Door, Outbox, Principal, Reply};
use tokio::sync::watch;

use crate::rig::{Caller, door, keys, legacy, modern, settings, started, until};

/// What was done at the servers, and how often: tools, prompts and resources as callers name them, and `server method` for the
/// rest. Beside it, the tools whose tasks may end.
#[derive(Clone, Default)]
struct Done(Arc<Mutex<BTreeMap<String, usize>>>, watch::Sender<Vec<String>>);

impl Done {
    fn note(&self, what: String) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    /// Lets the tasks of a tool end.
    async fn end(&self, tool: &str) {
        self.1.send_modify(|ended| ended.push(tool.to_owned()));
        until("the end", async || self.count(&format!("{tool} ended")) > 0).await;
    }

    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A gateway over `reef` and `vault`.
struct World {
    gateway: Gateway,
    settings: Settings,
    reef: ServerDoor,
    done: Done,
}

impl World {
    /// With these rules, where everybody is authenticated.
    async fn start(policy: PolicySpec) -> World {
        World::with(policy, |_| {}).await
    }

    /// The same with other settings.
    async fn with(policy: PolicySpec, edit: impl FnOnce(&mut Settings)) -> World {
        World::that_has(|_| true, policy, edit).await
    }

    /// The same over servers that have only some of it, by the names that callers use.
    async fn that_has(
        has: impl Fn(&str) -> bool,
        policy: PolicySpec,
        edit: impl FnOnce(&mut Settings),
    ) -> World {
        let done = Done::default();
        let [reef, vault] = ["reef", "vault"].map(|name| two_of_each(name, &done, &has).build());
        let servers = [("reef", reef.clone()), ("vault", vault)];
        let mut settings =
            settings(servers.into_iter().map(|(name, server)| door(name, with_methods(name, server, &done))));
        settings.auth = Some(Default::default());
        settings.policy = Some(Arc::new(compiled(&policy)));
        edit(&mut settings);
        let gateway = started(settings.clone()).await;
        World { gateway, settings, reef, done }
    }

    /// Puts other rules in force.
    async fn reload(&self, policy: PolicySpec) {
        let settings = Settings { policy: Some(Arc::new(compiled(&policy))), ..self.settings.clone() };
        self.gateway.reload(settings).await.unwrap();
    }
}

fn compiled(policy: &PolicySpec) -> Policy {
    Policy::new(policy).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// A server with two of everything: one that is open and one that is not, as far as names go.
fn two_of_each(name: &'static str, done: &Done, has: &dyn Fn(&str) -> bool) -> Server {
    let noted = |what: String| {
        let done = done.clone();
        move || done.note(what.clone())
    };
    let any = || json!({"type": "object"});
    let tool = |own: &str| {
        let note = noted(format!("{name}_{own}"));
        Tool::new(own).description(format!("Tool {own}")).input_schema(any()).handler_raw(
            move |_: Value, _: Cx| {
                note();
                std::future::ready("done")
            },
        )
    };
    let task = |own: &str| {
        let (done, name) = (done.clone(), format!("{name}_{own}"));
        Tool::new(own).task(TaskSupport::Required).input_schema(any()).handler_raw(move |_: Value, _: Cx| {
            let (done, name, mut ended) = (done.clone(), name.clone(), done.1.subscribe());
            async move {
                done.note(name.clone());
                let _ = ended.wait_for(|ended| ended.contains(&name)).await;
                done.note(format!("{name} ended"));
                "done"
            }
        })
    };
    let prompt = |own: &str| {
        let note = noted(format!("{name}_{own}"));
        let of = Argument::new("where")
            .complete(|typed: Completing, _: Cx| async move { typed.filter(["sandbox", "prod"]) });
        Prompt::new(own).argument(of).handler(move |_: PromptArgs, _: Cx| {
            note();
            std::future::ready(Ok::<_, ToolError>("Hello"))
        })
    };
    let resource = |at: &str| {
        let (uri, text) = (format!("{name}://{at}"), at.to_owned());
        let note = noted(uri.clone());
        Resource::new(uri, at).reader(move |_: Cx| {
            note();
            std::future::ready(Ok::<_, ToolError>(text.clone()))
        })
    };
    let template = |at: &str| {
        let (done, start) = (done.clone(), format!("{name}://{at}/"));
        ResourceTemplate::new(format!("{start}{{id}}"), at)
            .reader(move |vars: Vars, _: Cx| {
                done.note(format!("{start}{}", vars.get("id").unwrap_or_default()));
                std::future::ready(Ok::<_, ToolError>("a note".to_owned()))
            })
            .complete("id", |typed: Completing, _: Cx| async move { typed.filter(["1", "2"]) })
    };
    let is_there = |own: &&str| has(&format!("{name}_{own}"));
    let is_at = |at: &&str| has(&format!("{name}://{at}"));
    let mut server = Server::new(name, "1").dynamic().instructions(format!("How to use {name}"));
    server = ["read", "write", "wipe"].iter().copied().filter(is_there).map(tool).fold(server, Server::tool);
    server = ["long", "longer"].iter().copied().filter(is_there).map(task).fold(server, Server::tool);
    let unlisted = ["hidden", "buried"].iter().copied().filter(is_there).map(|own| tool(own).unlisted());
    server = unlisted.fold(server, Server::tool);
    server =
        ["review", "ask", "plot"].iter().copied().filter(is_there).map(prompt).fold(server, Server::prompt);
    server = ["open", "secret"].iter().copied().filter(is_at).map(resource).fold(server, Server::resource);
    let templates = ["notes", "diaries"].iter().copied().filter(is_at).map(template);
    server = templates.fold(server, Server::resource_template);
    let asked = noted(format!("{name} own resources"));
    server.resource_source(move |_: PageRequest, cx: Cx| {
        asked();
        let who = cx.principal().subject.clone().unwrap_or_default();
        let own = |what: &str| Resource::new(format!("{name}://{what}/{who}"), what);
        std::future::ready(Ok::<_, ToolError>(ResourcePage::new([own("notes"), own("diaries")])))
    })
}

/// The server with methods that no revision defines; it notes what clients tell.
fn with_methods(name: &'static str, server: ServerDoor, done: &Done) -> impl Door {
    let done = done.clone();
    // Without layers of its own, as servers of the program are: there is one record of each call.
    let server = server.bare();
    tower::service_fn(move |call: Call| {
        let (server, done) = (server.clone(), done.clone());
        async move {
            let method = call.method.as_str();
            let is_own = method.contains("vendor/") || call.method == Method::RootsChanged;
            if !is_own {
                return server.answer(call).await;
            }
            done.note(format!("{name} {method}"));
            Ok(Reply::Complete(Json::trusted(r#"{"resultType":"complete","echo":true}"#)))
        }
    })
}

/// What an admin, a developer and a guest may do.
fn roles() -> PolicySpec {
    let dev = rule("dev", 20, &["dev"]).allow(&[
        "reef_read",
        "reef_long",
        "reef_hidden",
        "prompt:reef_review",
        "resource:reef://open",
        "resource:reef://notes/*",
        "method:vendor/echo",
    ]);
    let sandbox = rule("dev in the sandbox", 30, &["dev"])
        .allow(&["reef_write", "prompt:reef_ask"])
        .when(r#"args.where == "sandbox""#);
    policy([
        rule("admin", 10, &["admin"]).allow(&["*"]),
        dev,
        sandbox,
        rule("guest", 40, &["guest"]).allow(&["vault_read"]),
    ])
}

/// The same where developers may do nothing.
fn without_devs() -> PolicySpec {
    let mut policy = roles();
    policy.rules.retain(|rule| rule.roles.as_deref() != Some(&["dev".to_owned()][..]));
    policy
}

fn policy(rules: impl IntoIterator<Item = Written>) -> PolicySpec {
    let rules = rules.into_iter().map(|Written(rule)| rule).collect();
    PolicySpec { rules, default_line: Some(5), ..PolicySpec::default() }
}

fn in_shadow(policy: PolicySpec) -> PolicySpec {
    PolicySpec { mode: PolicyMode::Shadow, ..policy }
}

/// A rule that is being written.
struct Written(RuleSpec);

fn rule(name: &str, line: usize, roles: &[&str]) -> Written {
    let roles = (!roles.is_empty()).then(|| owned(roles));
    Written(RuleSpec { name: Some(name.to_owned()), line: Some(line), roles, ..RuleSpec::default() })
}

impl Written {
    fn allow(mut self, what: &[&str]) -> Written {
        self.0.allow = owned(what);
        self
    }

    fn deny(mut self, what: &[&str]) -> Written {
        self.0.deny = owned(what);
        self
    }

    fn when(mut self, condition: &str) -> Written {
        self.0.when = Some(condition.to_owned());
        self
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Who calls.
const ROLES: [&str; 3] = ["admin", "dev", "guest"];

/// A caller with a role, of an era. `nobody` is somebody without claims.
fn caller_of(role: &str, is_modern: bool) -> Caller {
    let mut caller = if is_modern { modern() } else { legacy() };
    caller.0.principal = Principal::subject(role);
    if role != "nobody" {
        let claims = Claims { roles: vec![role.into()], ..Claims::default() };
        caller.0.claims = Some(Arc::new(claims));
    }
    let knows = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    caller.0.capabilities = ClientCapabilities::from_json(knows.into());
    caller
}

/// A caller with a role who speaks 2026-07-28.
fn role(role: &str) -> Caller {
    caller_of(role, true)
}

/// A whole list, page by page.
async fn listed(caller: &Caller, gateway: &Gateway, method: &str) -> Vec<String> {
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = caller.get(gateway, method, params).await;
        all.extend(keys(&page));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return all,
        }
    }
}

/// Opens a subscription.
async fn listening(caller: &Caller, gateway: &Gateway, wanted: Value) -> (Value, Outbox) {
    match caller.ask(gateway, "subscriptions/listen", json!({"notifications": wanted})).await {
        Reply::Subscription(open) => (open.acknowledged.to().unwrap(), open.events),
        other => panic!("{other:?}"),
    }
}

/// The whole text of a reply.
fn text(caller: &Caller, reply: &Reply) -> String {
    match reply {
        Reply::Complete(result) | Reply::Task(result) => result.as_str().to_owned(),
        Reply::Error(error) => error.to_json(caller.0.revision).as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

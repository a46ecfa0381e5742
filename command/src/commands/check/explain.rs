//! `tidegate check --as … --call …`: whether somebody may do something, and which rule says so.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tidegate::protocol::{Json, Limits, Object as JsonObject};
use tidegate_auth::keys::{ApiKey, KEYS_ISSUER, KeyFile};
use tidegate_config::{EndpointSettings, ServerSettings, Settings};
use tidegate_policy::{Explanation, Object, ObjectKind, Policy, PolicyMode};
use tidegate_service::{Claims, Context, Principal};

use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::{near, output};
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::{clean, width};

/// Who would do what.
#[derive(Args)]
#[command(next_help_heading = "Who may do what")]
pub(super) struct Explain {
    /// Explain what the policy decides for this caller, by the subject of a token or the name of a key
    #[arg(long = "as", value_name = "SUBJECT")]
    subject: Option<String>,

    /// A role of the caller (repeatable)
    #[arg(long = "role", value_name = "ROLE", requires = "asked")]
    roles: Vec<String>,

    /// The tenant of the caller
    #[arg(long, value_name = "TENANT", requires = "asked")]
    tenant: Option<String>,

    /// Who vouches for the caller: the issuer of a token, or tidegate:keys
    #[arg(long, value_name = "ISSUER", requires = "asked")]
    issuer: Option<String>,

    /// The OAuth client of the caller
    #[arg(long, value_name = "CLIENT", requires = "asked")]
    client: Option<String>,

    /// A scope of the caller's token (repeatable)
    #[arg(long = "scope", value_name = "SCOPE", requires = "asked")]
    scopes: Vec<String>,

    /// The endpoint that is called [default: the one without a name]
    #[arg(long, value_name = "NAME", requires = "asked")]
    endpoint: Option<String>,

    /// The tool to call, by the name that clients see
    #[arg(long, value_name = "TOOL", group = "asked")]
    call: Option<String>,

    /// The prompt to get
    #[arg(long, value_name = "PROMPT", group = "asked")]
    prompt: Option<String>,

    /// The resource to read
    #[arg(long, value_name = "URI", group = "asked")]
    read: Option<String>,

    /// The page to see
    #[arg(long, value_name = "PATH", group = "asked")]
    page: Option<String>,

    /// The arguments of the call: a JSON object [default: {}]
    #[arg(long, value_name = "JSON", requires = "asked")]
    args: Option<String>,

    /// The server that offers it [default: the one whose prefix the name has]
    #[arg(long, value_name = "NAME", requires = "asked")]
    server: Option<String>,
}

/// A question that can be answered.
pub(super) struct Question<'a> {
    explain: &'a Explain,
    kind: ObjectKind,
    name: &'a str,
    arguments: Json,
}

impl Explain {
    /// What is asked; nothing if the whole configuration is to be checked.
    pub(super) fn question(&self) -> Result<Option<Question<'_>>, Failure> {
        let asked = [
            (ObjectKind::Tool, &self.call),
            (ObjectKind::Prompt, &self.prompt),
            (ObjectKind::Resource, &self.read),
            (ObjectKind::Page, &self.page),
        ];
        let Some((kind, name)) = asked.into_iter().find_map(|(kind, name)| Some((kind, name.as_deref()?)))
        else {
            return match &self.subject {
                None => Ok(None),
                Some(_) => Err(Failure::usage("--as needs something to do")
                    .advise("Add --call TOOL (with --args JSON), --prompt NAME, --read URI or --page PATH.")),
            };
        };
        let text = self.args.as_deref().unwrap_or("{}");
        let wrong = |why: String| Failure::usage(format!("--args is not a JSON object: {why}"));
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if !value.is_object() {
            return Err(wrong("write it in braces, as in '{\"a\": 1}'".to_owned()));
        }
        // As the gateway reads it, where a member that is there twice is refused.
        JsonObject::parse(text.to_owned(), &Limits::default()).map_err(|fault| wrong(fault.to_string()))?;
        Ok(Some(Question { explain: self, kind, name, arguments: Json::trusted(text.to_owned()) }))
    }
}

/// What stands in the way before the policy is asked, in words.
type Obstacle = String;

pub(super) fn run(
    question: &Question<'_>,
    settings: &Settings,
    file: &Path,
    as_json: bool,
) -> Result<Exit, Failure> {
    let Explain { subject, endpoint, .. } = question.explain;
    if settings.auth.is_some() && subject.is_none() {
        return Err(Failure::usage("with [auth] everybody is known: say who calls with --as SUBJECT"));
    }
    let endpoint = endpoint.as_deref().filter(|name| *name != "default");
    let selected = match endpoint {
        None => None,
        Some(name) => Some(find_endpoint(name, settings)?),
    };
    let server = question.server(settings)?;
    let key = question.key(settings);
    let context = question.caller(endpoint, key.as_ref());
    let object =
        Object { kind: question.kind, name: question.name, server: server.map_or("", |it| &it.name) };
    let obstacle = obstacle(question, settings, selected, server);
    let policy = settings.policy.as_deref().filter(|policy| !policy.is_open());
    let explanation =
        policy.map(|policy| policy.explain(&policy.caller(&context), &object, Some(&question.arguments)));
    let is_allowed =
        obstacle.is_none() && explanation.as_ref().is_none_or(|explanation| !explanation.decision.refuses());
    let answer = Answer { question, server, policy, explanation, obstacle, is_allowed, file, context, key };
    output::text(&if as_json { answer.json().to_string() } else { answer.text() })?;
    Ok(if is_allowed { Exit::Fine } else { Exit::ToolError })
}

fn find_endpoint<'a>(name: &str, settings: &'a Settings) -> Result<&'a EndpointSettings, Failure> {
    let found = settings.endpoints.iter().find(|endpoint| endpoint.name == name);
    found.ok_or_else(|| {
        let names = settings.endpoints.iter().map(|endpoint| endpoint.name.as_str());
        let hint = near(name, names).map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
        Failure::usage(format!("there is no endpoint {name:?}{hint}"))
    })
}

/// What keeps a caller from something without asking the policy.
fn obstacle(
    question: &Question<'_>,
    settings: &Settings,
    endpoint: Option<&EndpointSettings>,
    server: Option<&ServerSettings>,
) -> Option<Obstacle> {
    let name = question.name;
    if let (Some(server), ObjectKind::Tool) = (server, question.kind) {
        let renamed = server.tools.iter().find(|(_, change)| change.name.as_deref() == Some(name));
        let own = renamed.map_or_else(|| name.strip_prefix(&*server.prefix), |(own, _)| Some(own));
        if own.is_some_and(|own| !server.offers(own)) {
            return Some(format!(
                "allow or deny of [servers.{}] leaves it out, so nobody has it",
                server.name
            ));
        }
    }
    if let (Some(auth), ObjectKind::Tool) = (&settings.auth, question.kind) {
        let given = &question.explain.scopes;
        let needed =
            auth.scopes.tools.iter().find(|(scope, tools)| tools.matches(name) && !given.contains(scope));
        if let Some((scope, _)) = needed.filter(|_| !given.is_empty()) {
            return Some(format!("it needs the scope {scope:?} (auth.tool_scopes)"));
        }
    }
    let endpoint = endpoint?;
    let says = |field: &str| Some(format!("{field} of [endpoints.{}] does not select it", endpoint.name));
    if let (Some(servers), Some(server)) = (&endpoint.servers, server)
        && !servers.matches(&server.name)
    {
        return says("servers");
    }
    let (field, patterns) = match question.kind {
        ObjectKind::Tool => ("tools", &endpoint.tools),
        ObjectKind::Prompt => ("prompts", &endpoint.prompts),
        ObjectKind::Resource => ("resources", &endpoint.resources),
        ObjectKind::Method | ObjectKind::Page => return None,
    };
    patterns.as_ref().filter(|patterns| !patterns.matches(name)).and_then(|_| says(field))
}

impl Question<'_> {
    /// The API key of whoever calls, if the configuration has one of that name and nobody says that it is somebody else.
    fn key(&self, settings: &Settings) -> Option<ApiKey> {
        let (explain, file) = (self.explain, settings.auth.as_ref()?.keys.as_deref()?);
        let is_of_keys = explain.issuer.as_deref().is_none_or(|issuer| issuer == KEYS_ISSUER);
        let is_free = explain.roles.is_empty() && explain.tenant.is_none() && explain.scopes.is_empty();
        let subject = explain.subject.as_deref().filter(|_| is_of_keys && is_free)?;
        KeyFile::read(file).ok()?.keys().iter().find(|key| *key.name == *subject).cloned()
    }

    /// Who calls, as the gateway would know them.
    fn caller(&self, endpoint: Option<&str>, key: Option<&ApiKey>) -> Context {
        let said = |text: &Option<String>| text.as_deref().map(Arc::<str>::from);
        let explain = self.explain;
        let mut context = Context::local();
        context.endpoint = endpoint.map(Into::into);
        if explain.subject.is_some() {
            context.principal = Principal {
                issuer: said(&explain.issuer),
                subject: said(&explain.subject),
                tenant: said(&explain.tenant),
            };
            if let Some(key) = key {
                context.principal.issuer = Some(KEYS_ISSUER.into());
                context.principal.tenant = key.tenant.clone();
                context.claims = Some(Arc::new(Claims {
                    roles: key.roles.clone(),
                    scopes: key.scopes.clone(),
                    client: said(&explain.client).or_else(|| Some(key.name.clone())),
                    ..Claims::default()
                }));
                return context;
            }
            context.claims = Some(Arc::new(Claims {
                roles: explain.roles.iter().map(|role| role.as_str().into()).collect(),
                scopes: Some(explain.scopes.iter().map(|scope| scope.as_str().into()).collect()),
                client: said(&explain.client),
                ..Claims::default()
            }));
        }
        context
    }

    /// The server that offers it, as far as that can be told from the configuration.
    fn server<'s>(&self, settings: &'s Settings) -> Result<Option<&'s ServerSettings>, Failure> {
        let servers = &settings.servers;
        if let Some(name) = &self.explain.server {
            let found = servers.iter().find(|server| server.name == *name);
            let names = servers.iter().map(|server| server.name.as_str());
            let hint = near(name, names).map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
            return found
                .map(Some)
                .ok_or_else(|| Failure::usage(format!("there is no server {name:?}{hint}")));
        }
        if let ObjectKind::Resource | ObjectKind::Page = self.kind {
            return Ok(if self.kind == ObjectKind::Resource && servers.len() == 1 {
                servers.first()
            } else {
                None
            });
        }
        let renamed = |server: &&ServerSettings| {
            server.tools.values().any(|change| change.name.as_deref() == Some(self.name))
        };
        let fits = |server: &&ServerSettings| self.name.starts_with(server.prefix.as_str());
        Ok(servers
            .iter()
            .find(renamed)
            .or_else(|| servers.iter().filter(fits).max_by_key(|server| server.prefix.len())))
    }
}

/// What is answered.
struct Answer<'a> {
    question: &'a Question<'a>,
    server: Option<&'a ServerSettings>,
    policy: Option<&'a Policy>,
    explanation: Option<Explanation>,
    obstacle: Option<Obstacle>,
    is_allowed: bool,
    file: &'a Path,
    /// Who calls.
    context: Context,
    /// The key that says so.
    key: Option<ApiKey>,
}

impl Answer<'_> {
    /// Whether the caller has it in lists.
    fn is_listed(&self) -> bool {
        self.obstacle.is_none() && self.explanation.as_ref().is_none_or(|explanation| explanation.is_listed)
    }

    /// Which rule decided, with its line.
    fn reason(&self) -> String {
        match (&self.obstacle, &self.explanation) {
            (Some(obstacle), _) => obstacle.clone(),
            (None, None) => "there is no policy".to_owned(),
            (None, Some(explanation)) => {
                let decision = &explanation.decision;
                let file = self.file.file_name().unwrap_or_default().to_string_lossy();
                match (&*decision.rule, decision.line) {
                    ("default", None) => "no rule matches, and the default decides".to_owned(),
                    ("default", Some(line)) => {
                        format!("no rule matches, and the default decides (line {line} of {file})")
                    }
                    (rule, Some(line)) if rule == format!("line {line}") => {
                        format!("the rule at line {line} of {file}")
                    }
                    (rule, Some(line)) => format!("the rule {rule:?} (line {line} of {file})"),
                    (rule, None) => format!("the rule {rule:?}"),
                }
            }
        }
    }

    fn text(&self) -> String {
        let paint = Paint::stdout();
        let name = format!("{} {}", self.question.kind.as_str(), clean::line(self.question.name));
        let is_shadow = self.policy.is_some_and(|policy| policy.mode() == PolicyMode::Shadow);
        let would_refuse = self.explanation.as_ref().is_some_and(|it| !it.decision.is_allowed);
        let verdict = match (self.is_allowed, is_shadow && would_refuse) {
            (true, true) => paint.warning(
                "allowed for now, and will be refused once the policy is enforced (mode = \"shadow\")",
            ),
            (true, false) => paint.good("allowed"),
            (false, _) => paint.bad("refused"),
        };
        let mut out = format!("{name} is {verdict}: {}\n", clean::line(&self.reason()));
        if let Some(key) = &self.key {
            let claims = self.context.claims.as_deref();
            let roles = claims.map(|claims| claims.roles.join(", ")).filter(|roles| !roles.is_empty());
            out.push_str(&format!(
                "As the key of {} says: tenant {}, roles {}. With --tenant and --role, it is somebody else.\n",
                clean::line(&key.name),
                clean::line(key.tenant.as_deref().unwrap_or("none")),
                clean::line(roles.as_deref().unwrap_or("none")),
            ));
        }
        if !self.is_allowed {
            out.push_str(match self.is_listed() {
                true => "It is listed, because other arguments would be allowed; the caller is told that it is refused.\n",
                false => "It is not listed, and unknown to the caller.\n",
            });
        }
        if self.server.is_none() && matches!(self.question.kind, ObjectKind::Tool | ObjectKind::Prompt) {
            out.push_str(
                "No server of the configuration has the prefix of this name: name one with --server.\n",
            );
        }
        if let Some(explanation) = self.explanation.as_ref().filter(|it| !it.steps.is_empty()) {
            let mut table = Table::new(&["RULE", "LINE", "EFFECT", "MATCHES", "WHY"]);
            for step in &explanation.steps {
                let line = step.line.map(|line| line.to_string()).unwrap_or_default();
                table.row([
                    &*step.rule,
                    &*line,
                    step.effect,
                    if step.matches { "yes" } else { "no" },
                    &step.why,
                ]);
            }
            out.push('\n');
            out.push_str(&table.show(width(), paint));
        }
        out
    }

    fn json(&self) -> serde_json::Value {
        let decision = self.explanation.as_ref().map(|explanation| &explanation.decision);
        let steps = self.explanation.iter().flat_map(|explanation| &explanation.steps).map(|step| {
            json!({
                "rule": *step.rule, "line": step.line, "effect": step.effect, "matches": step.matches, "why": step.why,
            })
        });
        json!({
            "allowed": self.is_allowed,
            "listed": self.is_listed(),
            "kind": self.question.kind.as_str(),
            "name": self.question.name,
            "server": self.server.map(|server| &server.name),
            "rule": decision.map(|decision| &*decision.rule),
            "line": decision.and_then(|decision| decision.line),
            "enforced": decision.map(|decision| decision.is_enforced),
            "reason": self.reason(),
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

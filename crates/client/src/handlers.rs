//! [`Handlers`]: what a client answers when a server asks something.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tidegate_protocol::{Capability, ClientCapabilities, Error, Json, Method, Symbol};

/// A question to the person behind the client.
#[derive(Debug, Clone)]
pub struct Elicitation {
    /// What the server says.
    pub message: String,
    /// What it wants.
    pub kind: ElicitKind,
    /// The parameters as they came. Fields of a form are in the server's order here.
    pub params: Json,
}

/// What an elicitation wants of the person.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ElicitKind {
    /// A form: the schema of its fields, an object with flat properties.
    Form(Value),
    /// A visit to a page. Show the address, and open it only with consent.
    Url(String),
}

impl Elicitation {
    /// The default values of a form's fields.
    pub fn defaults(&self) -> Map<String, Value> {
        match &self.kind {
            ElicitKind::Form(schema) => defaults(schema),
            ElicitKind::Url(_) => Map::new(),
        }
    }
}

fn defaults(schema: &Value) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone()))).collect()
}

/// What the person answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitAnswer {
    /// The form as filled in, or nothing for a visited page. Fields left out get their default values.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Closed without deciding.
    Cancel,
}

/// A directory or file that the client lets servers know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// A `file://` address.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

type ElicitHandler = Arc<dyn Fn(Elicitation) -> BoxFuture<'static, ElicitAnswer> + Send + Sync>;
type SampleHandler = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync>;
type RootsHandler = Arc<dyn Fn() -> BoxFuture<'static, Vec<Root>> + Send + Sync>;

/// Answers the questions of servers: those that legacy servers ask in the middle of a call, and those that modern
/// servers answer a call with.
#[derive(Clone, Default)]
pub struct Handlers {
    elicit: Option<ElicitHandler>,
    urls: bool,
    sample: Option<SampleHandler>,
    sample_tools: bool,
    roots: Option<RootsHandler>,
    /// Further capabilities that the client declares: extensions, experimental ones.
    extra: Option<Json>,
}

impl Handlers {
    /// Answers nothing yet.
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// Asks the person behind the client. With `urls`, also to visit pages.
    pub fn on_elicit<F, R>(mut self, urls: bool, handler: F) -> Handlers
    where
        F: Fn(Elicitation) -> R + Send + Sync + 'static,
        R: Future<Output = ElicitAnswer> + Send + 'static,
    {
        self.urls = urls;
        self.elicit = Some(Arc::new(move |question| Box::pin(handler(question))));
        self
    }

    /// Asks the client's model: gets the parameters of `sampling/createMessage`, gives its result. With `tools`, the
    /// server may let the model use tools.
    pub fn on_sample<F, R>(mut self, tools: bool, handler: F) -> Handlers
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        self.sample_tools = tools;
        self.sample = Some(Arc::new(move |params| Box::pin(handler(params))));
        self
    }

    /// Tells where the client works.
    pub fn on_roots<F, R>(mut self, handler: F) -> Handlers
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Vec<Root>> + Send + 'static,
    {
        self.roots = Some(Arc::new(move || Box::pin(handler())));
        self
    }

    /// These roots and no others.
    pub fn roots(self, roots: Vec<Root>) -> Handlers {
        self.on_roots(move || std::future::ready(roots.clone()))
    }

    /// Declares further capabilities: an object, merged with what the handlers stand for.
    pub fn declare(mut self, extra: Json) -> Handlers {
        self.extra = Some(extra);
        self
    }

    /// What a client with these handlers declares.
    pub fn capabilities(&self) -> ClientCapabilities {
        let mut all = Map::new();
        if self.elicit.is_some() {
            let url = if self.urls { json!({"form": {}, "url": {}}) } else { json!({"form": {}}) };
            all.insert("elicitation".into(), url);
        }
        if self.sample.is_some() {
            let tools = if self.sample_tools { json!({"tools": {}}) } else { json!({}) };
            all.insert("sampling".into(), tools);
        }
        if self.roots.is_some() {
            all.insert("roots".into(), json!({"listChanged": true}));
        }
        if let Some(Ok(Value::Object(extra))) = self.extra.as_ref().map(Json::to::<Value>) {
            all.extend(extra);
        }
        ClientCapabilities::from_json(Value::Object(all).into())
    }

    /// Answers one question.
    pub(crate) async fn answer(&self, method: &Method, params: Json) -> Result<Json, Error> {
        let asked = params;
        let params: Value = asked.to().map_err(|_| Error::invalid_params("cannot be read"))?;
        match method {
            Method::ElicitCreate => self.elicited(params, asked).await,
            Method::SamplingCreate => match &self.sample {
                Some(sample) => Ok(sample(params).await?.into()),
                None => Err(unable(Capability::Sampling)),
            },
            Method::RootsList => match &self.roots {
                Some(roots) => {
                    let roots = roots().await.into_iter().map(|root| match root.name {
                        Some(name) => json!({"uri": root.uri, "name": name}),
                        None => json!({"uri": root.uri}),
                    });
                    Ok(json!({"roots": roots.collect::<Vec<_>>()}).into())
                }
                None => Err(unable(Capability::Roots)),
            },
            other => Err(Error::method_not_found(other.as_str())),
        }
    }

    async fn elicited(&self, params: Value, asked: Json) -> Result<Json, Error> {
        let Some(elicit) = &self.elicit else { return Err(unable(Capability::ElicitForm)) };
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let schema = params.get("requestedSchema").cloned().unwrap_or_else(|| json!({}));
        let kind = match params.get("mode").and_then(Value::as_str) {
            Some("url") if self.urls => ElicitKind::Url(text("url")),
            Some("url") => return Err(unable(Capability::ElicitUrl)),
            _ => ElicitKind::Form(schema.clone()),
        };
        let is_form = matches!(kind, ElicitKind::Form(_));
        let answer = elicit(Elicitation { message: text("message"), kind, params: asked }).await;
        Ok(match answer {
            ElicitAnswer::Accept(content) if is_form => {
                // 2025-11-25 client/elicitation: fields that were left alone have their defaults.
                let mut all = defaults(&schema);
                all.extend(content);
                json!({"action": "accept", "content": all})
            }
            ElicitAnswer::Accept(_) => json!({"action": "accept"}),
            ElicitAnswer::Decline => json!({"action": "decline"}),
            ElicitAnswer::Cancel => json!({"action": "cancel"}),
        }
        .into())
    }
}

fn unable(needed: Capability) -> Error {
    Error::new(Symbol::MethodNotFound, format!("This client does not answer {}", needed.name()))
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Handlers({})", self.capabilities().as_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn fields_left_alone_get_their_defaults() {
        let handlers = Handlers::new().on_elicit(false, |question| async move {
            assert_eq!(question.defaults().len(), 2);
            ElicitAnswer::Accept(Map::from_iter([("a".to_owned(), json!("mine"))]))
        });
        let asked = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {
            "a": {"type": "string", "default": "x"}, "b": {"type": "integer", "default": 7}, "c": {"type": "string"}}}});
        let answer = handlers.answer(&Method::ElicitCreate, asked.into()).await.unwrap();
        assert_eq!(
            answer.to::<Value>().unwrap(),
            json!({"action": "accept", "content": {"a": "mine", "b": 7}})
        );
        let url = json!({"mode": "url", "message": "m", "url": "https://x"});
        assert!(handlers.answer(&Method::ElicitCreate, url.into()).await.is_err());
    }

    #[test]
    fn capabilities_say_what_is_answered() {
        assert_eq!(Handlers::new().capabilities().as_json().as_str(), "{}");
        let all = Handlers::new()
            .on_elicit(true, |_| async { ElicitAnswer::Decline })
            .on_sample(false, |_| async { Ok(json!({})) })
            .roots(vec![]);
        let all = all.capabilities();
        for capability in
            [Capability::ElicitForm, Capability::ElicitUrl, Capability::Sampling, Capability::Roots]
        {
            assert!(all.has(capability), "{capability:?}");
        }
        assert!(!all.has(Capability::SamplingTools));
    }
}

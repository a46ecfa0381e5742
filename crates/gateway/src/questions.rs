//! Questions of servers: who is asked to fill in a form or to visit a page reads which server wants that. All a client
//! knows is the gateway.

use tidegate_protocol::json::Edit;
use tidegate_protocol::{Json, Method, Object};
use tidegate_service::InputRequired;

/// The member of a result or task that holds questions.
const QUESTIONS: &str = "inputRequests";

/// Questions that name the server.
pub(crate) fn naming(server: &str, mut input: InputRequired) -> InputRequired {
    for question in input.questions.iter_mut().filter(|question| question.method == Method::ElicitCreate) {
        if let Some(params) = named(&question.params, server) {
            question.params = params;
        }
    }
    if let Some(original) = input.original.take() {
        input.original = Some(in_object(server, original));
    }
    input
}

/// A result or a task whose questions, if it has any, name the server.
pub(crate) fn in_object(server: &str, object: Json) -> Json {
    let mut edit = Edit::of(&object);
    if let Some(edit) = &mut edit {
        edit.map(QUESTIONS, |questions| in_map(server, questions));
    }
    edit.and_then(Edit::finish).unwrap_or(object)
}

/// `{key: {method, params}, …}`, where forms and pages name the server.
fn in_map(server: &str, questions: &Json) -> Option<Json> {
    let mut all = Object::of(questions)?;
    let keys: Vec<String> = all.members().map(|member| member.name.into_owned()).collect();
    for key in keys {
        let Some(question) = all.object(&key) else { continue };
        if question.str("method").as_deref() != Some(Method::ElicitCreate.as_str()) {
            continue;
        }
        let Some(params) = question.json("params").and_then(|params| named(&params, server)) else {
            continue;
        };
        all = Object::of(&all.with(&key, &question.with("params", &params)))?;
    }
    Some(all.to_json())
}

/// The parameters of a question whose message names the server. What the message says stays as it was written.
fn named(params: &Json, server: &str) -> Option<Json> {
    let params = Object::of(params)?;
    let message = params.get("message")?.strip_prefix('"')?;
    let prefix = Json::string(&format!("[{server}] "));
    let prefix = prefix.as_str().strip_suffix('"')?;
    Some(params.with("message", &Json::trusted(format!("{prefix}{message}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_pages_name_their_server_and_nothing_else_changes() {
        let task = r#"{"taskId":"t","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Wh\u006f?","n": 1.0},"x":1},"b":{"method":"roots/list","params":{}},"c":{"method":"sampling/createMessage","params":{"message":"m"}}},"n": 2.0}"#;
        assert_eq!(in_object("crm", Json::trusted(task)).as_str(), task.replace("\"Wh", "\"[crm] Wh"));
        for same in [
            r#"{"content":[]}"#,
            r#"{"inputRequests":7}"#,
            r#"{"inputRequests":{"a":{"method":"elicitation/create"}}}"#,
        ] {
            assert_eq!(in_object("crm", Json::trusted(same)).as_str(), same);
        }
    }
}

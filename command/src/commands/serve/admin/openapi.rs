//! `/api/openapi.json`: the table of routes as an OpenAPI document.

use serde_json::{Map, Value, json};

use super::asked::{self, Asked};
use super::routes::{Answer, Answering, Fits, Parameter, ROUTES, Route};
use super::{Admin, events, logs, servers, status};

pub(super) fn get(_: Admin, _: Asked) -> Answering {
    Box::pin(async move { Ok(asked::json(200, &document())) })
}

/// The document.
pub(super) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What a running gateway tells about itself, and what can be done about it. Over the socket in the state directory \
                            nothing else is needed; see docs/operating.md for who may what over HTTP.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "With [auth], a key or a token. Without, the token of this \
                                start of the gateway, for what changes something and for the log."}},
        },
    })
}

fn operation(route: &Route) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path =
        names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let parameters: Vec<Value> = in_path.chain(route.query.iter().map(parameter)).collect();
    let content = |schema: &str, media_type: &str| {
        let mut content = json!({});
        content[media_type] = json!({"schema": reference(schema)});
        content
    };
    let answer = match route.answer {
        Answer::Json(schema) => content(schema, "application/json"),
        Answer::Events(schema) => content(schema, "text/event-stream"),
    };
    let mut responses = json!({"200": {"description": route.summary, "content": answer}});
    let always = [
        (400, "A parameter or the body does not fit: the sentence names it."),
        (401, "A key or a token is needed."),
        (404, "There is no such thing, or not for whoever asks."),
    ];
    for (status, why) in always.iter().chain(route.refusals) {
        let error = json!({"description": why, "content": content("Error", "application/json")});
        responses[status.to_string()] = error;
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses,
        "security": [{}, {"bearer": []}],
    });
    if let Some(schema) = route.body {
        operation["requestBody"] = json!({"required": true, "content": content(schema, "application/json")});
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.fits {
        Fits::Text => json!({"type": "string"}),
        Fits::Whole(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Fits::OneOf(words) => json!({"enum": words}),
    };
    json!({"name": parameter.name, "in": "query", "description": parameter.about, "schema": schema})
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// All schemas, from the rooms that answer with them.
fn schemas() -> Value {
    let mut all = json!({
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {"type": "string", "description": "What is wrong, in a sentence."}},
        },
        "OpenApi": {"type": "object"},
    });
    for own in [status::schemas(), servers::schemas(), logs::schemas(), events::schemas()] {
        if let (Some(all), Value::Object(own)) = (all.as_object_mut(), own) {
            all.extend(own);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_every_route_and_every_schema_that_it_refers_to() {
        let document = document();
        for route in ROUTES {
            let operation = &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()];
            assert_eq!(operation["operationId"], route.id);
            assert!(route.summary.ends_with('.'), "{}", route.id);
            let named = operation["parameters"].as_array().unwrap().len();
            assert_eq!(named, route.query.len() + route.path.matches('{').count(), "{}", route.id);
        }
        let operations: usize =
            document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum();
        assert_eq!(operations, ROUTES.len(), "no route is there twice");
        let mut ids: Vec<&str> = ROUTES.iter().map(|route| route.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ROUTES.len(), "no id is there twice");
        let text = document.to_string();
        let referred =
            text.split("\"#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap());
        for schema in referred {
            assert!(document["components"]["schemas"][schema].is_object(), "{schema}");
        }
    }
}

//! Lowering: whatever a server says, the outcome is JSON, lowering it again changes nothing, and 2025-11-25 loses
//! nothing but framing.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_protocol::{Feature, Json, Method, Revision, lower};

/// Trees whose names and texts are those that lowering looks for.
fn vocabulary() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "tool_result",
        "object",
        "array",
        "string",
        "task",
        "form",
        "AAAA",
        "audio/wav",
        "x:1",
    ]);
    let name = prop::sample::select(vec![
        "content",
        "type",
        "text",
        "data",
        "mimeType",
        "uri",
        "name",
        "title",
        "description",
        "icons",
        "annotations",
        "_meta",
        "structuredContent",
        "resultType",
        "ttlMs",
        "cacheScope",
        "messages",
        "role",
        "contents",
        "tools",
        "inputSchema",
        "outputSchema",
        "properties",
        "execution",
        "prompts",
        "arguments",
        "resources",
        "resourceTemplates",
        "capabilities",
        "serverInfo",
        "extensions",
        "completions",
        "tasks",
        "lastModified",
        "resource",
        "taskId",
        "requestedSchema",
        "mode",
        "items",
        "enum",
        "oneOf",
        "const",
        "default",
        "maxItems",
        "io.modelcontextprotocol/serverInfo",
    ]);
    let leaf = prop_oneof![
        3 => text.prop_map(|t| json!(t)),
        1 => Just(json!(true)),
        1 => Just(json!(null)),
        1 => Just(json!(1)),
    ];
    leaf.prop_recursive(6, 80, 6, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            3 => prop::collection::vec((name.clone(), inner), 0..7)
                .prop_map(|all| Value::Object(all.into_iter().map(|(n, v)| (n.to_owned(), v)).collect::<Map<_, _>>())),
        ]
    })
}

fn method() -> impl Strategy<Value = Method> {
    prop::sample::select(vec![
        Method::Initialize,
        Method::ToolsList,
        Method::ToolsCall,
        Method::ResourcesList,
        Method::ResourcesTemplatesList,
        Method::ResourcesRead,
        Method::PromptsList,
        Method::PromptsGet,
        Method::Complete,
        Method::TasksGet,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn results_are_lowered_once_and_for_all(method in method(), tree in vocabulary(), pick in 0..5usize) {
        let revision = Revision::ALL[pick];
        // A task is turned inside out, which cannot be done twice.
        prop_assume!(tree.get("resultType") != Some(&json!("task")));
        let json = Json::from(&tree);
        let once = lower::result(&method, revision, json.clone());
        prop_assert!(once.to::<Value>().is_ok(), "{once}");
        prop_assert_eq!(lower::result(&method, revision, once.clone()), once.clone());
        if revision.is_modern() {
            prop_assert_eq!(once, json);
        }
    }

    #[test]
    fn nothing_unknown_is_left(tree in vocabulary(), pick in 0..4usize) {
        prop_assume!(tree.get("resultType") != Some(&json!("task")));
        let revision = Revision::ALL[pick];
        let result: Value = lower::result(&Method::ToolsCall, revision, Json::from(&tree)).to().unwrap();
        let kept = result.get("structuredContent");
        prop_assert!(kept.is_none_or(|value| value.is_object() && revision.allows(Feature::StructuredContent)));
        for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
            let known = match block.get("type").and_then(Value::as_str) {
                Some("audio") => revision.allows(Feature::Audio),
                Some("resource_link") => revision.allows(Feature::ResourceLinks),
                _ => true,
            };
            prop_assert!(known, "{block}");
            prop_assert!(block.get("_meta").is_none() || revision.allows(Feature::DefinitionMeta), "{block}");
        }
    }

    #[test]
    fn questions_are_lowered_once_and_for_all(
        method in prop::sample::select(vec!["elicitation/create", "sampling/createMessage", "roots/list"]),
        tree in vocabulary(),
        pick in 0..5usize,
    ) {
        let revision = Revision::ALL[pick];
        if let Some(once) = lower::question(revision, method, Json::from(&tree)) {
            prop_assert!(once.to::<Value>().is_ok(), "{once}");
            prop_assert_eq!(lower::question(revision, method, once.clone()), Some(once.clone()));
            let answer = lower::answer(revision, method, &Json::from(&tree), once);
            prop_assert!(answer.to::<Value>().is_ok(), "{answer}");
        }
    }
}

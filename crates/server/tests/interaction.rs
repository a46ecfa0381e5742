//! Asking the client, by replay: rounds, keys, states, answers.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Client, accept, error_code, text_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_protocol::Revision;
use tidegate_server::{
    Argument, Completing, Cx, Elicit, Elicited, Key, Prompt, PromptArgs, PromptMessage, Resource, Sample,
    Server, ServerDoor, Tool, ToolError,
};
use tidegate_service::{Notice, Outbox, Reply};

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    colour: String,
}

fn ask_name(cx: &Cx) -> tidegate_server::Ask<Elicited<Name>> {
    cx.elicit(Elicit::<Name>::form("What is your name?").key("user_name"))
}

fn greet() -> Tool {
    Tool::new("greet").handler(|(), cx: Cx| async move {
        let user = ask_name(&cx).await.accepted()?;
        Ok::<_, ToolError>(format!("Hello, {}!", user.name))
    })
}

fn one(tool: Tool) -> ServerDoor {
    Server::new("s", "1").tool(tool).build()
}

fn sampled(text: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m", "stopReason": "endTurn"})
}

#[tokio::test]
async fn a_question_stops_the_handler_and_its_answer_lets_it_finish() {
    let door = one(greet());
    for client in [Client::modern(&door).askable(), Client::legacy(&door).askable()] {
        let first = client.asked("tools/call", json!({"name": "greet"})).await;
        let question = &first.questions[0];
        assert_eq!((&*question.key, question.method.as_str()), ("user_name", "elicitation/create"));
        assert_eq!(
            question.params.to::<Value>().unwrap(),
            json!({
                "mode": "form", "message": "What is your name?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "description": "Your name."}},
                    "required": ["name"],
                },
            })
        );
        let (result, rounds) =
            client.converse("greet", json!({}), json!({"user_name": accept(json!({"name": "Ann"}))})).await;
        assert_eq!((text_of(&result), rounds), (Some("Hello, Ann!"), 1));
    }
}

#[tokio::test]
async fn questions_awaited_together_go_out_together() {
    let door = one(Tool::new("all").handler(|(), cx: Cx| async move {
        let (user, capital, roots) = tokio::join!(
            ask_name(&cx),
            cx.sample(
                Sample::new().system("Be brief.").user("Capital of France?").max_tokens(100).key("capital")
            ),
            cx.roots().key("roots"),
        );
        Ok::<_, ToolError>(format!("{} {} {}", user.accepted()?.name, capital.text(), roots[0].uri))
    }));
    let client = Client::modern(&door).askable();
    let first = client.asked("tools/call", json!({"name": "all"})).await;
    let methods: Vec<_> = first.questions.iter().map(|q| (&*q.key, q.method.as_str())).collect();
    assert_eq!(
        methods,
        [("user_name", "elicitation/create"), ("capital", "sampling/createMessage"), ("roots", "roots/list")]
    );
    assert_eq!(
        first.questions[1].params.to::<Value>().unwrap(),
        json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
            "systemPrompt": "Be brief.", "maxTokens": 100,
        })
    );
    let answers = json!({
        "user_name": accept(json!({"name": "Ann"})),
        "capital": sampled("Paris"),
        "roots": {"roots": [{"uri": "file:///home"}]},
    });
    let (result, rounds) = client.converse("all", json!({}), answers).await;
    assert_eq!((text_of(&result), rounds), (Some("Ann Paris file:///home"), 1));
}

fn two_rounds() -> Tool {
    Tool::new("two").handler(|(), cx: Cx| async move {
        let user = ask_name(&cx).await.accepted()?;
        let question = format!("{}, which colour?", user.name);
        let favourite = cx.elicit(Elicit::<Colour>::form(question)).await.accepted()?;
        Ok::<_, ToolError>(format!("{} likes {}", user.name, favourite.colour))
    })
}

#[tokio::test]
async fn each_round_brings_only_its_own_answers_and_a_new_state() {
    let door = one(two_rounds());
    let client = Client::modern(&door).askable();
    let first = client.asked("tools/call", json!({"name": "two", "arguments": {}})).await;
    let again = client.asked("tools/call", json!({"name": "two", "arguments": {}})).await;
    assert_ne!(first.state, again.state, "no two states are alike");
    let second = client
        .asked(
            "tools/call",
            json!({
                "name": "two", "requestState": first.state.as_deref(),
                "inputResponses": {"user_name": accept(json!({"name": "Ann"}))},
            }),
        )
        .await;
    assert_eq!(&*second.questions[0].key, "elicitation-1", "questions without a key are numbered");
    assert!(second.questions[0].params.as_str().contains("Ann, which colour?"));
    assert_ne!(first.state, second.state);
    let third = client
        .request(
            "tools/call",
            json!({
                "name": "two", "requestState": second.state.as_deref(),
                "inputResponses": {"elicitation-1": accept(json!({"colour": "red"}))},
            }),
        )
        .await;
    assert_eq!(text_of(&third), Some("Ann likes red"));
}

#[tokio::test]
async fn declining_and_cancelling_are_answers_too() {
    let door = one(Tool::new("ask").handler(|(), cx: Cx| async move { ask_name(&cx).await.action() }));
    let client = Client::modern(&door).askable();
    for action in ["decline", "cancel"] {
        let (result, _) = client.converse("ask", json!({}), json!({"user_name": {"action": action}})).await;
        assert_eq!(text_of(&result), Some(action));
    }
    let door = one(greet());
    let (result, _) = Client::modern(&door)
        .askable()
        .converse("greet", json!({}), json!({"user_name": {"action": "decline"}}))
        .await;
    assert_eq!((text_of(&result), &result["isError"]), (Some("The user declined to answer"), &json!(true)));
}

#[tokio::test]
async fn answers_before_the_question_are_held_and_unknown_ones_ignored() {
    let door = one(greet());
    let client = Client::modern(&door).askable();
    let early = json!({
        "name": "greet",
        "inputResponses": {"user_name": accept(json!({"name": "Ann"})), "unknown": 7, "another": {}},
    });
    assert_eq!(text_of(&client.request("tools/call", early).await), Some("Hello, Ann!"));
    let wrong_key = json!({"name": "greet", "inputResponses": {"wrong_key": accept(json!({"name": "Ann"}))}});
    assert_eq!(client.asked("tools/call", wrong_key).await.questions.len(), 1, "asked again, not an error");
}

#[tokio::test]
async fn missing_answers_are_asked_for_again_and_given_ones_kept() {
    let door = one(Tool::new("both").handler(|(), cx: Cx| async move {
        let (user, colour) =
            tokio::join!(ask_name(&cx), cx.elicit(Elicit::<Colour>::form("Which colour?").key("colour")),);
        Ok::<_, ToolError>(format!("{} {}", user.accepted()?.name, colour.accepted()?.colour))
    }));
    let client = Client::modern(&door).askable();
    let first = client.asked("tools/call", json!({"name": "both"})).await;
    let second = client
        .asked(
            "tools/call",
            json!({
                "name": "both", "requestState": first.state.as_deref(),
                "inputResponses": {"user_name": accept(json!({"name": "Ann"}))},
            }),
        )
        .await;
    let keys: Vec<_> = second.questions.iter().map(|q| &*q.key).collect();
    assert_eq!(keys, ["colour"]);
}

#[tokio::test]
async fn answers_of_a_wrong_shape_are_refused_by_name() {
    let door =
        Server::new("s", "1")
            .tool(greet())
            .tool(Tool::new("sample").handler(|(), cx: Cx| async move {
                cx.sample(Sample::new().user("x").key("q")).await.text()
            }))
            .tool(
                Tool::new("roots")
                    .handler(|(), cx: Cx| async move { cx.roots().key("q").await.len().to_string() }),
            )
            .build();
    let client = Client::modern(&door).askable();
    for (tool, responses, sentence) in [
        ("greet", json!(null), "\"inputResponses\" must be an object"),
        ("greet", json!([]), "\"inputResponses\" must be an object"),
        ("greet", json!({"user_name": 12345}), "the answer \"user_name\" must have an \"action\""),
        ("greet", json!({"user_name": {"action": "maybe"}}), "must have an \"action\""),
        ("greet", json!({"user_name": {"action": "accept"}}), "its \"content\" is no object"),
        (
            "greet",
            json!({"user_name": accept(json!({"name": 7}))}),
            "does not fit the form: name: 7 is not of type",
        ),
        ("greet", json!({"user_name": accept(json!({}))}), "name is required"),
        (
            "sample",
            json!({"q": {"role": "assistant", "model": "m"}}),
            "the answer \"q\" must have \"content\"",
        ),
        (
            "sample",
            json!({"q": {"content": {"type": "text", "text": ""}, "model": "m"}}),
            "must have a \"role\"",
        ),
        (
            "sample",
            json!({"q": {"role": "assistant", "content": {"type": "text"}}}),
            "must name its \"model\"",
        ),
        ("roots", json!({"q": {}}), "must have an array of \"roots\""),
        ("roots", json!({"q": {"roots": [{"name": "x"}]}}), "roots with a \"uri\""),
    ] {
        let result = client.request("tools/call", json!({"name": tool, "inputResponses": responses})).await;
        assert_eq!(error_code(&result), Some(-32602), "{tool} {responses}: {result}");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains(sentence), "{message:?} lacks {sentence:?}");
    }
}

#[tokio::test]
async fn a_state_is_good_for_one_caller_one_call_and_unchanged() {
    let door = Server::new("s", "1")
        .tool(
            Tool::raw("greet", json!({"type": "object"}))
                .handler_raw(|_: Value, cx: Cx| async move { ask_name(&cx).await.action() }),
        )
        .tool(
            Tool::raw("other", json!({"type": "object"})).handler_raw(|_: Value, _cx: Cx| async { "other" }),
        )
        .build();
    let ann = Client::modern(&door).askable().named("ann");
    let arguments = json!({"x": {"b": 1, "a": [1, 2]}});
    let first = ann.asked("tools/call", json!({"name": "greet", "arguments": arguments})).await;
    let state = first.state.unwrap().to_string();
    let retry = |name: &str, arguments: Value, state: &str| {
        json!({
            "name": name, "arguments": arguments, "requestState": state,
            "inputResponses": {"user_name": accept(json!({"name": "Ann"}))},
        })
    };
    let good = ann.request("tools/call", retry("greet", arguments.clone(), &state)).await;
    assert_eq!(text_of(&good), Some("accept"));
    let reordered: Value = serde_json::from_str(r#"{"x":{"a":[1,2.0],"b":1e0}}"#).unwrap();
    assert_eq!(text_of(&ann.request("tools/call", retry("greet", reordered, &state)).await), Some("accept"));

    let bob = Client::modern(&door).askable().named("bob");
    for (client, params) in [
        (&ann, retry("greet", arguments.clone(), &format!("{state}-TAMPERED"))),
        (&ann, retry("greet", arguments.clone(), "")),
        (&ann, retry("greet", json!({"x": {"b": 2, "a": [1, 2]}}), &state)),
        (&ann, retry("other", arguments.clone(), &state)),
        (&bob, retry("greet", arguments.clone(), &state)),
        (&ann, json!({"name": "greet", "arguments": arguments, "requestState": 7})),
    ] {
        let refused = client.request("tools/call", params.clone()).await;
        assert_eq!(error_code(&refused), Some(-32602), "{params}: {refused}");
    }
}

#[tokio::test]
async fn a_state_expires_and_survives_a_change_of_keys() {
    let server = |key: &str| Server::new("s", "1").tool(greet()).request_state_key(Key::derive(key));
    let (old, new) =
        (server("old").build(), server("new").accept_request_state_key(Key::derive("old")).build());
    let stranger = server("other").build();
    let first = Client::modern(&old).askable().asked("tools/call", json!({"name": "greet"})).await;
    let retry = json!({
        "name": "greet", "requestState": first.state.as_deref(),
        "inputResponses": {"user_name": accept(json!({"name": "Ann"}))},
    });
    let answer = |door: &ServerDoor| {
        let (client, retry) = (Client::modern(door).askable(), retry.clone());
        async move { client.request("tools/call", retry).await }
    };
    assert_eq!(text_of(&answer(&new).await), Some("Hello, Ann!"), "another replica, which knows the old key");
    assert_eq!(error_code(&answer(&stranger).await), Some(-32602));

    let brief = server("old").request_state_ttl(Duration::from_millis(10)).build();
    let first = Client::modern(&brief).askable().asked("tools/call", json!({"name": "greet"})).await;
    std::thread::sleep(Duration::from_millis(30));
    let late = json!({"name": "greet", "requestState": first.state.as_deref(), "inputResponses": {}});
    assert_eq!(error_code(&Client::modern(&brief).askable().request("tools/call", late).await), Some(-32602));
}

#[tokio::test]
async fn what_the_client_cannot_do_is_not_asked() {
    let door = Server::new("s", "1")
        .tool(greet())
        .tool(Tool::new("visit").handler(|(), cx: Cx| async move {
            cx.elicit(Elicit::url("Log in", "https://x/login")).await.action()
        }))
        .tool(Tool::new("many").handler(|(), cx: Cx| async move {
            let _ = tokio::join!(ask_name(&cx), cx.roots(), cx.sample(Sample::new().user("x").tools(vec![])));
        }))
        .build();
    let able = |capabilities: Value| Client::modern(&door).can(capabilities);
    for (client, tool, missing) in [
        (able(json!({})), "greet", json!({"elicitation": {"form": {}}})),
        (able(json!({"elicitation": {"url": {}}})), "greet", json!({"elicitation": {"form": {}}})),
        (able(json!({"elicitation": {}})), "visit", json!({"elicitation": {"url": {}}})),
        (
            able(json!({"sampling": {}})),
            "many",
            json!({"elicitation": {"form": {}}, "roots": {}, "sampling": {"tools": {}}}),
        ),
        (
            able(json!({"elicitation": {}})).revision(Revision::V2025_03_26),
            "greet",
            json!({"elicitation": {"form": {}}}),
        ),
    ] {
        let result = client.tool(tool, json!({})).await;
        assert_eq!(error_code(&result), Some(-32021), "{tool}: {result}");
        assert_eq!(result["error"]["data"]["requiredCapabilities"], missing, "{tool}");
    }
    let visit = able(json!({"elicitation": {"url": {}}})).asked("tools/call", json!({"name": "visit"})).await;
    assert_eq!(
        visit.questions[0].params.as_str(),
        r#"{"mode":"url","message":"Log in","url":"https://x/login"}"#
    );
    let (result, _) = able(json!({"elicitation": {"url": {}}}))
        .converse("visit", json!({}), json!({"elicitation-1": {"action": "accept"}}))
        .await;
    assert_eq!(text_of(&result), Some("accept"));
}

#[tokio::test]
async fn what_is_kept_is_done_once() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let door = one(Tool::new("book").handler(move |(), cx: Cx| {
        let counter = counter.clone();
        async move {
            let seat = cx
                .run_once("seat", async {
                    // Also while it waits for something real, a question elsewhere must not tear it.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    counter.fetch_add(1, Ordering::Relaxed) + 7
                })
                .await;
            let (user, ()) = tokio::join!(ask_name(&cx), async {
                cx.run_once("second", async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    counter.fetch_add(1, Ordering::Relaxed);
                })
                .await;
            });
            Ok::<_, ToolError>(format!("{} has seat {seat}", user.accepted()?.name))
        }
    }));
    let answers = json!({"user_name": accept(json!({"name": "Ann"}))});
    let (result, rounds) = Client::modern(&door).askable().converse("book", json!({}), answers).await;
    assert_eq!((text_of(&result), rounds), (Some("Ann has seat 7"), 1));
    assert_eq!(made.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_large_memory_stays_on_the_server() {
    let door = one(Tool::new("big").handler(|(), cx: Cx| async move {
        // Not compressible, so that it cannot be packed into the state.
        let mut x = 1u64;
        let noise = cx
            .run_once("noise", async {
                (0..20_000)
                    .map(|_| {
                        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        x
                    })
                    .collect::<Vec<u64>>()
            })
            .await;
        let user = ask_name(&cx).await.accepted()?;
        Ok::<_, ToolError>(format!("{} {}", user.name, noise.len()))
    }));
    let client = Client::modern(&door).askable();
    let first = client.asked("tools/call", json!({"name": "big"})).await;
    assert!(first.state.unwrap().len() < 1000);
    let answers = json!({"user_name": accept(json!({"name": "Ann"}))});
    let (result, _) = client.converse("big", json!({}), answers).await;
    assert_eq!(text_of(&result), Some("Ann 20000"));
}

#[tokio::test]
async fn a_handler_that_changes_its_question_is_an_internal_error() {
    let round = Arc::new(AtomicUsize::new(0));
    let counter = round.clone();
    let door = one(Tool::new("fickle").handler(move |(), cx: Cx| {
        let n = counter.fetch_add(1, Ordering::Relaxed);
        async move { cx.elicit(Elicit::<Name>::form(format!("Question {n}")).key("q")).await.action() }
    }));
    let answers = json!({"q": accept(json!({"name": "Ann"}))});
    let (result, _) = Client::modern(&door).askable().converse("fickle", json!({}), answers).await;
    assert_eq!(error_code(&result), Some(-32603));
}

#[tokio::test]
async fn rounds_are_bounded() {
    let server = Server::new("s", "1").max_rounds(3);
    let door = server
        .tool(Tool::new("endless").handler(|(), cx: Cx| async move {
            for _ in 0..100 {
                ask(&cx).await;
            }
        }))
        .build();
    async fn ask(cx: &Cx) {
        cx.elicit(Elicit::<Name>::form("Again?")).await;
    }
    let answer = accept(json!({"name": "x"}));
    let answers = json!({"elicitation-1": answer, "elicitation-2": answer, "elicitation-3": answer});
    let (result, rounds) = Client::modern(&door).askable().converse("endless", json!({}), answers).await;
    assert_eq!((error_code(&result), rounds), (Some(-32603), 3));
    assert!(result["error"]["message"].as_str().unwrap().contains("more than 3 times"));
}

#[tokio::test]
async fn impossible_forms_are_the_authors_error() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Deep {
        inner: Name,
    }
    let door = Server::new("s", "1")
        .tool(
            Tool::new("deep")
                .handler(|(), cx: Cx| async move { cx.elicit(Elicit::<Deep>::form("Deep?")).await.action() }),
        )
        .tool(Tool::new("raw").handler(|(), cx: Cx| async move {
            cx.elicit(Elicit::form_schema("Raw?", json!({"type": "array"}))).await.action()
        }))
        .build();
    for tool in ["deep", "raw"] {
        let result = Client::modern(&door).askable().tool(tool, json!({})).await;
        assert_eq!(error_code(&result), Some(-32603), "{tool}");
    }
}

#[tokio::test]
async fn hand_written_forms_give_their_content_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {"legacy": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a"}},
    });
    let asked = schema.clone();
    let door = one(Tool::new("raw").handler(move |(), cx: Cx| {
        let question = Elicit::form_schema("Which?", asked.clone()).key("q");
        async move { Ok::<_, ToolError>(cx.elicit(question).await.accepted()?.to_string()) }
    }));
    let client = Client::modern(&door).askable();
    let first = client.asked("tools/call", json!({"name": "raw"})).await;
    assert_eq!(first.questions[0].params.to::<Value>().unwrap()["requestedSchema"], schema);
    let (result, _) = client.converse("raw", json!({}), json!({"q": accept(json!({"legacy": "b"}))})).await;
    assert_eq!(text_of(&result), Some(r#"{"legacy":"b"}"#));
}

#[tokio::test]
async fn prompts_and_resources_ask_too() {
    let door = Server::new("s", "1")
        .prompt(Prompt::new("p").handler(|_: PromptArgs, cx: Cx| async move {
            let user = ask_name(&cx).await.accepted()?;
            Ok(vec![PromptMessage::user(format!("I am {}", user.name))])
        }))
        .resource(Resource::new("x:1", "one").reader(|cx: Cx| async move {
            let user = ask_name(&cx).await.accepted()?;
            Ok(format!("for {}", user.name))
        }))
        .build();
    let client = Client::modern(&door).askable();
    for (method, mut params, want) in [
        ("prompts/get", json!({"name": "p"}), "I am Ann"),
        ("resources/read", json!({"uri": "x:1"}), "for Ann"),
    ] {
        let first = client.asked(method, params.clone()).await;
        params["requestState"] = json!(first.state.as_deref());
        params["inputResponses"] = json!({"user_name": accept(json!({"name": "Ann"}))});
        let result = client.request(method, params.clone()).await;
        assert!(result.to_string().contains(want), "{result}");
        params["inputResponses"] = json!({"user_name": {"action": "decline"}});
        assert_eq!(
            error_code(&client.request(method, params).await),
            Some(-32603),
            "a failed handler is an error"
        );
    }
}

#[tokio::test]
async fn a_question_from_another_task_is_noticed() {
    let door = one(Tool::new("spawned").handler(|(), cx: Cx| async move {
        let inner = cx.clone();
        let asked = tokio::spawn(async move {
            tokio::task::yield_now().await;
            ask_name(&inner).await.action()
        });
        asked.await.map_err(ToolError::from_error)
    }));
    let client = Client::modern(&door).askable();
    let reply =
        tokio::time::timeout(Duration::from_secs(5), client.reply("tools/call", r#"{"name":"spawned"}"#))
            .await;
    assert!(matches!(reply, Ok(Reply::InputRequired(_))), "{reply:?}");
}

#[tokio::test]
async fn nothing_is_asked_where_nothing_may_be_asked() {
    let door = Server::new("s", "1")
        .prompt(
            Prompt::new("p")
                .argument(
                    Argument::new("a")
                        .complete(|_: Completing, cx: Cx| async move { vec![ask_name(&cx).await.action()] }),
                )
                .handler(|_: PromptArgs, _cx: Cx| async { Ok("") }),
        )
        .build();
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    let result = Client::modern(&door).askable().request("completion/complete", params).await;
    assert_eq!(error_code(&result), Some(-32603));
}

#[tokio::test]
async fn progress_goes_on_from_round_to_round() {
    let door = one(Tool::new("t").handler(|(), cx: Cx| async move {
        cx.progress(1.0, None, "asking");
        let user = ask_name(&cx).await.accepted()?;
        cx.progress(2.0, None, "greeting");
        Ok::<_, ToolError>(user.name)
    }));
    for client in [Client::modern(&door).askable(), Client::legacy(&door).askable()] {
        let outbox = Outbox::default();
        let client = client.outbox(&outbox).progress("7");
        let first = client.asked("tools/call", json!({"name": "t"})).await;
        let answer = json!({"user_name": {"action": "accept", "content": {"name": "Ann"}}});
        let params = json!({"name": "t", "inputResponses": answer, "requestState": first.state.as_deref()});
        let done = client.request("tools/call", params).await;
        assert_eq!(done["content"][0]["text"], "Ann", "{done}");
        let told: Vec<_> = std::iter::from_fn(|| outbox.try_next())
            .filter_map(|notice| match notice {
                Notice::Progress(params) => params.to::<Value>().unwrap()["progress"].as_i64(),
                _ => None,
            })
            .collect();
        assert_eq!(told, [1, 2]);
    }
}

#[tokio::test]
async fn an_answer_that_is_none_can_be_the_handlers_business() {
    let door = one(Tool::new("t").handler(|(), cx: Cx| async move {
        let sampled = cx.try_sample(Sample::new().user("?").key("k")).await;
        sampled
            .map(|sampled| sampled.text())
            .map_err(|problem| ToolError::message_only(format!("It {problem}")))
    }));
    let client = Client::modern(&door).askable();
    let first = client.asked("tools/call", json!({"name": "t"})).await;
    for (answer, said, failed) in [
        (json!({"role": "robot"}), "It must have a \"role\" that is \"assistant\" or \"user\"", true),
        (sampled("yes"), "yes", false),
    ] {
        let params =
            json!({"name": "t", "inputResponses": {"k": answer}, "requestState": first.state.as_deref()});
        let done = client.request("tools/call", params).await;
        assert_eq!(done["content"][0]["text"], said, "{done}");
        assert_eq!(done["isError"] == true, failed);
    }
}

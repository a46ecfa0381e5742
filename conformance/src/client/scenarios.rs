//! The table: what to do in which scenario.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tidegate_client::AppError;
use tidegate_protocol::Symbol;

use crate::acts;
use crate::assignment::Assignment;
use crate::login::Login;

/// How to log in, if the server asks for it, what to do then, and whether that has to end with a refused login.
pub(crate) struct Scenario {
    login: Login,
    act: Act,
    refuses: bool,
}

enum Act {
    /// Lists the tools.
    List,
    /// Lists the tools and calls this one.
    Call(&'static str, Value),
    /// Lists the tools and calls all of them.
    CallAll,
    /// Lists the tools and makes the calls of the context.
    CallGiven,
    /// Has one tool echo the input schema of another.
    EchoSchema,
    /// Calls tools that ask for confirmation before they answer, two at once.
    Confirm,
    /// Lists and uses tools, resources and prompts.
    UseAll,
}

/// Looks a scenario up by the suite's name for it.
pub(crate) fn find(name: &str) -> Result<Scenario> {
    use Act::*;
    let act = match name {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => List,
        "tools_call" => Call("add_numbers", json!({"a": 5, "b": 3})),
        "elicitation-sep1034-client-defaults" => Call("test_client_elicitation_defaults", json!({})),
        "sse-retry" => Call("test_reconnection", json!({})),
        "json-schema-2020-12-preservation" => EchoSchema,
        "sep-2322-client-request-state" => Confirm,
        "http-standard-headers" => UseAll,
        "http-custom-headers" => CallGiven,
        "http-invalid-tool-headers" => CallAll,
        name if name.starts_with("auth/") => Call("test-tool", json!({})),
        unknown => bail!("there is no scenario `{unknown}` in conformance/src/client/scenarios.rs"),
    };
    let login = match name {
        "auth/pre-registration" => Login::Registered,
        "auth/client-credentials-basic" => Login::Secret,
        "auth/client-credentials-jwt" => Login::Key,
        "auth/wif-jwt-bearer" => Login::Workload,
        "auth/enterprise-managed-authorization" => Login::Enterprise,
        "auth/dpop" | "auth/dpop-nonce" => Login::BoundToKey,
        name if name.starts_with("auth/") => Login::Person,
        _ => Login::Never,
    };
    // Servers that are not to be trusted, and one that never has enough.
    let refuses = matches!(
        name,
        "auth/scope-retry-limit"
            | "auth/resource-mismatch"
            | "auth/metadata-issuer-mismatch"
            | "auth/iss-supported-missing"
            | "auth/iss-wrong-issuer"
            | "auth/iss-unexpected"
            | "auth/iss-normalized"
    );
    Ok(Scenario { login, act, refuses })
}

impl Scenario {
    /// Plays it. The expected outcome is `Ok`.
    pub(crate) async fn run(self, assignment: &Assignment) -> Result<()> {
        let refuses = self.refuses;
        match self.play(assignment).await {
            Ok(()) if refuses => bail!("the login should have been refused"),
            Err(error) if refuses && is_refusal(&error) => Ok(()),
            outcome => outcome,
        }
    }

    async fn play(self, assignment: &Assignment) -> Result<()> {
        let mut builder = assignment.client()?.handlers(acts::handlers());
        if let Some(authorizer) = self.login.authorizer(assignment)? {
            builder = builder.authorizer(authorizer);
        }
        let client = builder.connect().await?;
        match self.act {
            Act::List => acts::list(&client).await,
            Act::Call(tool, arguments) => acts::call(&client, tool, arguments).await,
            Act::CallAll => acts::call_all(&client).await,
            Act::CallGiven => acts::call_given(&client, assignment.given("toolCalls")?).await,
            Act::EchoSchema => acts::echo_schema(&client).await,
            Act::Confirm => acts::confirm(&client).await,
            Act::UseAll => acts::use_all(&client).await,
        }?;
        client.close().await;
        Ok(())
    }
}

fn is_refusal(error: &anyhow::Error) -> bool {
    error.downcast_ref::<AppError>().is_some_and(|error| error.symbol == Symbol::Unauthorized)
}

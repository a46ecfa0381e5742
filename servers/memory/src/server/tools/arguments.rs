//! [`closed`]: what every tool of the memory does with its arguments. A name that the schema does not have is refused, the
//! tenant is named where callers choose it, and what other memories take and this one has no use for is passed over.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use crate::uri::{TENANT_NAMES, USER_NAMES};

/// The argument that names a tenant, and the one that names a user.
const TENANT: &str = TENANT_NAMES[0];
const USER: &str = USER_NAMES[0];
/// Arguments that clients of other memories send with any tool. Whose memory it is, is checked before they are dropped.
const IGNORED: [&str; 5] = [TENANT, TENANT_NAMES[1], USER, USER_NAMES[1], "random_string"];

/// The tool with its handler. If callers are authenticated, the arguments that name a tenant and a user are not listed.
pub(crate) fn closed<A, Fut>(
    tool: Tool,
    is_authenticated: bool,
    handler: impl Fn(A, Cx) -> Fut + Send + Sync + 'static,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    let tool = IGNORED.into_iter().fold(tool, Tool::ignores);
    match is_authenticated {
        true => tool.handler(move |args: Arguments<A, false>, cx| handler(args.0, cx)),
        false => tool.handler(move |args: Arguments<A, true>, cx| handler(args.0, cx)),
    }
}

/// The arguments of a tool and no others, with or without those that name a tenant and a user.
struct Arguments<A, const BY_TENANT: bool>(A);

impl<'de, A: Deserialize<'de>, const BY_TENANT: bool> Deserialize<'de> for Arguments<A, BY_TENANT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        A::deserialize(deserializer).map(Arguments)
    }
}

impl<A: JsonSchema, const BY_TENANT: bool> JsonSchema for Arguments<A, BY_TENANT> {
    fn schema_name() -> Cow<'static, str> {
        A::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = A::json_schema(generator);
        let Some(members) = schema.as_object_mut() else { return schema };
        members.insert("additionalProperties".to_owned(), Value::Bool(false));
        let properties = members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            match BY_TENANT {
                // Some tools say more about it.
                true => drop(properties.entry(TENANT).or_insert_with(|| {
                    json!({"type": "string", "description": "The tenant whose memory to use. Usually omitted."})
                })),
                false => [TENANT, USER].iter().for_each(|name| drop(properties.remove(*name))),
            }
        }
        schema
    }
}

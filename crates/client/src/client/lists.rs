//! What a server offers: tools, resources, prompts.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_protocol::{Error, Json, Method, Object, Symbol};
use tidegate_service::Principal;

use super::Client;
use crate::app_error::AppError;
use crate::prompt::{Prompt, PromptResult};
use crate::resource::{ReadResult, Resource, ResourceTemplate};
use crate::tool::Tool;

/// Most pages of one list.
const MAX_PAGES: usize = 1000;

impl Client {
    /// The server's tools: the known list while it is good, else a new one.
    pub async fn tools(&self) -> Result<Vec<Arc<Tool>>, AppError> {
        let table = self.0.cache.get(&Principal::default(), self.fetch()).await;
        table.map(|table| table.tools.clone()).map_err(|error| self.app_error(&error, &Method::ToolsList))
    }

    /// The last known list of tools, however old; `None` if there never was one.
    pub fn stale_tools(&self) -> Option<Vec<Arc<Tool>>> {
        self.0.cache.stale(&Principal::default()).map(|table| table.tools.clone())
    }

    /// The tool with this name. One that is not known even after the list was fetched anew is E204.
    pub async fn get_tool_schema(&self, name: &str) -> Result<Arc<Tool>, AppError> {
        let nobody = Principal::default();
        let failed = |error: Error| self.app_error(&error, &Method::ToolsList);
        if let Some(table) = self.0.cache.fresh(&nobody)
            && let Some(tool) = table.get(name)
        {
            return Ok(tool.clone());
        }
        let table = self.0.cache.refresh(&nobody, self.fetch()).await.map_err(failed)?;
        table.get(name).cloned().ok_or_else(|| {
            let error = Error::new(Symbol::ToolNotFound, format!("Unknown tool: {name}"));
            self.app_error(&error, &Method::ToolsCall)
        })
    }

    /// Forgets the known list of tools.
    pub fn invalidate(&self) {
        self.0.cache.invalidate();
    }

    /// The server's resources. One that has no address is left out.
    ///
    /// ```
    /// # use tidegate_client::{Client, Target};
    /// # use tidegate_server::{Resource, Server};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tidegate_client::AppError> {
    /// # let about = Resource::text("memo://about", "about", "Tides.");
    /// # let server = Server::new("here", "1.0").resource(about).build();
    /// let client = Client::connect(Target::from_door(server)).await?;
    /// for resource in client.resources().await? {
    ///     let read = client.read(resource.uri()).await?;
    ///     assert_eq!((resource.uri(), read.text().as_str()), ("memo://about", "Tides."));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resources(&self) -> Result<Vec<Resource>, AppError> {
        let all = self.raw_resources().await?;
        Ok(all.into_iter().filter_map(Resource::read).collect())
    }

    /// The server's resource templates. One that has no template is left out.
    pub async fn resource_templates(&self) -> Result<Vec<ResourceTemplate>, AppError> {
        let all = self.raw_resource_templates().await?;
        Ok(all.into_iter().filter_map(ResourceTemplate::read).collect())
    }

    /// Reads a resource.
    pub async fn read(&self, uri: &str) -> Result<ReadResult, AppError> {
        self.request(Method::ResourcesRead.as_str(), json!({"uri": uri})).await.map(ReadResult::new)
    }

    /// The server's prompts. One that has no name is left out.
    ///
    /// ```
    /// # use serde_json::json;
    /// # use tidegate_client::{Client, Target};
    /// # use tidegate_server::{Cx, Prompt, PromptArgs, Server, ToolError};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tidegate_client::AppError> {
    /// # let explain = Prompt::new("explain").handler(|_: PromptArgs, _: Cx| async { Ok::<_, ToolError>("Explain tides.") });
    /// # let server = Server::new("here", "1.0").prompt(explain).build();
    /// let client = Client::connect(Target::from_door(server)).await?;
    /// assert_eq!(client.prompts().await?[0].name(), "explain");
    /// let explained = client.get_prompt("explain", json!({})).await?;
    /// assert_eq!(explained.messages()[0].text(), Some("Explain tides."));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn prompts(&self) -> Result<Vec<Prompt>, AppError> {
        let all = self.raw_prompts().await?;
        Ok(all.into_iter().filter_map(Prompt::read).collect())
    }

    /// Gets a prompt, filled in with arguments: an object, or null for none.
    pub async fn get_prompt(&self, name: &str, arguments: Value) -> Result<PromptResult, AppError> {
        let params = match arguments {
            Value::Null => json!({"name": name}),
            arguments => json!({"name": name, "arguments": arguments}),
        };
        self.request(Method::PromptsGet.as_str(), params).await.map(PromptResult::new)
    }

    /// The server's resources as it describes them, whether they can be used or not.
    pub async fn raw_resources(&self) -> Result<Vec<Json>, AppError> {
        self.all(Method::ResourcesList, "resources").await
    }

    /// The server's resource templates as it describes them, whether they can be used or not.
    pub async fn raw_resource_templates(&self) -> Result<Vec<Json>, AppError> {
        self.all(Method::ResourcesTemplatesList, "resourceTemplates").await
    }

    /// The server's prompts as it describes them, whether they can be used or not.
    pub async fn raw_prompts(&self) -> Result<Vec<Json>, AppError> {
        self.all(Method::PromptsList, "prompts").await
    }

    /// Completes an argument: `reference` names a prompt or a resource template, `argument` has a name and a value.
    pub async fn complete(&self, reference: Value, argument: Value) -> Result<Json, AppError> {
        self.request(Method::Complete.as_str(), json!({"ref": reference, "argument": argument})).await
    }

    /// All pages of a list.
    async fn all(&self, method: Method, member: &str) -> Result<Vec<Json>, AppError> {
        let (mut items, mut cursor, mut seen) = (Vec::new(), None, HashSet::new());
        for _ in 0..MAX_PAGES {
            let params =
                crate::page_params(cursor.take()).map_err(|error| self.app_error(&error, &method))?;
            let page = self.result(self.own_call(method.clone(), params)).await?;
            let page = Object::of(&page);
            let listed = page.as_ref().and_then(|page| page.json(member)).and_then(|list| list.elements());
            let Some(listed) = listed else {
                let what = format!("The server's answer to {method} has no array {member:?}");
                return Err(self.app_error(&Error::new(Symbol::Unavailable, what), &method));
            };
            items.extend(listed);
            let next = page.and_then(|page| page.str("nextCursor").map(|cursor| cursor.into_owned()));
            match next {
                None => return Ok(items),
                Some(next) if !seen.insert(next.clone()) => break,
                next => cursor = next,
            }
        }
        let what = format!("The server's list ({method}) does not come to an end");
        Err(self.app_error(&Error::new(Symbol::Unavailable, what), &method))
    }
}

//! The attribute macros of Tidegate: [`macro@tool`], [`macro@prompt`] and [`macro@resource`] make what a server offers out
//! of plain functions.
//!
//! Each turns a function into one of the same name and visibility that makes a [`Tool`], [`Prompt`], [`Resource`] or
//! [`ResourceTemplate`]; what an attribute cannot say, the builder can: `add().icon(…)`. They are re-exported by the
//! `tidegate` crate, which is the only dependency their users need. A crate that takes `tidegate-server` and this one
//! instead can use them all the same, and so can one that calls either by another name: the manifest says which it is.
//! Where it does not, such as in a macro of yours, the option `crate = path::to::tidegate` does.
//!
//! ```
//! use tidegate::{Server, tool};
//!
//! /// Adds two numbers
//! #[tool(read_only)]
//! async fn add(
//!     /// The first number
//!     a: f64,
//!     /// The second number
//!     #[default = 1.0]
//!     b: f64,
//! ) -> String {
//!     (a + b).to_string()
//! }
//!
//! let server = Server::new("calculator", "1.0.0").tool(add()).build();
//! ```
//!
//! # Parameters
//!
//! What holds for the parameters of all three:
//!
//! - A parameter of type `Cx` or `&Cx`, wherever it stands, gets the context of the call.
//! - A parameter marked `#[state]` is not the caller's: the function that makes the tool takes it, and each call gets a
//!   clone. An `Arc` is a good choice.
//! - All others are given by the caller, under their names. `Option<T>` may be left out, and so may those with a default:
//!   `#[default = expression]`, `#[default(expression)]`, or `#[default]` for the default of the type.
//!
//! The function as it was written is hidden inside the new one. Logic that is to be called or tested by itself belongs in
//! a function of its own.
//!
//! [`Tool`]: https://docs.rs/tidegate/latest/tidegate/struct.Tool.html
//! [`Prompt`]: https://docs.rs/tidegate/latest/tidegate/struct.Prompt.html
//! [`Resource`]: https://docs.rs/tidegate/latest/tidegate/struct.Resource.html
//! [`ResourceTemplate`]: https://docs.rs/tidegate/latest/tidegate/struct.ResourceTemplate.html

mod attrs;
mod function;
mod params;
mod prompt;
mod resource;
mod root;
mod tool;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::Result;

use function::Function;

/// Makes a tool of a function.
///
/// The parameters are the tool's arguments: their types give the input schema, their doc comments its descriptions, and
/// what is not among them is refused. The function's doc comment is the tool's description. The function is `async` or
/// not, and returns what [`Tool::handler`] may (text, content, nothing, a `ToolResult`), any type that is `Serialize` and
/// `JsonSchema`, or a `Result` of those. A type of your own is told as structured content, and its schema is the tool's output schema.
///
/// ```
/// use std::sync::Arc;
/// use tidegate::{Cx, Server, ToolError, schemars, serde, tool};
///
/// struct Atlas(Vec<String>);
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// # #[serde(crate = "tidegate::serde")]
/// # #[schemars(crate = "tidegate::schemars")]
/// struct Cities {
///     names: Vec<String>,
/// }
///
/// /// Finds cities by the start of their names
/// #[tool(title = "Find cities", read_only, open_world = false, timeout = "10s")]
/// async fn find_cities(
///     #[state] atlas: Arc<Atlas>,
///     cx: Cx,
///     /// How the name starts
///     start: String,
///     /// How many to return
///     #[default = 10]
///     #[schemars(range(min = 1, max = 100))]
///     limit: usize,
///     /// Where to look; everywhere unless given
///     #[header = "Region"]
///     region: Option<String>,
/// ) -> Result<Cities, ToolError> {
///     cx.info("looking");
///     if region.is_some_and(|region| region != "eu") {
///         return Err("only \"eu\" is known".into());
///     }
///     let names = atlas.0.iter().filter(|name| name.starts_with(&start)).take(limit).cloned().collect();
///     Ok(Cities { names })
/// }
///
/// let atlas = Arc::new(Atlas(vec!["Bergen".into(), "Bremen".into()]));
/// let server = Server::new("geography", "1.0.0").tool(find_cities(atlas)).build();
/// ```
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `name = "…"` | the tool's name | the function's |
/// | `title = "…"` | a name for people | none |
/// | `description = "…"` | what it does | the doc comment |
/// | `read_only`, `idempotent`, `destructive`, `open_world` | hints; also with `= true` or `= false` | none |
/// | `timeout = "30s"` | how long a call may take; also seconds, or an expression of type `Duration` | no limit |
/// | `task = "optional"` | whether it can (`"optional"`) or must (`"required"`) run as a task | `"forbidden"` |
/// | `asks_first` | asks its questions before it becomes a task, see `Tool::asks_first` | |
/// | `alias = "…"` | an older name; can be repeated | none |
/// | `header(parameter = "…")` | as `#[header = "…"]` on that parameter | none |
/// | `crate = …` | the path of the framework, if the manifest does not say it | `::tidegate` or `::tidegate_server` |
///
/// Texts can be any expression that gives one: `description = include_str!("search.md")`.
///
/// # Attributes of parameters
///
/// Besides those of all macros (see the [crate](crate#parameters)): `#[header = "Region"]` mirrors the argument into the
/// HTTP header `Mcp-Param-Region`; `#[serde(…)]` and `#[schemars(…)]` go to the generated struct, for instance
/// `#[serde(rename = "sortBy")]` and `#[schemars(range(min = 1))]`.
///
/// One parameter marked `#[args]` takes all arguments as a struct of your own, which then says by itself what it does
/// with unknown fields:
///
/// ```
/// use tidegate::{schemars, serde, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # #[schemars(crate = "tidegate::schemars")]
/// #[serde(deny_unknown_fields, crate = "tidegate::serde")]
/// struct Point {
///     x: i32,
///     y: i32,
/// }
///
/// /// The distance from the origin, squared
/// #[tool]
/// fn distance(#[args] Point { x, y }: Point) -> String {
///     (x * x + y * y).to_string()
/// }
/// # distance();
/// ```
///
/// [`Tool::handler`]: https://docs.rs/tidegate/latest/tidegate/struct.Tool.html#method.handler
#[proc_macro_attribute]
pub fn tool(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(options, item, tool::expand, "Tool")
}

/// Makes a prompt of a function.
///
/// The parameters are the prompt's arguments. On the wire these are texts, so their types are whatever implements
/// `FromStr`; a text that does not parse is refused before the function runs. Doc comments are descriptions, as for
/// [`macro@tool`]. The function returns messages, one message, a text for the user to say, a `PromptResult`, or a `Result`
/// of those (a type that is called `Result`) whose error can become a `ToolError`.
///
/// ```
/// use tidegate::{Completing, Cx, PromptMessage, Server, prompt};
///
/// async fn languages(typed: Completing, _cx: Cx) -> Vec<String> {
///     typed.filter(["Python", "Rust"])
/// }
///
/// /// Asks for a review of some code
/// #[prompt(title = "Review")]
/// async fn review(
///     /// The code
///     code: String,
///     #[complete = languages] language: Option<String>,
///     #[complete = ["kind", "strict"]]
///     #[default = "kind"]
///     tone: String,
///     #[default = 3] remarks: u8,
/// ) -> Vec<PromptMessage> {
///     let language = language.unwrap_or_else(|| "any language".into());
///     vec![
///         PromptMessage::assistant(format!("I review {language}, and I am {tone}.")),
///         PromptMessage::user(format!("Give me {remarks} remarks on this: {code}")),
///     ]
/// }
///
/// let server = Server::new("reviews", "1.0.0").prompt(review()).build();
/// ```
///
/// Options: `name`, `title`, `description` and `crate`, as for [`macro@tool`].
///
/// Attributes of parameters, besides those of all macros (see the [crate](crate#parameters)): `#[complete = …]` suggests
/// values while they are typed. It takes what `Argument::complete` takes, or an array of texts.
#[proc_macro_attribute]
pub fn prompt(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(options, item, prompt::expand, "Prompt")
}

/// Makes a resource, or a resource template, of a function that reads it.
///
/// A URI without variables makes a `Resource`. A URI template (RFC 6570) makes a `ResourceTemplate`, and its variables go
/// to the parameters of the same names: to any type that implements `FromStr`, to an `Option` of one if the variable may
/// be missing, to a `Vec` of one for exploded variables (`{/path*}`). A URI whose variables do not parse is answered with
/// "resource not found". A parameter of type `Vars` gets all variables and the URI itself.
///
/// The function returns contents, a text, or a `Result` of those (a type that is called `Result`) whose error can become
/// a `ToolError`.
///
/// ```
/// use tidegate::{Server, ToolError, Vars, resource};
///
/// /// The time of day
/// #[resource(uri = "clock://now", mime_type = "text/plain")]
/// async fn now() -> String {
///     "noon".into()
/// }
///
/// /// A memo by its number
/// #[resource(uri = "memo://{id}{?lang}", title = "Memo", mime_type = "text/markdown")]
/// async fn memo(
///     #[complete = ["1", "2"]] id: u32,
///     #[default = "en"] lang: String,
/// ) -> Result<String, ToolError> {
///     Ok(format!("# Memo {id} ({lang})"))
/// }
///
/// #[resource(uri = "file:///{+dir}/list{/names*}")]
/// fn files(names: Vec<String>, vars: Vars) -> String {
///     format!("{names:?} of {} in {}", vars.get("dir").unwrap_or_default(), vars.uri())
/// }
///
/// let server = Server::new("memos", "1.0.0")
///     .resource(now())
///     .resource_template(memo())
///     .resource_template(files())
///     .build();
/// ```
///
/// Values are percent-decoded: `%2F` has become `/`, and `..` is possible. Check them before using them as paths.
///
/// Options: `uri` (required), `name`, `title`, `description`, `mime_type` and `crate`. Name and description come from the function
/// and its doc comment unless given.
///
/// Attributes of parameters are those of [`macro@prompt`].
#[proc_macro_attribute]
pub fn resource(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let made = match options.to_string().contains('{') {
        true => "ResourceTemplate",
        false => "Resource",
    };
    expand(options, item, resource::expand, made)
}

/// Expands an attribute. When that fails, a function that only claims to return what is `made` takes the place, so that
/// one mistake is one error.
fn expand(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
    expand: fn(TokenStream, Function) -> Result<TokenStream>,
    made: &str,
) -> proc_macro::TokenStream {
    let function = match syn::parse::<Function>(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            // With the item as it is, so that the compiler has its say too.
            let item = TokenStream::from(item);
            let error = error.into_compile_error();
            return quote!(#error #item).into();
        }
    };
    let (root, made) = (function.root(), Ident::new(made, Span::call_site()));
    let stub = function.stub(quote!(#root::#made));
    let expanded = expand(options.into(), function).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #stub)
    });
    expanded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of options, a function, and a part of the sentence that refuses them.
    pub(crate) fn check_refusals(
        expand: fn(TokenStream, Function) -> Result<TokenStream>,
        cases: &[(&str, &str, &str)],
    ) {
        for (options, item, expected) in cases {
            let options = options.parse().expect("options");
            let expanded = syn::parse_str::<Function>(item).and_then(|function| expand(options, function));
            let error = expanded.err().unwrap_or_else(|| panic!("{item} must be refused")).to_string();
            assert!(error.contains(expected), "{item}: {error:?} lacks {expected:?}");
        }
    }
}

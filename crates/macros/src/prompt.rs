//! `#[prompt]`: a function becomes a prompt, its parameters the prompt's arguments.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Result;

use crate::attrs::{self, Attributes};
use crate::function::{Function, at};
use crate::params::{Allowed, Param, Role};

const PARAMS: Allowed =
    Allowed { macro_name: "prompt", attributes: &["default", "complete", "state"], vars: false };

pub(crate) fn expand(options: TokenStream, mut function: Function) -> Result<TokenStream> {
    let mut options = Attributes::parse("prompt", &["name", "title", "description", "crate"], options)?;
    let root = function.take_root(&mut options)?;
    let name = function.name_or(&mut options)?;
    let described = function.described(&mut options)?;
    let params = function.take_params(&PARAMS)?;

    let arguments =
        params.iter().filter(|param| param.role == Role::Argument).map(|param| argument(&root, param));
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    let call = function.call(&params, value);
    let input = if arguments.is_empty() { quote!(_) } else { quote!(__args) };
    let outcome = function.outcome(call);
    let handler =
        function.handler(&params, quote!(#input: #root::PromptArgs,), quote!(async move { #outcome }));
    let handle = quote_spanned!(function.result_span()=> .handler);
    let making = quote!(#root::Prompt::new(#name) #described #(.argument(#arguments))* #handle(#handler));
    let items = if arguments.is_empty() { TokenStream::new() } else { parse(&root) };
    Ok(function.replaced(&params, quote!(#root::Prompt), items, making))
}

/// The argument as it is declared.
fn argument(root: &TokenStream, param: &Param) -> Result<TokenStream> {
    let name = param.name();
    let description = attrs::docs(&param.docs)?.map(|text| quote!(.description(#text)));
    let required = (param.optional().is_none() && param.default.is_none()).then(|| quote!(.required()));
    let complete = param.completer(root).map(|complete| quote!(.complete(#complete)));
    Ok(quote!(#root::Argument::new(#name) #description #required #complete))
}

/// The argument as the function takes it. What is required is there: the server saw to that.
fn value(param: &Param) -> TokenStream {
    let name = param.name();
    let optional = param.optional();
    let ty = optional.unwrap_or(&param.ty);
    // Spanned as a whole, so that a type that cannot be parsed is told on the type.
    let parse = |text: TokenStream| quote_spanned!(at(ty)=> __parse::<#ty>(#name, #text)?);
    let absent = match param.default_value() {
        Some(default) => default,
        None if optional.is_some() => quote!(::core::option::Option::None),
        None => return parse(quote!(&__args[#name])),
    };
    let given = parse(quote!(__text));
    let given = if optional.is_some() { quote!(::core::option::Option::Some(#given)) } else { given };
    quote! {
        match __args.get(#name) {
            ::core::option::Option::Some(__text) => #given,
            ::core::option::Option::None => #absent,
        }
    }
}

/// Arguments are texts on the wire, whatever they are in Rust.
fn parse(root: &TokenStream) -> TokenStream {
    quote! {
        fn __parse<T>(name: &str, text: &str) -> ::core::result::Result<T, #root::ToolError>
        where
            T: ::core::str::FromStr,
            <T as ::core::str::FromStr>::Err: ::core::fmt::Display,
        {
            text.parse::<T>().map_err(|error| {
                let what = ::core::format_args!("argument {name:?}: {error}");
                ::core::convert::From::from(#root::Error::invalid_params(what))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check_refusals;

    #[test]
    fn what_is_wrong_is_told() {
        check_refusals(
            super::expand,
            &[
                (
                    "",
                    "async fn f(#[header = \"X\"] a: String) {}",
                    "use one of #[default], #[complete], #[state]",
                ),
                (
                    "",
                    "fn f(#[complete] a: String) {}",
                    "what completes it? Write #[complete = [\"one\", \"two\"]]",
                ),
                ("", "fn f(#[complete = x] #[complete = y] a: String) {}", "given twice"),
                ("", "fn f(#[complete = x] cx: Cx) {}", "only single arguments of #[prompt]"),
                (
                    "read_only",
                    "fn f() {}",
                    "#[prompt] has no option `read_only`: it knows name, title, description, crate",
                ),
            ],
        );
    }
}

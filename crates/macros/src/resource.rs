//! `#[resource]`: a function becomes the reader of a resource, or of a family of them that a URI template describes.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Error, LitStr, Result, Type};

use crate::attrs::Attributes;
use crate::function::{Function, at};
use crate::params::{Allowed, Param, Role};

const PARAMS: Allowed =
    Allowed { macro_name: "resource", attributes: &["default", "complete", "state"], vars: true };

pub(crate) fn expand(options: TokenStream, mut function: Function) -> Result<TokenStream> {
    let mut options = Attributes::parse(
        "resource",
        &["uri", "name", "title", "description", "mime_type", "crate"],
        options,
    )?;
    let root = function.take_root(&mut options)?;
    let Some(uri) = options.literal("uri")? else {
        return Err(options.lacks("needs to know where it is: add `uri = \"scheme://…\"`"));
    };
    let name = function.name_or(&mut options)?;
    let described = function.described(&mut options)?;
    let mime_type = options.text("mime_type")?.map(|mime_type| quote!(.mime_type(#mime_type)));
    let params = function.take_params(&PARAMS)?;

    let variables = variables(&uri)?;
    bind(&uri, &variables, &params)?;
    let is_template = !variables.is_empty();
    let complete = params.iter().filter_map(|param| {
        let (name, complete) = (param.name(), param.completer(&root)?);
        Some(quote!(.complete(#name, #complete)))
    });

    let call = function.call(&params, |param| match param.role {
        Role::Vars => quote!(::core::clone::Clone::clone(&__vars)),
        _ => value(param),
    });
    let outcome = function.outcome(call);
    let binds = params.iter().any(|param| param.role == Role::Argument);
    let takes = binds || params.iter().any(|param| param.role == Role::Vars);
    let inputs = match (is_template, takes) {
        (true, true) => quote!(__vars: #root::Vars,),
        (true, false) => quote!(_: #root::Vars,),
        (false, _) => TokenStream::new(),
    };
    let handler = function.handler(&params, inputs, quote!(async move { #outcome }));
    let read = quote_spanned!(function.result_span()=> .reader);
    let made = if is_template { quote!(#root::ResourceTemplate) } else { quote!(#root::Resource) };
    let making = quote!(#made::new(#uri, #name) #described #mime_type #(#complete)* #read(#handler));
    let items = if binds { parse(&root) } else { TokenStream::new() };
    Ok(function.replaced(&params, made, items, making))
}

/// The names of the variables of a URI template (RFC 6570), each once; none for a plain URI. Only what is needed to
/// bind them is checked here, the rest when the server is built.
fn variables(uri: &LitStr) -> Result<Vec<String>> {
    let wrong = |message: &str| Err(Error::new_spanned(uri, message));
    let text = uri.value();
    if !text.split(['{', '/']).next().is_some_and(|start| start.contains(':')) {
        return wrong("a URI starts with a scheme: \"memo://…\"");
    }
    let mut names = Vec::new();
    let mut rest = text.as_str();
    while let Some(brace) = rest.find(['{', '}']) {
        if rest[brace..].starts_with('}') {
            return wrong("`}` closes nothing: write %7D for the character itself");
        }
        rest = &rest[brace + 1..];
        let Some(end) = rest.find('}') else {
            return wrong("`{` is not closed: write %7B for the character itself");
        };
        let list = rest[..end].trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        for variable in list.split(',') {
            let name = variable.trim_end_matches('*').split(':').next().unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.%".contains(&b)) {
                return wrong(&format!("`{{{list}}}` names no variable: write `{{id}}`"));
            }
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        rest = &rest[end + 1..];
    }
    Ok(names)
}

/// Checks that variables and parameters belong to each other.
fn bind(uri: &LitStr, variables: &[String], params: &[Param]) -> Result<()> {
    for param in params {
        let name = param.name();
        if param.role == Role::Argument && !variables.contains(&name) {
            let message =
                format!("the URI has no variable `{name}`: put `{{{name}}}` into it, or mark it #[state]");
            return Err(Error::new_spanned(&param.ident, message));
        }
        if param.several().is_some() && param.default.is_some() {
            let message = "a `Vec` of nothing is empty: take the default away, and look whether it is";
            return Err(Error::new_spanned(&param.ident, message));
        }
        if param.role == Role::Vars && variables.is_empty() {
            return Err(Error::new_spanned(&param.ty, "the URI has no variables: put `{id}` into it"));
        }
    }
    let has = |name: &String| params.iter().any(|p| p.role == Role::Vars || p.name() == *name);
    match variables.iter().find(|name| !has(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!(
                "nobody takes the variable `{name}`: add a parameter `{name}: String`, or `vars: Vars`"
            );
            Err(Error::new_spanned(uri, message))
        }
    }
}

/// The variable as the function takes it.
fn value(param: &Param) -> TokenStream {
    let (name, ty) = (param.name(), &param.ty);
    let one = |ty: &Type| {
        let one = quote_spanned!(at(ty)=> __one::<#ty>);
        quote!(#one(&__vars, #name)?)
    };
    match (param.several(), param.optional(), param.default_value()) {
        (Some(part), ..) => {
            let all = quote_spanned!(at(part)=> __all::<#part>);
            quote!(#all(&__vars, #name)?)
        }
        (None, Some(inner), None) => one(inner),
        (None, Some(inner), Some(default)) => {
            let given = one(inner);
            quote!(match #given { ::core::option::Option::None => #default, __given => __given })
        }
        (None, None, default) => {
            let given = one(ty);
            let absent =
                default.unwrap_or_else(|| quote!(return ::core::result::Result::Err(__nothing(&__vars))));
            quote! {
                match #given {
                    ::core::option::Option::Some(__given) => __given,
                    ::core::option::Option::None => #absent,
                }
            }
        }
    }
}

/// Variables are texts in a URI, whatever they are in Rust. A URI whose parts do not read is the URI of nothing.
fn parse(root: &TokenStream) -> TokenStream {
    quote! {
        #[allow(dead_code)]
        fn __nothing(vars: &#root::Vars) -> #root::ToolError {
            ::core::convert::From::from(#root::Error::resource_not_found(vars.uri()))
        }
        #[allow(dead_code)]
        fn __one<T: ::core::str::FromStr>(
            vars: &#root::Vars,
            name: &str,
        ) -> ::core::result::Result<::core::option::Option<T>, #root::ToolError> {
            vars.get(name).map(|text| text.parse::<T>().map_err(|_| __nothing(vars))).transpose()
        }
        #[allow(dead_code)]
        fn __all<T: ::core::str::FromStr>(
            vars: &#root::Vars,
            name: &str,
        ) -> ::core::result::Result<::std::vec::Vec<T>, #root::ToolError> {
            vars.all(name).map(|text| text.parse::<T>().map_err(|_| __nothing(vars))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::check_refusals;

    #[test]
    fn what_is_wrong_is_told() {
        check_refusals(
            expand,
            &[
                ("", "fn f() {}", "#[resource] needs to know where it is: add `uri = \"scheme://…\"`"),
                ("uri = URI", "fn f() {}", "`uri` is a literal text"),
                ("uri = \"memo/1\"", "fn f() {}", "a URI starts with a scheme"),
                ("uri = \"m:{a\"", "fn f() {}", "`{` is not closed"),
                ("uri = \"m:a}\"", "fn f() {}", "`}` closes nothing"),
                ("uri = \"m:{}\"", "fn f() {}", "names no variable"),
                ("uri = \"m:{a b}\"", "fn f() {}", "names no variable"),
                (
                    "uri = \"m:{a}\"",
                    "fn f() {}",
                    "nobody takes the variable `a`: add a parameter `a: String`",
                ),
                (
                    "uri = \"m:{a}\"",
                    "fn f(a: u8, b: u8) {}",
                    "the URI has no variable `b`: put `{b}` into it",
                ),
                ("uri = \"m:a\"", "fn f(vars: Vars) {}", "the URI has no variables"),
                ("uri = \"m:{a}\"", "fn f(v: Vars, w: Vars) {}", "one parameter of this kind is enough"),
                ("uri = \"m:{a*}\"", "fn f(#[default] a: Vec<u8>) {}", "take the default away"),
                ("uri = \"m:{a}\"", "fn f(#[args] a: String) {}", "#[args] means nothing"),
            ],
        );
    }

    #[test]
    fn variables_of_every_operator() {
        let uri = |text: &str| variables(&LitStr::new(text, proc_macro2::Span::call_site())).unwrap();
        assert_eq!(
            uri("m:{a}{+a}{#b}{.c}{/d*}{;e:3}{?f,g_1}{&h.i}"),
            ["a", "b", "c", "d", "e", "f", "g_1", "h.i"]
        );
        assert!(uri("m:a").is_empty());
    }
}

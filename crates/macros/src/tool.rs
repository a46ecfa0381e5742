//! `#[tool]`: a function becomes a tool, its parameters the tool's arguments.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Error, LitStr, Meta, Result};

use crate::attrs::{self, Attributes};
use crate::function::Function;
use crate::params::{Allowed, Param, Role};

const OPTIONS: [&str; 13] = [
    "name",
    "title",
    "description",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "task",
    "asks_first",
    "timeout",
    "alias",
    "header",
    "crate",
];

const PARAMS: Allowed = Allowed {
    macro_name: "tool",
    attributes: &["default", "header", "args", "state", "serde", "schemars"],
    vars: false,
};

pub(crate) fn expand(options: TokenStream, mut function: Function) -> Result<TokenStream> {
    let mut options = Attributes::parse("tool", &OPTIONS, options)?;
    let root = function.take_root(&mut options)?;
    let name = function.name_or(&mut options)?;
    let described = function.described(&mut options)?;
    let behaviour = behaviour(&root, &mut options)?;
    let mut params = function.take_params(&PARAMS)?;
    headers(&mut options, &mut params)?;

    let (items, arguments) = arguments(&root, &params)?;
    let call = function.call(&params, |param| match (param.role, &param.ident) {
        (Role::Argument, Some(field)) => quote!(__args.#field),
        _ => quote!(__args),
    });
    // The function's own future, unless it needs somebody to hold the context that it borrows.
    let borrows = params.iter().any(|param| param.role == Role::Context { by_ref: true });
    let future = match function.is_async() && !borrows {
        _ if !function.returns_tool_result() => {
            let awaited = function.awaited(call);
            let converted = quote_spanned! {function.result_span()=>
                (&&&#root::returned::tag(&__value)).kind().convert(__value)
            };
            quote!(async move {
                #[allow(unused_imports)]
                use #root::returned::{AsItIs as _, StructuredOrFailure as _, StructuredValue as _};
                let __value = #awaited;
                #converted
            })
        }
        true => call,
        false => {
            let awaited = function.awaited(call);
            quote!(async move { #awaited })
        }
    };
    let handler = function.handler(&params, arguments, future);
    // A result that is no result of a tool is told where it is declared.
    let handle = quote_spanned!(function.result_span()=> .handler);
    let making = quote!(#root::Tool::new(#name) #described #behaviour #handle(#handler));
    Ok(function.replaced(&params, quote!(#root::Tool), items, making))
}

/// The options about how the tool behaves, as calls of the builder.
fn behaviour(root: &TokenStream, options: &mut Attributes) -> Result<TokenStream> {
    // Absent and false mean the same for these two.
    let read_only = (options.flag("read_only")? == Some(true)).then(|| quote!(.read_only()));
    let idempotent = (options.flag("idempotent")? == Some(true)).then(|| quote!(.idempotent()));
    let destructive = options.flag("destructive")?.map(|value| quote!(.destructive(#value)));
    let open_world = options.flag("open_world")?.map(|value| quote!(.open_world(#value)));
    let timeout = options.duration("timeout")?.map(|timeout| quote!(.timeout(#timeout)));
    let mut calls = quote!(#read_only #idempotent #destructive #open_world #timeout);

    let task = options.literal("task")?;
    if let Some(task) = &task {
        let support = match task.value().as_str() {
            "optional" => quote!(Optional),
            "required" => quote!(Required),
            "forbidden" => quote!(Forbidden),
            _ => {
                let message = "`task` is \"optional\", \"required\" or \"forbidden\"";
                return Err(Error::new_spanned(task, message));
            }
        };
        calls.extend(quote!(.task(#root::TaskSupport::#support)));
    }
    if options.flag("asks_first")? == Some(true) {
        if task.is_none() {
            let message =
                "`asks_first` is for tools that run as tasks: add `task = \"optional\"` or \"required\"";
            return Err(options.lacks(message));
        }
        calls.extend(quote!(.asks_first()));
    }
    while let Some(alias) = options.text("alias")? {
        calls.extend(quote!(.alias(#alias)));
    }
    Ok(calls)
}

/// Gives the headers of the `header(…)` option to their parameters, and checks all of them.
fn headers(options: &mut Attributes, params: &mut [Param]) -> Result<()> {
    for (path, header) in options.pairs("header")? {
        let named = params.iter_mut().find(|p| p.role == Role::Argument && path.is_ident(&p.name()));
        let Some(param) = named else {
            let message = format!("there is no argument `{}` to put into a header", attrs::name_of(&path));
            return Err(Error::new_spanned(path, message));
        };
        if param.header.replace(header).is_some() {
            return Err(Error::new_spanned(path, "this argument has a header already: leave one out"));
        }
    }
    let mut taken: Vec<String> = Vec::new();
    for header in params.iter().filter_map(|param| param.header.as_ref()) {
        let name = header.value().to_ascii_lowercase();
        // RFC 9110 section 5.6.2: `tchar`.
        if name.is_empty()
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        {
            let message = "this is no header name: use letters, digits and dashes, as in \"Region\"";
            return Err(Error::new_spanned(header, message));
        }
        if taken.contains(&name) {
            return Err(Error::new_spanned(header, "another argument has this header: give it another name"));
        }
        taken.push(name);
    }
    Ok(())
}

/// The type that the arguments are read into, with what it needs, and the handler's parameter that takes it.
fn arguments(root: &TokenStream, params: &[Param]) -> Result<(TokenStream, TokenStream)> {
    let single = || params.iter().enumerate().filter(|(_, param)| param.role == Role::Argument);
    if let Some(whole) = params.iter().find(|param| param.role == Role::Whole) {
        if let Some((_, other)) = single().next() {
            let message = "#[args] takes all arguments: make this one a field of that struct";
            return Err(Error::new_spanned(&other.ident, message));
        }
        let ty = &whole.ty;
        return Ok((TokenStream::new(), quote!(__args: #ty,)));
    }
    if single().next().is_none() {
        return Ok((TokenStream::new(), quote!(_: (),)));
    }
    let mut fields = TokenStream::new();
    let mut defaults = TokenStream::new();
    for (i, param) in single() {
        refuse_flatten(param)?;
        let Param { ident, ty, docs, derive, .. } = param;
        let header =
            param.header.as_ref().map(|header| quote!(#[schemars(extend("x-mcp-header" = #header))]));
        let default = param.default_value().map(|value| {
            let name = format_ident!("__default_{i}");
            defaults.extend(quote!(fn #name() -> #ty { #value }));
            let path = LitStr::new(&name.to_string(), name.span());
            quote!(#[serde(default = #path)])
        });
        fields.extend(quote!(#(#docs)* #(#derive)* #header #default #ident: #ty,));
    }
    let (serde, schemars) = (quote!(#root::serde), quote!(#root::schemars));
    // The derives take paths as texts.
    let text = |path: &TokenStream| path.to_string().replace(' ', "");
    let (serde_path, schemars_path) = (text(&serde), text(&schemars));
    let items = quote! {
        #defaults
        #[derive(#serde::Deserialize, #schemars::JsonSchema)]
        #[serde(crate = #serde_path, deny_unknown_fields)]
        #[schemars(crate = #schemars_path)]
        struct __Args { #fields }
    };
    Ok((items, quote!(__args: __Args,)))
}

/// serde cannot flatten and refuse unknown fields at once.
fn refuse_flatten(param: &Param) -> Result<()> {
    for attr in &param.derive {
        let Meta::List(list) = &attr.meta else { continue };
        let mut found = Ok(());
        // What cannot be read here is for the derive to complain about.
        let _ = list.parse_nested_meta(|meta| {
            if meta.path.is_ident("flatten") {
                let message = "arguments cannot be flattened: take them all in one struct, marked #[args]";
                found = Err(Error::new_spanned(&meta.path, message));
            }
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        });
        found?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tests::check_refusals;

    #[test]
    fn what_is_wrong_is_told() {
        check_refusals(
            super::expand,
            &[
                ("nane = \"x\"", "fn f() {}", "#[tool] has no option `nane`"),
                ("task = \"maybe\"", "fn f() {}", "`task` is \"optional\", \"required\" or \"forbidden\""),
                ("asks_first", "fn f() {}", "#[tool] `asks_first` is for tools that run as tasks"),
                ("header(b = \"B\")", "fn f(a: u8) {}", "there is no argument `b` to put into a header"),
                ("header(a = \"A\")", "fn f(#[header = \"B\"] a: u8) {}", "has a header already"),
                ("", "fn f(#[header = \"My Region\"] a: u8) {}", "this is no header name"),
                ("", "fn f(#[header] a: u8) {}", "name the header: #[header = \"Region\"]"),
                (
                    "",
                    "fn f(#[header = \"A\"] a: u8, #[header = \"a\"] b: u8) {}",
                    "another argument has this header",
                ),
                ("", "fn f(#[defualt = 1] a: u8) {}", "#[defualt] means nothing on a parameter of #[tool]"),
                ("", "fn f(#[default = 1] #[default = 2] a: u8) {}", "given twice"),
                ("", "fn f(#[serde(flatten)] a: A) {}", "arguments cannot be flattened"),
                ("", "fn f(#[args] a: A, b: u8) {}", "#[args] takes all arguments"),
                ("", "fn f(#[args] a: A, #[args] b: B) {}", "one parameter of this kind is enough"),
                ("", "fn f(#[args] #[state] a: A) {}", "something else already"),
                ("", "fn f(#[args] #[default] a: A) {}", "only single arguments of #[tool]"),
                ("", "fn f(a: Cx, b: &Cx) {}", "one parameter of this kind is enough"),
                ("", "fn f(a: &str) {}", "take a `String`"),
                ("", "fn f(a: &u8) {}", "without `&`"),
                ("", "fn f(a: &[u8]) {}", "take a `Vec`"),
                ("", "fn f(#[state] a: &Db) {}", "take an `Arc` of it"),
                ("", "fn f(a: impl Send) {}", "name the type"),
                ("", "fn f((a, b): (u8, u8)) {}", "this parameter needs a name"),
                ("", "fn f(_: u8) {}", "this parameter needs a name"),
                ("", "fn f(&self) {}", "a parameter marked #[state]"),
                ("", "fn f<T>(a: T) {}", "nobody can choose type parameters"),
                ("", "unsafe fn f() {}", "take this keyword away"),
                ("", "const fn f() {}", "take `const` away"),
                ("", "extern \"C\" fn f() {}", "take `extern` away"),
                ("", "fn f();", "the function needs a body"),
                ("", "pub struct S;", "this attribute goes on a function"),
            ],
        );
    }
}

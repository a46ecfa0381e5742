//! The annotated function, and the function that takes its place.

use std::mem::discriminant;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, GenericArgument, PathArguments, Result, ReturnType, Safety, Signature, Token,
    Type, Visibility,
};

use crate::attrs::{self, Attributes};
use crate::params::{Allowed, Param, Role};
use crate::root;

/// A function as it was written. The body is passed on unread.
pub(crate) struct Function {
    attrs: Vec<Attribute>,
    vis: Visibility,
    sig: Signature,
    body: TokenStream,
    /// The path of the framework.
    root: TokenStream,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Function> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let is_function = input.peek(Token![fn])
            || input.peek(Token![async])
            || input.peek(Token![const])
            || input.peek(Token![unsafe])
            || input.peek(Token![extern]);
        if !is_function {
            return Err(input.error("this attribute goes on a function"));
        }
        let sig = input.parse()?;
        if !input.peek(syn::token::Brace) {
            return Err(input.error("the function needs a body: { … }"));
        }
        Ok(Function { attrs, vis, sig, body: input.parse()?, root: root::of_manifest() })
    }
}

/// Attributes that are about the item others see. The rest, such as lints and `#[instrument]`, is about the body.
const OUTSIDE: [&str; 4] = ["doc", "cfg", "deprecated", "must_use"];

impl Function {
    /// The path of the framework, under which the generated code finds everything.
    pub(crate) fn root(&self) -> &TokenStream {
        &self.root
    }

    /// Takes the `crate` option for the path of the framework, if it is there.
    pub(crate) fn take_root(&mut self, options: &mut Attributes) -> Result<TokenStream> {
        if let Some(path) = options.path("crate")? {
            self.root = path.into_token_stream();
        }
        Ok(self.root.clone())
    }

    /// The `name` option, or the function's name.
    pub(crate) fn name_or(&self, options: &mut Attributes) -> Result<TokenStream> {
        let own = self.sig.ident.unraw().to_string();
        Ok(options.text("name")?.map_or(quote!(#own), Expr::into_token_stream))
    }

    /// The `title` and `description` options as calls of the builder; the doc comment is the default of the latter.
    pub(crate) fn described(&self, options: &mut Attributes) -> Result<TokenStream> {
        let title = options.text("title")?.map(|title| quote!(.title(#title)));
        let description = match options.text("description")? {
            Some(text) => Some(text.into_token_stream()),
            None => attrs::docs(&self.attrs)?.map(String::into_token_stream),
        };
        let description = description.map(|text| quote!(.description(#text)));
        Ok(quote!(#title #description))
    }

    /// The parameters. Our attributes are taken off them; all that is wrong is told at once.
    pub(crate) fn take_params(&mut self, allowed: &Allowed) -> Result<Vec<Param>> {
        self.check(allowed.macro_name)?;
        let mut params: Vec<Param> = Vec::new();
        let mut wrong: Option<Error> = None;
        for arg in &mut self.sig.inputs {
            let read = Param::take(arg, allowed).and_then(|param| {
                let single = !matches!(param.role, Role::Argument | Role::State);
                let same = |other: &Param| discriminant(&other.role) == discriminant(&param.role);
                if single && params.iter().any(same) {
                    let message = "one parameter of this kind is enough: take one away";
                    return Err(Error::new_spanned(&arg, message));
                }
                Ok(param)
            });
            match (read, &mut wrong) {
                (Ok(param), _) => params.push(param),
                (Err(error), Some(errors)) => errors.combine(error),
                (Err(error), none) => *none = Some(error),
            }
        }
        match wrong {
            None => Ok(params),
            Some(errors) => Err(errors),
        }
    }

    fn check(&self, macro_name: &str) -> Result<()> {
        let refuse = |part: &dyn ToTokens, what: &str| {
            let message = format!("#[{macro_name}] goes on a plain `fn` or `async fn`: {what}");
            Err(Error::new_spanned(part.to_token_stream(), message))
        };
        let sig = &self.sig;
        match sig {
            _ if sig.constness.is_some() => refuse(&sig.constness, "take `const` away"),
            _ if !matches!(sig.safety, Safety::Default) => refuse(&sig.safety, "take this keyword away"),
            _ if sig.abi.is_some() => refuse(&sig.abi, "take `extern` away"),
            _ if sig.variadic.is_some() => refuse(&sig.variadic, "name all parameters"),
            _ if !sig.generics.params.is_empty() => {
                refuse(&sig.generics, "nobody can choose type parameters or lifetimes, so name the types")
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_async(&self) -> bool {
        self.sig.asyncness.is_some()
    }

    /// The call of the function, with each argument from where `argument` says.
    pub(crate) fn call(&self, params: &[Param], argument: impl Fn(&Param) -> TokenStream) -> TokenStream {
        let arguments = params.iter().map(|param| match (param.role, &param.ident) {
            (Role::Context { by_ref: true }, _) => quote!(&__cx),
            (Role::Context { by_ref: false }, _) => quote!(__cx),
            (Role::State, Some(state)) => quote!(#state),
            _ => argument(param),
        });
        let name = &self.sig.ident;
        quote!(#name(#(#arguments),*))
    }

    /// What the call comes to in the end.
    pub(crate) fn awaited(&self, call: TokenStream) -> TokenStream {
        if self.is_async() { quote!(#call.await) } else { call }
    }

    /// What the call comes to, as a `Result` with our error, whether the function can fail or not.
    pub(crate) fn outcome(&self, call: TokenStream) -> TokenStream {
        let (root, awaited) = (&self.root, self.awaited(call));
        if !self.is_fallible() {
            return quote!(::core::result::Result::<_, #root::ToolError>::Ok(#awaited));
        }
        let into =
            quote_spanned!(self.result_span()=> ::core::convert::Into::<#root::ToolError>::into(__error));
        quote!(#awaited.map_err(|__error| #into))
    }

    /// Whether the function can fail: its result is called `Result`.
    fn is_fallible(&self) -> bool {
        match &self.sig.output {
            ReturnType::Type(_, ty) => match &**ty {
                Type::Path(path) => {
                    path.path.segments.last().is_some_and(|segment| segment.ident == "Result")
                }
                _ => false,
            },
            ReturnType::Default => false,
        }
    }

    /// Whether the function's result is seen to be one of a tool. Of any other the compiler has to find out, which costs a future
    /// around the function's own and makes worse errors.
    pub(crate) fn returns_tool_result(&self) -> bool {
        match &self.sig.output {
            ReturnType::Type(_, ty) => is_tool_result(ty),
            ReturnType::Default => true,
        }
    }

    /// A handler: a closure that takes `inputs` and the context, and gives a future with the states at hand.
    pub(crate) fn handler(&self, params: &[Param], inputs: TokenStream, future: TokenStream) -> TokenStream {
        let root = &self.root;
        let states = params.iter().filter(|param| param.role == Role::State).filter_map(|p| p.ident.as_ref());
        let cx = match params.iter().any(|param| matches!(param.role, Role::Context { .. })) {
            true => quote!(__cx),
            false => quote!(_),
        };
        quote! {
            move |#inputs #cx: #root::Cx| {
                #(let #states = ::core::clone::Clone::clone(&#states);)*
                #future
            }
        }
    }

    /// The function of the same name that makes the thing. It takes the states, and holds `items` and the function as
    /// it was written.
    pub(crate) fn replaced(
        self,
        params: &[Param],
        made: TokenStream,
        items: TokenStream,
        making: TokenStream,
    ) -> TokenStream {
        let Function { attrs, vis, sig, body, root: _ } = self;
        let (outside, inside): (Vec<_>, Vec<_>) =
            attrs.into_iter().partition(|attr| OUTSIDE.iter().any(|name| attr.path().is_ident(name)));
        let name = &sig.ident;
        let states = params.iter().filter(|param| param.role == Role::State).map(|param| {
            let (ident, ty) = (&param.ident, &param.ty);
            quote!(#ident: #ty)
        });
        quote! {
            #(#outside)*
            #vis fn #name(#(#states),*) -> #made {
                #(#inside)*
                // Callers see named arguments, however many, and give them away.
                #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
                #sig #body
                #items
                #making
            }
        }
    }

    /// What takes the function's place when something is wrong with it, so that its callers are not errors too.
    pub(crate) fn stub(&self, made: TokenStream) -> TokenStream {
        let (vis, name) = (&self.vis, &self.sig.ident);
        let states = self.sig.inputs.iter().filter_map(|arg| match arg {
            syn::FnArg::Typed(typed) if typed.attrs.iter().any(|attr| attr.path().is_ident("state")) => {
                let ty = &typed.ty;
                Some(quote!(_: #ty))
            }
            _ => None,
        });
        quote! {
            #[allow(dead_code)]
            #vis fn #name(#(#states),*) -> #made {
                ::core::unreachable!()
            }
        }
    }

    /// Where errors about the result belong: on its type, else on the name.
    pub(crate) fn result_span(&self) -> Span {
        match &self.sig.output {
            ReturnType::Type(_, ty) => at(ty),
            ReturnType::Default => at(&self.sig.ident),
        }
    }
}

fn is_tool_result(ty: &Type) -> bool {
    let path = match ty {
        Type::Path(path) => path,
        Type::Tuple(tuple) => return tuple.elems.is_empty(),
        Type::Reference(_) | Type::ImplTrait(_) => return true,
        _ => return false,
    };
    let Some(last) = path.path.segments.last() else { return false };
    let first = match &last.arguments {
        PathArguments::AngleBracketed(given) => given.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }),
        _ => None,
    };
    match last.ident.to_string().as_str() {
        "String" | "ToolResult" | "Content" | "Structured" => true,
        "Result" | "Vec" => first.is_some_and(|inner| match last.ident == "Vec" {
            true => matches!(inner, Type::Path(path) if path.path.is_ident("Content")),
            false => is_tool_result(inner),
        }),
        _ => false,
    }
}

/// The span for generated code whose errors belong on something that was written. It has the place of the one and the
/// origin of the other, so that lints see that nobody wrote the code by hand.
pub(crate) fn at(written: &impl Spanned) -> Span {
    Span::call_site().located_at(written.span())
}

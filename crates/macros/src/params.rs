//! The parameters of an annotated function: what each is for, and what its attributes say about it.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{
    Attribute, Error, Expr, FnArg, GenericArgument, Lit, LitStr, Meta, Pat, PatType, PathArguments, Result,
    Type,
};

use crate::attrs::{self, literal};

/// What a parameter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The caller gives it.
    Argument,
    /// All that the caller gives, as one struct: `#[args]`.
    Whole,
    /// The context of the call, found by its type `Cx` or `&Cx`.
    Context { by_ref: bool },
    /// All variables of a resource template, found by their type `Vars`.
    Vars,
    /// Given when the server is put together and cloned for each call: `#[state]`.
    State,
}

/// One parameter.
pub(crate) struct Param {
    pub(crate) role: Role,
    /// Its name. Only arguments and states need one.
    pub(crate) ident: Option<Ident>,
    pub(crate) ty: Type,
    /// The doc comments, as attributes.
    pub(crate) docs: Vec<Attribute>,
    pub(crate) default: Option<Default>,
    pub(crate) header: Option<LitStr>,
    pub(crate) complete: Option<Expr>,
    /// Attributes for the derives of serde and schemars.
    pub(crate) derive: Vec<Attribute>,
}

/// What stands in for an argument that is not given.
pub(crate) enum Default {
    /// `#[default]`.
    OfType,
    /// `#[default = expression]` or `#[default(expression)]`.
    Value(Expr),
}

/// What the macros allow on parameters.
pub(crate) struct Allowed {
    pub(crate) macro_name: &'static str,
    /// The attributes that mean something.
    pub(crate) attributes: &'static [&'static str],
    /// Whether a parameter of type `Vars` is special.
    pub(crate) vars: bool,
}

/// Lints are the business of the function itself.
const LINTS: [&str; 5] = ["allow", "expect", "warn", "deny", "forbid"];

impl Param {
    /// Reads a parameter and takes our attributes off it.
    pub(crate) fn take(arg: &mut FnArg, allowed: &Allowed) -> Result<Param> {
        let macro_name = allowed.macro_name;
        let typed = match arg {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                let message = format!(
                    "#[{macro_name}] goes on a function without `self`: what it shares with others is a \
                     parameter marked #[state]"
                );
                return Err(Error::new_spanned(receiver, message));
            }
        };
        let mut param = Param {
            role: by_type(&typed.ty, allowed.vars),
            ident: ident(&typed.pat),
            ty: (*typed.ty).clone(),
            docs: Vec::new(),
            default: None,
            header: None,
            complete: None,
            derive: Vec::new(),
        };
        for attr in std::mem::take(&mut typed.attrs) {
            match LINTS.iter().any(|lint| attr.path().is_ident(lint)) {
                true => typed.attrs.push(attr),
                false => param.attribute(attr, allowed)?,
            }
        }
        param.check(typed, macro_name)?;
        Ok(param)
    }

    fn attribute(&mut self, attr: Attribute, allowed: &Allowed) -> Result<()> {
        let name = attrs::name_of(attr.path());
        match name.as_str() {
            "doc" => self.docs.push(attr),
            other if !allowed.attributes.contains(&other) => {
                let known: Vec<_> = allowed.attributes.iter().map(|name| format!("#[{name}]")).collect();
                let (macro_name, known) = (allowed.macro_name, known.join(", "));
                let message =
                    format!("#[{other}] means nothing on a parameter of #[{macro_name}]: use one of {known}");
                return Err(Error::new_spanned(attr, message));
            }
            "args" => self.mark(&attr, Role::Whole)?,
            "state" => self.mark(&attr, Role::State)?,
            "default" => {
                let value = match &attr.meta {
                    Meta::Path(_) => Default::OfType,
                    Meta::NameValue(meta) => Default::Value(meta.value.clone()),
                    Meta::List(meta) => Default::Value(meta.parse_args()?),
                };
                once(&mut self.default, value, &attr)?;
            }
            "complete" => {
                let value = match &attr.meta {
                    Meta::NameValue(meta) => meta.value.clone(),
                    Meta::List(meta) => meta.parse_args()?,
                    Meta::Path(_) => {
                        let message = "what completes it? Write #[complete = [\"one\", \"two\"]] or #[complete = function]";
                        return Err(Error::new_spanned(attr, message));
                    }
                };
                once(&mut self.complete, value, &attr)?;
            }
            "header" => {
                let name = match &attr.meta {
                    Meta::NameValue(meta) => match literal(&meta.value) {
                        Some(Lit::Str(name)) => Some(name.clone()),
                        _ => None,
                    },
                    Meta::List(meta) => meta.parse_args().ok(),
                    Meta::Path(_) => None,
                };
                let Some(name) = name else {
                    return Err(Error::new_spanned(attr, "name the header: #[header = \"Region\"]"));
                };
                once(&mut self.header, name, &attr)?;
            }
            // serde and schemars; there are no others.
            _ => self.derive.push(attr),
        }
        Ok(())
    }

    fn mark(&mut self, attr: &Attribute, role: Role) -> Result<()> {
        if self.role != Role::Argument {
            let message = "this parameter is something else already: take the attribute away";
            return Err(Error::new_spanned(attr, message));
        }
        self.role = role;
        Ok(())
    }

    fn check(&self, typed: &PatType, macro_name: &str) -> Result<()> {
        match (&self.role, bare(&typed.ty)) {
            (Role::Argument | Role::State, _) if self.ident.is_none() => {
                let message = "this parameter needs a name, as it is called by it";
                return Err(Error::new_spanned(&typed.pat, message));
            }
            (Role::State, Type::Reference(reference))
                if reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static") =>
            {
                let message = "the state outlives the call: take an `Arc` of it";
                return Err(Error::new_spanned(&typed.ty, message));
            }
            (Role::Argument | Role::Whole, Type::Reference(reference)) => {
                let message = match bare(&reference.elem) {
                    Type::Path(path) if path.path.is_ident("str") => "arguments are owned: take a `String`",
                    Type::Path(_) => "arguments are owned: take the type without `&`",
                    _ => "arguments are owned: take a `Vec`",
                };
                return Err(Error::new_spanned(&typed.ty, message));
            }
            (_, Type::ImplTrait(_)) => {
                let message = "name the type: there is nobody who could choose it";
                return Err(Error::new_spanned(&typed.ty, message));
            }
            _ => {}
        }
        if self.role == Role::Argument {
            return Ok(());
        }
        if self.default.is_some()
            || self.header.is_some()
            || self.complete.is_some()
            || !self.derive.is_empty()
        {
            let message = format!("only single arguments of #[{macro_name}] can have attributes like these");
            return Err(Error::new_spanned(&typed.pat, message));
        }
        Ok(())
    }

    /// The name by which callers give the argument.
    pub(crate) fn name(&self) -> String {
        self.ident.as_ref().map(|ident| ident.unraw().to_string()).unwrap_or_default()
    }

    /// `T` of `Option<T>`.
    pub(crate) fn optional(&self) -> Option<&Type> {
        inside(&self.ty, "Option")
    }

    /// `T` of `Vec<T>`.
    pub(crate) fn several(&self) -> Option<&Type> {
        inside(&self.ty, "Vec")
    }

    /// The default as an expression of the parameter's type.
    pub(crate) fn default_value(&self) -> Option<TokenStream> {
        match self.default.as_ref()? {
            Default::OfType => Some(quote!(::core::default::Default::default())),
            // `#[default = "x"] name: String` is what everybody writes first.
            Default::Value(value) if matches!(literal(value), Some(Lit::Str(_))) => {
                Some(quote!(::core::convert::Into::into(#value)))
            }
            Default::Value(value) => Some(quote!(#value)),
        }
    }

    /// The completer as `complete` takes it. An array stands for its members that start with what was typed.
    pub(crate) fn completer(&self, root: &TokenStream) -> Option<TokenStream> {
        let complete = self.complete.as_ref()?;
        Some(match complete {
            Expr::Array(_) => quote! {
                |__typed: #root::Completing, _: #root::Cx| async move { __typed.filter(#complete) }
            },
            function => quote!(#function),
        })
    }
}

/// Some types say what a parameter is for.
fn by_type(ty: &Type, vars: bool) -> Role {
    let is = |ty: &Type, name: &str| match bare(ty) {
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|s| s.ident == name && s.arguments.is_none())
        }
        _ => false,
    };
    match bare(ty) {
        Type::Reference(reference) if reference.mutability.is_none() && is(&reference.elem, "Cx") => {
            Role::Context { by_ref: true }
        }
        ty if is(ty, "Cx") => Role::Context { by_ref: false },
        ty if vars && is(ty, "Vars") => Role::Vars,
        _ => Role::Argument,
    }
}

/// The name that a pattern binds, if it is that simple.
fn ident(pat: &Pat) -> Option<Ident> {
    match pat {
        Pat::Ident(pat) if pat.subpat.is_none() && pat.by_ref.is_none() => Some(pat.ident.clone()),
        _ => None,
    }
}

/// The type without parentheses and the invisible groups that `macro_rules!` makes.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        other => other,
    }
}

fn inside<'a>(ty: &'a Type, wrapper: &str) -> Option<&'a Type> {
    let Type::Path(path) = bare(ty) else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == wrapper)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}

fn once<T>(slot: &mut Option<T>, value: T, attr: &Attribute) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new_spanned(attr, "this is given twice: leave one out")),
    }
}

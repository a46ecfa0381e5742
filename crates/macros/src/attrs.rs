//! What stands in an attribute: its options, and the texts of doc comments.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Path, Result, Token};

/// The options of one attribute, `name`, `name = value` or `name(…)`, taken out one by one.
pub(crate) struct Attributes {
    /// The attribute that they stand in, for messages.
    macro_name: &'static str,
    given: Vec<Meta>,
}

impl Attributes {
    /// Reads the options. Those that are not `known`, and those given twice, are refused.
    pub(crate) fn parse(macro_name: &'static str, known: &[&str], tokens: TokenStream) -> Result<Attributes> {
        let list = |input: ParseStream<'_>| {
            if input.peek(syn::Lit) {
                return Err(input.error(format_args!(
                    "options have names: write #[{macro_name}({} = …)]",
                    known.first().unwrap_or(&"name")
                )));
            }
            Punctuated::<Meta, Token![,]>::parse_terminated(input)
        };
        let given: Vec<Meta> = list.parse2(tokens)?.into_iter().collect();
        for (i, option) in given.iter().enumerate() {
            let name = name_of(option.path());
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                let message = format!("#[{macro_name}] has no option `{name}`: it knows {known}");
                return Err(Error::new_spanned(option.path(), message));
            }
            let again = given[..i].iter().any(|other| name_of(other.path()) == name);
            if again && name != "alias" {
                return Err(Error::new_spanned(option, format!("`{name}` is given twice: leave one out")));
            }
        }
        Ok(Attributes { macro_name, given })
    }

    fn take(&mut self, name: &str) -> Option<Meta> {
        let at = self.given.iter().position(|option| option.path().is_ident(name))?;
        Some(self.given.remove(at))
    }

    /// `name`, `name = true` or `name = false`.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>> {
        match self.take(name) {
            None => Ok(None),
            Some(Meta::Path(_)) => Ok(Some(true)),
            Some(Meta::NameValue(option)) => match literal(&option.value) {
                Some(Lit::Bool(value)) => Ok(Some(value.value)),
                _ => Err(Error::new_spanned(option.value, format!("`{name}` is true or false"))),
            },
            Some(option) => Err(Error::new_spanned(option, format!("write `{name}` or `{name} = false`"))),
        }
    }

    /// `name = value`.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<Expr>> {
        match self.take(name) {
            None => Ok(None),
            Some(Meta::NameValue(option)) => Ok(Some(option.value)),
            Some(option) => Err(Error::new_spanned(option, format!("`{name}` needs a value: {name} = …"))),
        }
    }

    /// `name = "text"`, or an expression that gives a text.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<Expr>> {
        let value = self.value(name)?;
        match value.as_ref().and_then(literal) {
            Some(Lit::Str(_)) | None => Ok(value),
            Some(other) => Err(Error::new_spanned(other, format!("`{name}` is a text: {name} = \"…\""))),
        }
    }

    /// `name = "text"`, which must be known when the macro runs.
    pub(crate) fn literal(&mut self, name: &str) -> Result<Option<LitStr>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        match literal(&value) {
            Some(Lit::Str(text)) => Ok(Some(text.clone())),
            _ => Err(Error::new_spanned(value, format!("`{name}` is a literal text: {name} = \"…\""))),
        }
    }

    /// `name = a::path`, also in quotes.
    pub(crate) fn path(&mut self, name: &str) -> Result<Option<Path>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        match (&value, literal(&value)) {
            (Expr::Path(path), _) => Ok(Some(path.path.clone())),
            (_, Some(Lit::Str(text))) => text.parse_with(Path::parse_mod_style).map(Some),
            _ => Err(Error::new_spanned(value, format!("`{name}` is a path: {name} = a::path"))),
        }
    }

    /// `name(parameter = "text", …)`.
    pub(crate) fn pairs(&mut self, name: &str) -> Result<Vec<(Path, LitStr)>> {
        let Some(option) = self.take(name) else { return Ok(Vec::new()) };
        let wrong = || format!("write `{name}(parameter = \"…\")`");
        let Meta::List(list) = &option else { return Err(Error::new_spanned(option, wrong())) };
        let mut pairs = Vec::new();
        for pair in list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
            let Meta::NameValue(pair) = pair else { return Err(Error::new_spanned(pair, wrong())) };
            match literal(&pair.value) {
                Some(Lit::Str(text)) => pairs.push((pair.path, text.clone())),
                _ => return Err(Error::new_spanned(pair.value, wrong())),
            }
        }
        Ok(pairs)
    }

    /// `timeout = "30s"`, whole or broken seconds, or an expression of type `Duration`.
    pub(crate) fn duration(&mut self, name: &str) -> Result<Option<TokenStream>> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let wrong =
            |what: &str| Error::new_spanned(&value, format!("{what}: write \"30s\", \"1m 30s\" or seconds"));
        let duration = match literal(&value) {
            None => return Ok(Some(quote!(#value))),
            Some(Lit::Str(text)) => {
                humantime::parse_duration(&text.value()).map_err(|error| wrong(&error.to_string()))?
            }
            Some(Lit::Int(seconds)) => std::time::Duration::from_secs(seconds.base10_parse()?),
            Some(Lit::Float(seconds)) => std::time::Duration::try_from_secs_f64(seconds.base10_parse()?)
                .map_err(|error| wrong(&error.to_string()))?,
            Some(_) => return Err(wrong("this is no duration")),
        };
        if duration.is_zero() {
            return Err(wrong("nothing finishes in no time"));
        }
        let (secs, nanos) = (duration.as_secs(), duration.subsec_nanos());
        Ok(Some(quote!(::core::time::Duration::new(#secs, #nanos))))
    }

    /// An error about what the options lack.
    pub(crate) fn lacks(&self, message: &str) -> Error {
        Error::new(Span::call_site(), format!("#[{}] {message}", self.macro_name))
    }
}

/// The name as it is written.
pub(crate) fn name_of(path: &Path) -> String {
    path.segments.iter().map(|s| s.ident.to_string()).collect::<Vec<_>>().join("::")
}

/// The literal that an expression is.
pub(crate) fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

/// The text of the doc comments, without the space that most lines start with. `None` if there is none.
pub(crate) fn docs(attrs: &[Attribute]) -> Result<Option<String>> {
    let mut text = String::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("doc")) {
        let Meta::NameValue(doc) = &attr.meta else { continue };
        let Some(Lit::Str(line)) = literal(&doc.value) else {
            let message =
                "this text cannot be read here: give it as `description = …`, or write it as a comment";
            return Err(Error::new(doc.value.span(), message));
        };
        for line in line.value().split('\n') {
            text.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
            text.push('\n');
        }
    }
    let text = text.trim_matches('\n');
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn options(tokens: TokenStream) -> Result<Attributes> {
        Attributes::parse("tool", &["name", "read_only", "timeout", "alias", "header", "crate"], tokens)
    }

    fn sentence<T>(result: Result<T>) -> String {
        result.err().expect("this must be refused").to_string()
    }

    #[test]
    fn options_are_taken_by_name() {
        let mut given =
            options(quote!(name = "x", read_only, alias = "a", alias = "b", header(p = "Region"))).unwrap();
        assert_eq!(given.flag("read_only").unwrap(), Some(true));
        assert_eq!(given.literal("name").unwrap().unwrap().value(), "x");
        assert!(given.literal("alias").unwrap().is_some());
        assert!(given.literal("alias").unwrap().is_some());
        assert!(given.literal("alias").unwrap().is_none());
        let pairs = given.pairs("header").unwrap();
        assert_eq!((name_of(&pairs[0].0), pairs[0].1.value()), ("p".into(), "Region".into()));
        assert_eq!(options(quote!(read_only = false)).unwrap().flag("read_only").unwrap(), Some(false));
    }

    #[test]
    fn wrong_options_are_refused_with_a_sentence() {
        for (error, expected) in [
            (sentence(options(quote!("x"))), "options have names: write #[tool(name = …)]"),
            (sentence(options(quote!(nane = "x"))), "#[tool] has no option `nane`: it knows name, read_only"),
            (sentence(options(quote!(name = "x", name = "y"))), "`name` is given twice"),
            (
                sentence(options(quote!(read_only = 1)).unwrap().flag("read_only")),
                "`read_only` is true or false",
            ),
            (sentence(options(quote!(name)).unwrap().text("name")), "`name` needs a value"),
            (sentence(options(quote!(name = 1)).unwrap().text("name")), "`name` is a text"),
            (sentence(options(quote!(name = NAME)).unwrap().literal("name")), "`name` is a literal text"),
            (sentence(options(quote!(crate = 1)).unwrap().path("crate")), "`crate` is a path"),
            (sentence(options(quote!(header = "x")).unwrap().pairs("header")), "write `header(parameter"),
            (sentence(options(quote!(timeout = "soon")).unwrap().duration("timeout")), "write \"30s\""),
            (sentence(options(quote!(timeout = 0)).unwrap().duration("timeout")), "no time"),
            (sentence(options(quote!(timeout = 'x')).unwrap().duration("timeout")), "no duration"),
        ] {
            assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        }
    }

    #[test]
    fn paths_are_given_bare_or_in_quotes() {
        for (given, expected) in [
            (quote!(crate = crate), "crate"),
            (quote!(crate = ::my::mcp), "::my::mcp"),
            (quote!(crate = "crate::mcp"), "crate::mcp"),
        ] {
            let path = options(given).unwrap().path("crate").unwrap().unwrap();
            assert_eq!(quote!(#path).to_string().replace(' ', ""), expected);
        }
    }

    #[test]
    fn durations() {
        for (value, expected) in [
            (quote!("1m 30s"), quote!(::core::time::Duration::new(90u64, 0u32))),
            (quote!(30), quote!(::core::time::Duration::new(30u64, 0u32))),
            (quote!(0.5), quote!(::core::time::Duration::new(0u64, 500000000u32))),
            (quote!(LIMIT), quote!(LIMIT)),
        ] {
            let duration = options(quote!(timeout = #value)).unwrap().duration("timeout").unwrap().unwrap();
            assert_eq!(duration.to_string(), expected.to_string());
        }
    }

    #[test]
    fn doc_comments_are_texts() {
        let item: syn::ItemFn = parse_quote! {
            /// Adds two numbers.
            ///
            ///   - indented
            #[allow(unused)]
            fn f() {}
        };
        assert_eq!(docs(&item.attrs).unwrap().unwrap(), "Adds two numbers.\n\n  - indented");
        assert_eq!(docs(&[]).unwrap(), None);
        let included: syn::ItemFn = parse_quote!(
            #[doc = include_str!("x.md")]
            fn f() {}
        );
        assert!(sentence(docs(&included.attrs)).contains("description ="));
    }
}

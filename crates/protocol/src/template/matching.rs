//! Finding the variables of a URI: the reverse of expanding.
//!
//! A template is compiled to a few steps, and a table of `steps × bytes` says from where the end can be reached.
//! It is filled from the end of the URI backwards with constant work per entry, so time is linear and no URI can make
//! it backtrack; the walk forward then takes the longest choice that reaches the end, so the outcome is always the
//! same.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::program::{Class, Program, Step};
use super::{Modifier, Part, Template, is_triplet};

/// URIs beyond this length match nothing.
const MAX_URI: usize = 64 * 1024;

impl Template {
    /// The variables of a URI that this template could have made, percent-decoded, in their order; `None` if it could
    /// not.
    ///
    /// - A variable of `{x}` and `{+x}` has at least one character; the other expressions may be missing as a whole,
    ///   and so may the later variables of `{x,y}`.
    /// - An exploded variable appears once per value. Named values (`;`, `?`, `&`) are taken in any order.
    /// - Where several readings are possible, earlier variables take as much as they can.
    /// - URIs written by hand often leave characters such as `:`, `@` or spaces bare. If no strict reading is found, a
    ///   variable of `{x}` matches everything but `/`, `?` and `#`.
    /// - The same variable twice must have the same value twice; `{x:1}` must be the start of `{x}`.
    ///
    /// Values are decoded, so `%2F` becomes `/`: who uses one as a path must check it like any other input.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        self.matches_within(uri, &mut MatchSteps::default())
    }

    /// The same within a number of steps, for whoever tries many templates: what would take more than is left matches
    /// nothing.
    pub fn matches_within(&self, uri: &str, steps: &mut MatchSteps) -> Option<Vec<(String, String)>> {
        // A long list of templates is searched by trying each: most differ in their first letters.
        match self.parts.first() {
            Some(Part::Literal(start)) if !start.contains('%') && !uri.starts_with(start.as_str()) => {
                return None;
            }
            _ if uri.len() > MAX_URI => return None,
            _ => {}
        }
        let uri = normalised(uri);
        // The table is filled twice if nothing is found the first time.
        if !steps.take(2 * self.program.steps.len() * (uri.len() + 1)) {
            return None;
        }
        let strict = Table::fill(&self.program, &uri, false).and_then(|table| table.walk());
        strict.or_else(|| Table::fill(&self.program, &uri, true).and_then(|table| table.walk()))
    }
}

/// How many steps of matching are left: entries of tables, which are as large as a template times a URI.
#[derive(Debug, Clone)]
pub struct MatchSteps(usize);

impl Default for MatchSteps {
    /// Some milliseconds and megabytes: enough for thousands of templates as people write them.
    fn default() -> MatchSteps {
        MatchSteps(1_000_000)
    }
}

impl MatchSteps {
    fn take(&mut self, steps: usize) -> bool {
        match self.0.checked_sub(steps) {
            Some(left) => self.0 = left,
            None => return false,
        }
        true
    }
}

/// For each step and each position: where the step leads if the end can be reached from there.
struct Table<'a> {
    program: &'a Program,
    uri: &'a str,
    loose: bool,
    to: Vec<u32>,
    /// For each `Named` step: where a value that starts here ends.
    ends: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl<'a> Table<'a> {
    /// The table, if the end can be reached from the start.
    fn fill(program: &'a Program, uri: &'a str, loose: bool) -> Option<Table<'a>> {
        let (bytes, steps) = (uri.as_bytes(), program.steps.len());
        let size = steps * (bytes.len() + 1);
        let mut table = Table { program, uri, loose, to: vec![NOWHERE; size], ends: vec![0; size] };
        for at in (0..=bytes.len()).rev() {
            for step in (0..steps).rev() {
                let to = table.entry(step, at);
                let index = table.index(step, at);
                table.to[index] = to;
            }
        }
        table.reaches(0, 0).then_some(table)
    }

    fn index(&self, step: usize, at: usize) -> usize {
        at * self.program.steps.len() + step
    }

    fn holds(&self, class: Class, at: usize) -> bool {
        at < self.uri.len() && class.holds(self.uri.as_bytes(), at, self.loose)
    }

    /// Whether the end can be reached from a step at a position.
    fn reaches(&self, step: usize, at: usize) -> bool {
        match self.program.steps.get(step) {
            None => at == self.uri.len(),
            // The entry of a run says how far it may go from here; one that must not be empty takes a byte first.
            Some(Step::Run { class, some: true, .. }) => {
                self.holds(*class, at) && self.to[self.index(step, at + 1)] != NOWHERE
            }
            Some(_) => self.to[self.index(step, at)] != NOWHERE,
        }
    }

    fn entry(&mut self, step: usize, at: usize) -> u32 {
        let (bytes, program) = (self.uri.as_bytes(), self.program);
        match &program.steps[step] {
            Step::Literal { text, next } => {
                let end = at + text.len();
                if bytes[at..].starts_with(text.as_bytes()) && self.reaches(*next, end) {
                    end as u32
                } else {
                    NOWHERE
                }
            }
            Step::Run { class, .. } => {
                let longer = if self.holds(*class, at) { self.to[self.index(step, at + 1)] } else { NOWHERE };
                match longer {
                    NOWHERE if is_boundary(bytes, at) && self.reaches(step + 1, at) => at as u32,
                    longer => longer,
                }
            }
            Step::Named { vars, class } => {
                let index = self.index(step, at);
                self.ends[index] =
                    if self.holds(*class, at) { self.ends[self.index(step, at + 1)] } else { at as u32 };
                let Some((_, name_end)) = program.name_at(vars, bytes, at) else { return NOWHERE };
                let end = match bytes.get(name_end) {
                    Some(b'=') => self.ends[self.index(step, name_end + 1)],
                    _ => name_end as u32,
                };
                if self.reaches(step + 1, end as usize) { end } else { NOWHERE }
            }
            Step::Either { other } => {
                if self.reaches(step + 1, at) {
                    step as u32 + 1
                } else if self.reaches(*other, at) {
                    *other as u32
                } else {
                    NOWHERE
                }
            }
        }
    }

    /// Follows the table from the start, and gives out what the variables took.
    fn walk(&self) -> Option<Vec<(String, String)>> {
        let mut taken = Vec::new();
        let (mut step, mut at) = (0, 0);
        while let Some(current) = self.program.steps.get(step) {
            let to = self.to[self.index(step, at)] as usize;
            step += 1;
            match current {
                Step::Literal { next, .. } => (step, at) = (*next, to),
                Step::Either { .. } => step = to,
                Step::Run { var, some, .. } => {
                    let end = if *some { self.to[self.index(step - 1, at + 1)] as usize } else { to };
                    taken.push((*var, decoded(&self.uri[at..end])));
                    at = end;
                }
                Step::Named { vars, .. } => {
                    let (var, name_end) = self.program.name_at(vars, self.uri.as_bytes(), at)?;
                    taken.push((var, decoded(self.uri[name_end..to].strip_prefix('=').unwrap_or_default())));
                    at = to;
                }
            }
        }
        self.agreed(taken)
    }

    /// Checks what was taken twice against each other, and keeps it once.
    fn agreed(&self, taken: Vec<(usize, String)>) -> Option<Vec<(String, String)>> {
        let var = |i: usize| &self.program.vars[i];
        let mut kept: Vec<(usize, String)> = Vec::with_capacity(taken.len());
        for (i, value) in taken {
            let one = var(i);
            let twin = kept.iter_mut().find(|(k, _)| {
                var(*k).name == one.name
                    && [one.modifier, var(*k).modifier].iter().all(|m| *m != Modifier::Explode)
            });
            match twin {
                None => kept.push((i, value)),
                // The same place cannot be filled twice, and two places must agree.
                Some((k, _)) if *k == i => return None,
                Some((k, known)) => match (var(*k).modifier, one.modifier) {
                    (Modifier::Prefix(n), Modifier::None) if starts(&value, known, n) => {
                        (*k, *known) = (i, value)
                    }
                    (Modifier::None, Modifier::Prefix(n)) if starts(known, &value, n) => {}
                    (Modifier::Prefix(_), Modifier::Prefix(_)) if value.starts_with(&**known) => {
                        *known = value
                    }
                    (Modifier::Prefix(_), Modifier::Prefix(_)) if known.starts_with(&value) => {}
                    (Modifier::None, Modifier::None) if *known == value => {}
                    _ => return None,
                },
            }
        }
        Some(kept.into_iter().map(|(i, value)| (var(i).name.clone(), value)).collect())
    }
}

/// Whether `start` is the first `n` characters of `whole`.
fn starts(whole: &str, start: &str, n: usize) -> bool {
    whole.chars().take(n).eq(start.chars())
}

/// Whether a variable may end here: not inside a percent-encoded byte.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    !(1..=2).any(|back| at >= back && at < bytes.len() && is_triplet(&bytes[at - back..]))
}

/// The URI in ASCII, with percent-encoded bytes spelled in upper case.
pub(super) fn normalised(uri: &str) -> Cow<'_, str> {
    if uri.is_ascii() && !uri.contains('%') {
        return Cow::Borrowed(uri);
    }
    let bytes = uri.as_bytes();
    let mut out = String::with_capacity(uri.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        if is_triplet(&bytes[at..]) {
            out.extend(bytes[at..at + 3].iter().map(|b| b.to_ascii_uppercase() as char));
            at += 3;
        } else if bytes[at].is_ascii() {
            out.push(bytes[at] as char);
            at += 1;
        } else {
            out.push_str(percent_encoding::percent_encode_byte(bytes[at]));
            at += 1;
        }
    }
    Cow::Owned(out)
}

/// Percent-decoded, unless that is not text.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variables as `name=value`, joined with spaces; `-` for no match.
    fn matched(template: &str, uri: &str) -> String {
        match Template::parse(template).unwrap().matches(uri) {
            None => "-".to_owned(),
            Some(vars) => vars.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn matching_takes_no_more_steps_than_there_are() {
        let wide: Template = (0..200).map(|n| format!("{{v{n}}}")).collect::<String>().parse().unwrap();
        assert!(wide.matches(&"x".repeat(60_000)).is_none(), "hundreds of megabytes of table");
        assert!(wide.matches(&"x".repeat(250)).is_some());
        let one: Template = "{a}".parse().unwrap();
        let mut steps = MatchSteps::default();
        let fits =
            (0..1_000).filter(|_| one.matches_within(&"x".repeat(1_000), &mut steps).is_some()).count();
        assert!((100..600).contains(&fits), "{fits}");
    }

    #[test]
    fn literals_and_simple_variables() {
        for (template, uri, want) in [
            ("config://app", "config://app", ""),
            ("config://app", "config://apple", "-"),
            ("users://{id}/profile", "users://42/profile", "id=42"),
            ("users://{id}/profile", "users://a%20b/profile", "id=a b"),
            ("users://{id}/profile", "users:///profile", "-"),
            ("users://{id}/profile", "users://a/b/profile", "-"),
            ("{a}-{b}", "x-y-z", "a=x-y b=z"),
            ("{a}{b}", "xyz", "a=xy b=z"),
            ("{x,y}", "1,2", "x=1 y=2"),
            ("{x,y}", "1", "x=1"),
            ("{x*}", "1,2,3", "x=1 x=2 x=3"),
            ("{x}", "1,2,3", "x=1,2,3"),
            ("note://{t}", "note://Hello world: 50%!", "t=Hello world: 50%!"),
            ("note://{t}", "note://a?b", "-"),
            ("note://{t}", "note://a#b", "-"),
            ("stadt://köln/{x}", "stadt://köln/dom", "x=dom"),
            ("stadt://köln/{x}", "stadt://k%c3%b6ln/dom", "x=dom"),
            ("s://{x}", "s://世界", "x=世界"),
            ("s://{x}", "s://%FF", "x=%FF"),
            ("{a}1{b}", "%41x", "-"),
            ("{a}1{b}", "%411x", "a=A b=x"),
        ] {
            assert_eq!(matched(template, uri), want, "{template} {uri}");
        }
    }

    #[test]
    fn reserved_and_fragment() {
        for (template, uri, want) in [
            ("file:///{+path}", "file:///a/b.txt?x=1#y", "path=a/b.txt?x=1#y"),
            ("file:///{+path}", "file:///", "-"),
            ("{+path}/here", "/foo/bar/here", "path=/foo/bar"),
            ("{+path}/{name}", "a/b/c", "path=a/b name=c"),
            ("x{#f}", "x#a/b", "f=a/b"),
            ("x{#f}", "x", ""),
            ("x{#f}", "x#", "f="),
            ("x{#f,g}", "x#1,2", "f=1,2"),
        ] {
            assert_eq!(matched(template, uri), want, "{template} {uri}");
        }
    }

    #[test]
    fn labels_and_paths() {
        for (template, uri, want) in [
            ("x{.ext}", "x.tar.gz", "ext=tar.gz"),
            ("x{.a,b}", "x.tar.gz", "a=tar b=gz"),
            ("x{.a*}", "x.1.2.3", "a=1 a=2 a=3"),
            ("x{.a}", "x", ""),
            ("x{/a,b}", "x/1/2", "a=1 b=2"),
            ("x{/a,b}", "x/1", "a=1"),
            ("x{/a,b}", "x/1/2/3", "-"),
            ("x{/a*}", "x/1/2/3", "a=1 a=2 a=3"),
            ("x{/a*}/end", "x/1/2/end", "a=1 a=2"),
            ("x{/a}", "x/", "a="),
            ("x{/a}{.e}", "x/f.txt", "a=f.txt"),
        ] {
            assert_eq!(matched(template, uri), want, "{template} {uri}");
        }
    }

    #[test]
    fn named_values() {
        for (template, uri, want) in [
            ("s{?q,n}", "s?q=a%26b&n=1", "q=a&b n=1"),
            ("s{?q,n}", "s?n=1&q=x", "n=1 q=x"),
            ("s{?q,n}", "s?n=1", "n=1"),
            ("s{?q,n}", "s", ""),
            ("s{?q,n}", "s?", "-"),
            ("s{?q,n}", "s?z=1", "-"),
            ("s{?q}", "s?q=1&q=2", "-"),
            ("s{?q*}", "s?q=1&q=2", "q=1 q=2"),
            ("s{?q,qq}", "s?qq=1", "qq=1"),
            ("s{?q}", "s?q", "q="),
            ("s{?q}", "s?q=a b=c", "q=a b=c"),
            ("s?fixed=yes{&x}", "s?fixed=yes&x=1", "x=1"),
            ("s?fixed=yes{&x}", "s?fixed=yes", ""),
            ("s{?a}{&b}", "s?a=1&b=2", "a=1 b=2"),
            ("s{;x,y}", "s;x=1;y", "x=1 y="),
            ("s{;x}/t", "s;x=1/t", "x=1"),
            ("{v}{;x}", "a;x=1", "v=a x=1"),
        ] {
            assert_eq!(matched(template, uri), want, "{template} {uri}");
        }
    }

    #[test]
    fn variables_that_appear_twice() {
        for (template, uri, want) in [
            ("{x}/{x}", "a/a", "x=a"),
            ("{x}/{x}", "a/b", "-"),
            ("{x:1}/{x}", "a/abc", "x=abc"),
            ("{x:1}/{x}", "b/abc", "-"),
            ("{x}/{x:2}", "abc/ab", "x=abc"),
            ("{x}/{x:2}", "abc/abc", "-"),
            ("{x:3}", "abc", "x=abc"),
            ("{x:1}/{x:2}", "a/ab", "x=ab"),
        ] {
            assert_eq!(matched(template, uri), want, "{template} {uri}");
        }
    }

    #[test]
    fn hostile_uris_cost_little() {
        let long = "a".repeat(60_000);
        let template = Template::parse("{+a}/{+b}/{+c}/{+d}/x{?q*}").unwrap();
        assert!(template.matches(&long).is_none());
        assert!(template.matches(&"/".repeat(60_000)).is_none());
        assert!(Template::parse("s{?x*}").unwrap().matches(&format!("s{}!", "?x=".repeat(20_000))).is_some());
        assert!(Template::parse("s{?x*}z").unwrap().matches(&format!("s{}", "?x=".repeat(20_000))).is_none());
        assert!(Template::parse("{x}").unwrap().matches(&"a".repeat(MAX_URI + 1)).is_none());
    }
}

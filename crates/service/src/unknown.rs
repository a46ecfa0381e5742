//! Names that do not exist: what a caller who asks for one is told, and which names come nearest to it.

use std::cmp::Reverse;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Symbol};

/// How many names are suggested.
const SUGGESTIONS: usize = 20;
/// How many names are looked at. A catalogue may be larger than anybody wants to wait for.
const LOOKED_AT: usize = 50_000;
/// How many of them are compared closely, which takes a hundred times as long.
const COMPARED: usize = 200;
/// How many bytes of a name are compared, and how long a name that is suggested may be.
const COMPARED_BYTES: usize = 128;
/// How much alike two names are when one of them is probably meant by the other, from 0 to 1.
const LIKELY: f64 = 0.8;
/// How many bytes of the name that was asked for are repeated.
const REPEATED_BYTES: usize = 200;

/// The error for a tool that does not exist. `known` are the tools that the caller may call.
///
/// ```
/// use tidegate_protocol::Revision;
/// use tidegate_service::unknown_tool;
///
/// let error = unknown_tool("get_wether", ["echo", "get_weather"]);
/// assert_eq!(
///     error.to_json(Revision::LATEST_MODERN).as_str(),
///     r#"{"code":-32602,"message":"Unknown tool: get_wether","data":{"availableTools":["get_weather","echo"],"symbol":"TOOL_NOT_FOUND"}}"#
/// );
/// ```
pub fn unknown_tool<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    unknown(Symbol::ToolNotFound, "tool", "availableTools", name, known)
}

/// The error for a prompt that does not exist. `known` are the prompts that the caller may get.
pub fn unknown_prompt<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    unknown(Symbol::PromptNotFound, "prompt", "availablePrompts", name, known)
}

/// The name that is most likely meant by another, whatever its case, if any is likely.
///
/// ```
/// use tidegate_service::nearest_name;
///
/// assert_eq!(nearest_name("Githb", ["time", "github"]), Some("github"));
/// assert_eq!(nearest_name("weather", ["time", "github"]), None);
/// ```
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    likely_names(name, known.into_iter().map(|known| (known, ()))).first().map(|(known, ())| *known)
}

/// The names that are likely meant by another, the likeliest first, with what belongs to each.
pub fn likely_names<'a, T>(name: &str, known: impl IntoIterator<Item = (&'a str, T)>) -> Vec<(&'a str, T)> {
    let compared = |name: &str| start(name, COMPARED_BYTES).to_lowercase();
    let name = compared(name);
    let alike = |(known, of): (&'a str, T)| (strsim::jaro_winkler(&name, &compared(known)), known, of);
    let mut likely: Vec<_> =
        known.into_iter().take(LOOKED_AT).map(alike).filter(|(alike, ..)| *alike >= LIKELY).collect();
    likely.sort_by(|a, b| b.0.total_cmp(&a.0));
    likely.into_iter().map(|(_, known, of)| (known, of)).collect()
}

fn unknown<'a>(
    symbol: Symbol,
    what: &str,
    member: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Error {
    let mut data = ObjectWriter::new();
    data.value(member, &nearest(name, known)).str("symbol", symbol.as_str());
    let shown = start(name, REPEATED_BYTES);
    let more = if shown.len() < name.len() { "…" } else { "" };
    Error::new(symbol, format!("Unknown {what}: {shown}{more}")).with_data(data.finish())
}

/// The names that come nearest, the nearest first. A cheap look at all of them finds those that are worth a close one, so
/// that a wrong name costs little however many names there are.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = start(name, COMPARED_BYTES);
    let pairs = Pairs::of(name);
    let known = known.into_iter().filter(|known| known.len() <= COMPARED_BYTES).take(LOOKED_AT);
    let mut likely: Vec<(Reverse<u32>, &str)> =
        known.map(|known| (Reverse(pairs.in_common(Pairs::of(known))), known)).collect();
    if likely.len() > COMPARED {
        likely.select_nth_unstable(COMPARED);
        likely.truncate(COMPARED);
    }
    let mut near: Vec<(f64, &str)> =
        likely.into_iter().map(|(_, known)| (strsim::jaro_winkler(name, known), known)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

/// Which pairs of neighbouring characters a name has: a bit for each of 128 classes of pairs.
#[derive(Clone, Copy)]
struct Pairs(u128);

impl Pairs {
    fn of(name: &str) -> Pairs {
        let (mut pairs, mut before) = (0, 0);
        for byte in name.bytes().map(|byte| byte.to_ascii_lowercase()) {
            let class =
                u32::from(before).wrapping_mul(37).wrapping_add(u32::from(byte).wrapping_mul(11)) % 128;
            pairs |= 1 << class;
            before = byte;
        }
        Pairs(pairs)
    }

    /// What share of them two names have in common, in thousandths.
    fn in_common(self, other: Pairs) -> u32 {
        let all = self.0.count_ones() + other.0.count_ones();
        2000 * (self.0 & other.0).count_ones() / all.max(1)
    }
}

/// The beginning of a text, at most so many bytes.
fn start(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_very_many_come_first() {
        let words = ["get", "list", "create", "delete", "update", "search", "merge", "close", "open", "move"];
        let mut names: Vec<String> = (0..10_000)
            .map(|n| {
                let word = |at: usize| words[(n / 10usize.pow(at as u32)) % 10];
                format!("{}_{}_{}_{n}", word(0), word(1), word(2))
            })
            .collect();
        names.push("github_create_pull_request".to_owned());
        let near = nearest("githib_create_pull_requst", names.iter().map(String::as_str));
        assert_eq!((near.len(), near[0]), (SUGGESTIONS, "github_create_pull_request"));
    }

    #[test]
    fn names_of_any_kind_are_compared() {
        let long = "é".repeat(10_000);
        assert_eq!(nearest(&long, ["a", &long, ""]), ["", "a"], "what is too long is no suggestion");
        assert_eq!(nearest("", ["b", "a"]), ["a", "b"]);
        let error = unknown_tool(&long, []);
        assert!(error.message().len() < 300 && error.message().ends_with('…'), "{error}");
    }

    #[test]
    fn likely_names_are_few_and_the_likeliest_comes_first() {
        let known = [("weather", 1), ("get_weather_map", 2), ("get_weather", 3), ("time", 4)];
        assert_eq!(likely_names("GET_WETHER", known), [("get_weather", 3), ("get_weather_map", 2)]);
        assert_eq!(nearest_name("nothing like it", ["weather", "time"]), None);
        assert_eq!(nearest_name("x", []), None);
    }
}

//! [`Pairs`]: tokens that are made by joining two that stand side by side, the most frequent first (BPE).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde_json::Value;

/// Which tokens may be joined.
pub(super) struct Pairs {
    /// How early a pair is joined, and what it becomes.
    joined: HashMap<(usize, usize), (usize, usize)>,
    /// The tokens that stand for single bytes, for characters that are no token.
    bytes: Option<Vec<usize>>,
    /// Whether a word that is a token is not cut at all.
    whole: bool,
}

/// A token in the row of those of a word.
#[derive(Clone, Copy)]
struct LinkedToken {
    /// None once it was joined with the one before.
    token: Option<usize>,
    before: usize,
    after: usize,
}

impl Pairs {
    /// Reads what `model` in tokenizer.json says.
    pub(super) fn read(model: &Value, find: impl Fn(&str) -> Option<usize>) -> Result<Pairs, String> {
        for mark in ["continuing_subword_prefix", "end_of_word_suffix"] {
            if model[mark].as_str().is_some_and(|mark| !mark.is_empty()) {
                return Err(format!("its model BPE has a {mark}, which cannot be used"));
            }
        }
        let mut joined = HashMap::new();
        for (rank, pair) in model["merges"].as_array().into_iter().flatten().enumerate() {
            // Older files have both in one text.
            let halves = match pair.as_str() {
                Some(text) => text.split_once(' '),
                None => pair[0].as_str().zip(pair[1].as_str()),
            };
            let (first, second) = halves.ok_or_else(|| format!("its merge {rank} is not a pair"))?;
            if let (Some(a), Some(b), Some(both)) =
                (find(first), find(second), find(&format!("{first}{second}")))
            {
                joined.entry((a, b)).or_insert((rank, both));
            }
        }
        let bytes = (0..=u8::MAX).map(|byte| find(&format!("<0x{byte:02X}>"))).collect();
        let fall_back = model["byte_fallback"].as_bool().unwrap_or_default();
        let whole = model["ignore_merges"].as_bool().unwrap_or_default();
        Ok(Pairs { joined, bytes: if fall_back { bytes } else { None }, whole })
    }

    /// The tokens of a word. What is not known at all is left out, and joins nothing.
    pub(super) fn of(&self, word: &str, find: impl Fn(&str) -> Option<usize>, tokens: &mut Vec<usize>) {
        if self.whole
            && let Some(token) = find(word)
        {
            tokens.push(token);
            return;
        }
        let mut part = Vec::new();
        let mut written = [0; 4];
        for c in word.chars() {
            let text = &*c.encode_utf8(&mut written);
            match (find(text), &self.bytes) {
                (Some(token), _) => part.push(token),
                (None, Some(bytes)) => part.extend(text.bytes().map(|byte| bytes[usize::from(byte)])),
                (None, None) => self.join(&mut part, tokens),
            }
        }
        self.join(&mut part, tokens);
    }

    /// Joins what can be joined, and empties `part`.
    fn join(&self, part: &mut Vec<usize>, tokens: &mut Vec<usize>) {
        let count = part.len();
        let link =
            |(at, token): (usize, usize)| LinkedToken { token: Some(token), before: at - 1, after: at + 1 };
        // One place more at either end, so that every token has neighbours.
        let ends = LinkedToken { token: None, before: 0, after: 1 };
        let mut row: Vec<LinkedToken> = vec![ends];
        row.extend((1..).zip(part.drain(..)).map(link));
        row.push(LinkedToken { before: count, after: count + 1, ..ends });
        let mut next = BinaryHeap::new();
        let possible = |row: &[LinkedToken], at: usize| {
            let pair = row[at].token.zip(row[row[at].after].token)?;
            self.joined.get(&pair).map(|(rank, both)| Reverse((*rank, at, pair, *both)))
        };
        next.extend((1..count).filter_map(|at| possible(&row, at)));
        while let Some(Reverse((_, at, pair, both))) = next.pop() {
            let after = row[at].after;
            // One of them may be part of another by now.
            if row[at].token.zip(row[after].token) != Some(pair) {
                continue;
            }
            row[at] = LinkedToken { token: Some(both), after: row[after].after, ..row[at] };
            row[after].token = None;
            let beyond = row[at].after;
            row[beyond].before = at;
            next.extend(possible(&row, at));
            next.extend(
                Some(row[at].before).filter(|before| *before > 0).and_then(|before| possible(&row, before)),
            );
        }
        tokens.extend(row.iter().filter_map(|link| link.token));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(model: &Value, text: &str) -> Vec<usize> {
        let find = |token: &str| model["vocab"][token].as_u64().map(|id| id as usize);
        let mut tokens = Vec::new();
        Pairs::read(model, find).unwrap().of(text, find, &mut tokens);
        tokens
    }

    #[test]
    fn the_first_of_the_list_are_joined_first() {
        let mut model = json!({
            "vocab": {"a": 1, "b": 2, "c": 3, "ab": 4, "bc": 5, "abc": 6, "aa": 7, "é": 8, "<unk>": 0},
            "merges": ["b c", "a b", ["a", "bc"], "a a", "x y"],
        });
        assert_eq!(tokens(&model, "abc"), [6], "b and c first, then a with both");
        assert_eq!(tokens(&model, "ab"), [4]);
        assert_eq!(tokens(&model, "aaaab"), [7, 1, 4], "from the left");
        assert_eq!(tokens(&model, "aaa"), [7, 1]);
        assert_eq!(tokens(&model, "a?bc"), [1, 5], "nothing is joined over what is not known");
        assert_eq!(tokens(&model, ""), [0; 0]);
        model["merges"] = json!(["a b"]);
        assert_eq!(tokens(&model, "abc"), [4, 3]);
        model["ignore_merges"] = json!(true);
        assert_eq!(tokens(&model, "abc"), [6]);
        assert_eq!(tokens(&model, "abcc"), [4, 3, 3]);
    }

    #[test]
    fn a_character_that_is_no_token_is_its_bytes() {
        let mut vocabulary: serde_json::Map<_, _> =
            (0..256).map(|byte| (format!("<0x{byte:02X}>"), json!(byte))).collect();
        vocabulary.insert("a".to_owned(), json!(300));
        let model = json!({"vocab": vocabulary, "merges": [], "byte_fallback": true});
        assert_eq!(tokens(&model, "aé"), [300, 0xC3, 0xA9]);
    }

    #[test]
    fn a_long_text_takes_no_longer_than_it_must() {
        let model = json!({"vocab": {"a": 1, "aa": 2, "aaaa": 3}, "merges": ["a a", "aa aa"]});
        assert_eq!(tokens(&model, &"a".repeat(400_000)), vec![3; 100_000]);
    }
}

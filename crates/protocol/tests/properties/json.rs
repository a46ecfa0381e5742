//! Shallow JSON against serde_json.

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use tidegate_protocol::json::{FaultKind, write_str};
use tidegate_protocol::{Json, Limits, Object};

use crate::trees::{Noise, bare, members, noise, print, tree};

/// As deep as it goes: depth is the one thing in which the grammars differ.
const DEEP: Limits = Limits { max_depth: 127, max_bytes: usize::MAX };

fn value(json: &Json) -> Value {
    json.to().unwrap()
}

/// An object as text, with the raw text of each value beside it.
fn printed(members: &Map<String, Value>, noise: &mut Noise) -> (String, Vec<(String, String)>) {
    let (mut text, mut raw) = (String::from(" { "), Vec::new());
    for (i, (name, item)) in members.iter().enumerate() {
        let mut one = String::new();
        bare(item, noise, &mut one);
        text.push_str(if i > 0 { " ," } else { "" });
        noise.space(&mut text);
        text.push_str(&noise.string(name));
        noise.space(&mut text);
        text.push(':');
        noise.space(&mut text);
        text.push_str(&one);
        noise.space(&mut text);
        raw.push((name.clone(), one));
    }
    text.push_str("}\n");
    (text, raw)
}

/// One change to a text, at some place, with a character that means something to JSON.
fn mutate(text: &mut Vec<char>, (place, kind, pick): (usize, u8, usize)) {
    const ALPHABET: &[char] = &[
        '{', '}', '[', ']', ',', ':', '"', '\\', 'u', 'n', 't', 'e', 'E', '.', '-', '+', '0', '1', '9', ' ',
        '\n', '\u{1}', 'é', '/',
    ];
    let (at, c) = (place % (text.len() + 1), ALPHABET[pick % ALPHABET.len()]);
    match kind % 3 {
        0 => text.insert(at, c),
        1 if at < text.len() => text[at] = c,
        _ if at < text.len() => _ = text.remove(at),
        _ => text.push(c),
    }
}

/// The same tree with all members in the opposite order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(name, item)| (name.clone(), reversed(item))).collect())
        }
        other => other.clone(),
    }
}

/// The same tree with whole numbers as such.
fn whole(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(whole).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, item)| (name.clone(), whole(item))).collect())
        }
        Value::Number(number) => match number.as_f64().filter(|n| number.is_f64() && n.fract() == 0.0) {
            Some(n) => Value::from(n as i64),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_is_the_same_has_one_canonical_form(tree in tree(), mut one in noise(), mut other in noise()) {
        let canonical = |text: String| Json::parse(text, &DEEP).unwrap().canonical();
        let form = canonical(print(&tree, &mut one));
        prop_assert_eq!(&form, &canonical(print(&reversed(&tree), &mut other)));
        prop_assert_eq!(&form, &form.canonical());
        prop_assert_eq!(value(&form), whole(&tree));
    }

    #[test]
    fn accepts_exactly_what_serde_json_accepts(
        tree in tree(),
        mut noise in noise(),
        mutations in prop::collection::vec((any::<usize>(), any::<u8>(), any::<usize>()), 0..4),
    ) {
        let mut text: Vec<char> = print(&tree, &mut noise).chars().collect();
        mutations.into_iter().for_each(|m| mutate(&mut text, m));
        let text: String = text.into_iter().collect();
        let theirs = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        let ours = Json::parse(text.clone(), &DEEP);
        prop_assert_eq!(ours.is_ok(), theirs, "{:?}: {:?}", text, ours);
        if let Ok(json) = ours {
            prop_assert_eq!(json.as_str(), text.trim_matches([' ', '\n', '\r', '\t']));
        }
    }

    #[test]
    fn accepts_exactly_what_serde_json_accepts_of_any_text(text in "[\\[\\]{},:\"\\\\0-9eE.+\\-truefalsn /\u{0}-\u{20}é]{0,12}") {
        let theirs = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(Json::parse(text.clone(), &DEEP).is_ok(), theirs, "{:?}", text);
    }

    #[test]
    fn members_give_back_the_same_text(members in members(tree()), mut noise in noise()) {
        let (text, raw) = printed(&members, &mut noise);
        let object = Object::parse(text.clone(), &DEEP).unwrap();
        let got: Vec<_> = object.members().map(|m| (m.name.into_owned(), m.value.to_owned())).collect();
        prop_assert_eq!(&got, &raw);
        prop_assert_eq!(object.as_str(), text.trim());
        for (index, (name, one)) in raw.iter().enumerate() {
            prop_assert_eq!(object.get(name), Some(one.as_str()));
            prop_assert_eq!(object.json_at(index), Some(Json::trusted(one.clone())));
            if let Value::String(text) = &members[name] {
                prop_assert_eq!(object.str(name), Some(text.into()));
            }
        }
    }

    #[test]
    fn splicing_is_editing(
        members in members(tree()),
        mut noise in noise(),
        name in "[a-e]{1,2}",
        new in tree(),
        gone in prop::collection::vec("[a-e]{1,2}", 0..4),
    ) {
        let (text, _) = printed(&members, &mut noise);
        let object = Object::parse(text, &DEEP).unwrap();

        let mut with = members.clone();
        with.insert(name.clone(), new.clone());
        prop_assert_eq!(value(&object.with(&name, &Json::from(&new))), Value::Object(with));

        let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
        let mut without = members.clone();
        without.retain(|name, _| !gone.contains(&name.as_str()));
        prop_assert_eq!(value(&object.without(&gone)), Value::Object(without));
    }

    #[test]
    fn duplicates_are_found_in_any_spelling(members in members(tree()), mut noise in noise(), pick in any::<usize>()) {
        prop_assume!(!members.is_empty());
        let (text, _) = printed(&members, &mut noise);
        let name = members.keys().nth(pick % members.len()).unwrap();
        let text = format!("{},{}:0}}", text.trim_end().strip_suffix('}').unwrap(), noise.string(name));
        let fault = Object::parse(text, &DEEP).unwrap_err();
        prop_assert_eq!(fault.kind, FaultKind::DuplicateKey(name.clone()));
    }

    #[test]
    fn arrays_split_and_join(items in prop::collection::vec(tree(), 0..6), mut noise in noise()) {
        let text = print(&Value::Array(items.clone()), &mut noise);
        let json = Json::parse(text, &DEEP).unwrap();
        let elements = json.elements().unwrap();
        prop_assert_eq!(elements.iter().map(value).collect::<Vec<_>>(), items);
        prop_assert_eq!(value(&Json::array(&elements)), value(&json));
    }

    #[test]
    fn strings_are_written_like_serde_json(text in any::<String>(), long in "[a-z\"\\\\\u{0}-\u{1f}é]{0,200}") {
        for text in [text, long] {
            let mut out = Vec::new();
            write_str(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
            let json = Json::string(&text);
            prop_assert_eq!(json.to_str(), Some((&text).into()));
        }
    }
}

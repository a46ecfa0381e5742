//! Messages: ids are echoed, and parts are what they were.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::Value;
use tidegate_protocol::{Id, Incoming, Json, Limits, Message};

use crate::trees::{bare, members, noise, tree};

fn integer() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,40})"
}

proptest! {
    #[test]
    fn ids_are_echoed_byte_for_byte(number in integer(), text in any::<String>(), mut noise in noise()) {
        for raw in [number, noise.string(&text)] {
            let message = format!(r#"{{"id": {raw} ,"jsonrpc":"2.0","method":"ping"}}"#);
            match Incoming::parse(message.into(), &Limits::default()) {
                Ok(Incoming::One(Message::Request(request))) => {
                    prop_assert_eq!(request.id.as_json(), raw.as_str());
                    prop_assert_eq!(request.id.detached(), request.id);
                }
                other => prop_assert!(false, "{raw}: {other:?}"),
            }
        }
    }

    #[test]
    fn ids_are_equal_by_meaning(a in any::<String>(), b in any::<String>(), mut noise in noise()) {
        let id = |raw: String| Id::from_json(Json::trusted(raw)).unwrap();
        let (plain, spelled) = (id(Value::from(a.as_str()).to_string()), id(noise.string(&a)));
        prop_assert_eq!(&plain, &spelled);
        prop_assert!(HashSet::from([plain.clone()]).contains(&spelled));
        prop_assert_eq!(plain == id(noise.string(&b)), a == b);
    }

    #[test]
    fn params_and_meta_are_what_they_were(params in members(tree()), meta in prop::option::of(members(tree())), mut noise in noise()) {
        let mut params = params;
        params.remove("_meta");
        if let Some(meta) = &meta {
            params.insert("_meta".into(), Value::Object(meta.clone()));
        }
        let mut text = String::from(r#"{"jsonrpc":"2.0","method":"m","id":1,"params":"#);
        bare(&Value::Object(params.clone()), &mut noise, &mut text);
        text.push('}');
        let Ok(Incoming::One(Message::Request(request))) = Incoming::parse(text.clone().into(), &Limits::default()) else {
            return Err(TestCaseError::fail(text));
        };
        prop_assert_eq!(request.params.to_json().to::<Value>().unwrap(), Value::Object(params));
        let got = request.params.meta().map(|meta| meta.to_json().to::<Value>().unwrap());
        prop_assert_eq!(got, meta.map(Value::Object));
    }
}

use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "loud": {"type": "boolean"},
            "maybe": {"type": ["integer", "null"]},
            "either": {"type": ["integer", "string"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "point": {"$ref": "#/$defs/point"},
            "option": {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]},
            "free": {"type": "object"},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "level": {"enum": [1, 2, "high"]},
            "any": {},
            "dotted.name": {"type": "integer"},
        },
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}, "label": {"type": "string"}}}},
    })
}

#[test]
fn term_args_follow_the_schema() {
    for (words, value) in [
        (&[][..], json!({})),
        (&["name=5", "count=5", "ratio=5"], json!({"name": "5", "count": 5, "ratio": 5})),
        (&["name="], json!({"name": ""})),
        (&["name=a=b:=c"], json!({"name": "a=b:=c"})),
        (&["ratio=-1.5e3"], json!({"ratio": -1500.0})),
        (&["count=18446744073709551615"], json!({"count": 18446744073709551615_u64})),
        (&["loud=true", "maybe=null"], json!({"loud": true, "maybe": null})),
        (&["maybe=3", "either=3"], json!({"maybe": 3, "either": "3"})),
        (&["either:=3"], json!({"either": 3})),
        (&["tags=a"], json!({"tags": ["a"]})),
        (&["tags=a", "tags=b,c"], json!({"tags": ["a", "b,c"]})),
        (&["tags=[\"a\", \"b\"]"], json!({"tags": ["a", "b"]})),
        (&["numbers=1", "numbers=2", "numbers:=3"], json!({"numbers": [1, 2, 3]})),
        (&["numbers:=[1]"], json!({"numbers": [1]})),
        (&["point.x=1.5", "point.label=2"], json!({"point": {"x": 1.5, "label": "2"}})),
        (&["point={\"x\": 1}"], json!({"point": {"x": 1}})),
        (&["option.x=1", "count=1", "option.label=b"], json!({"option": {"x": 1, "label": "b"}, "count": 1})),
        (&["option=null"], json!({"option": null})),
        (&["free.a.b=1", "free.c=x"], json!({"free": {"a": {"b": 1}, "c": "x"}})),
        (&["map.a=1"], json!({"map": {"a": 1}})),
        (&["level=2"], json!({"level": 2})),
        (&["level=high"], json!({"level": "high"})),
        (&["any=1"], json!({"any": 1})),
        (&["any=one"], json!({"any": "one"})),
        (&["dotted.name=1"], json!({"dotted.name": 1})),
    ] {
        assert_eq!(parse(words, &schema()).map(Value::Object), Ok(value), "{words:?}");
    }
}

#[test]
fn term_args_without_a_schema() {
    for schema in [json!({}), json!({"type": "object"}), json!(null), json!(true)] {
        let read = parse(&["a=1", "b.c=x", "d:=[1]"], &schema).map(Value::Object);
        assert_eq!(read, Ok(json!({"a": 1, "b": {"c": "x"}, "d": [1]})), "{schema}");
    }
    let closed = json!({"type": "object", "additionalProperties": false});
    assert_eq!(
        parse(&["a=1"], &closed).unwrap_err().to_string(),
        "unknown argument \"a\". The tool has no arguments"
    );
}

#[test]
fn term_args_that_do_not_fit() {
    for (words, sentence) in [
        (&["name"][..], "\"name\" is not an argument: write name=value, or name:=json"),
        (&["=x"], "\"=x\" is not an argument: write name=value, or name:=json"),
        (&["count=x"], "\"count\" must be of type integer, not \"x\""),
        (&["count=1.5"], "\"count\" must be of type integer, not \"1.5\""),
        (&["ratio=NaN"], "\"ratio\" must be of type number, not \"NaN\""),
        (&["loud=yes"], "\"loud\" must be of type boolean, not \"yes\""),
        (&["numbers=x"], "\"numbers\" must be of type integer, not \"x\""),
        (&["map.a=x"], "\"map.a\" must be of type integer, not \"x\""),
        (
            &["point=x"],
            "\"point\" must be of type object, not \"x\": write point='{…}' or point.property=value",
        ),
        (&["name=a", "name=b"], "\"name\" takes one value, but was given several"),
        (&["point:={}", "point.x=1", "point.x=2"], "\"point.x\" takes one value"),
        (&["free:=1", "free.x=1"], "\"free.x\" takes one value"),
        (&["free.x=1", "free={}"], "\"free\" takes one value"),
        (&["name:=x"], "the value of name:= is not valid JSON"),
        (&["name.x=1"], "\"name\" is of type string and has no properties: write name=value"),
        (
            &["point.lable=1"],
            "unknown argument \"point.lable\"; did you mean \"point.label\"? Known arguments: point.label, point.x",
        ),
        (&["nmae=x"], "unknown argument \"nmae\"; did you mean \"name\"? Known arguments: any, count, "),
        (&["zzz=x"], "unknown argument \"zzz\". Known arguments: any, "),
        (&["point..x=1"], "unknown argument \"point..x\""),
        (&["name=@/does/not/exist"], "cannot read the file \"/does/not/exist\" for \"name\""),
    ] {
        let error = parse(words, &schema()).unwrap_err().to_string();
        assert!(error.starts_with(sentence), "{words:?}: {error}");
    }
    let long = format!("count={}", "x".repeat(1000));
    assert!(parse(&[long], &schema()).unwrap_err().to_string().len() < 120);
}

#[test]
fn term_args_that_are_missing() {
    let mut schema = schema();
    schema["required"] = json!(["name", "count", "tags"]);
    assert_eq!(
        parse(&["count=1"], &schema).unwrap_err().to_string(),
        "missing arguments: name (string), tags (string[]). Add name=… tags=…"
    );
    assert!(parse(&["count=1", "name=x", "tags:=[]"], &schema).is_ok());
}

#[test]
fn term_args_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("args.json");
    std::fs::write(&path, "{\"x\": 1}\n").unwrap();
    let shown = path.display();
    let words = [format!("name=@{shown}"), format!("point=@{shown}"), format!("any:=@{shown}")];
    let untyped = parse(&[format!("any=@{shown}")], &schema()).map(Value::Object);
    assert_eq!(untyped, Ok(json!({"any": "{\"x\": 1}\n"})));
    let read = parse(&words, &schema());
    let point = json!({"x": 1});
    assert_eq!(read.map(Value::Object), Ok(json!({"name": "{\"x\": 1}\n", "point": point, "any": point})));
}

#[test]
fn term_args_show_nothing_harmful() {
    let schema = json!({"properties": {"a\u{1b}[2Jb": {"type": "integer"}}, "required": ["a\u{1b}[2Jb"]});
    for words in [&["ab\u{1b}=1"][..], &["zzz=1"], &[], &["a\u{1b}[2Jb=\u{1b}"]] {
        let error = parse(words, &schema).unwrap_err().to_string();
        assert!(!error.contains(char::is_control), "{error:?}");
    }
}

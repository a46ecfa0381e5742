//! Several changes to one object, made in one copy, or none at all.

use smallvec::SmallVec;

use super::object::Object;
use super::text::Json;
use super::write::write_str;

/// Changes to an object, collected and then made at once. Members that are not named keep their bytes, and an object
/// that needs no change is not copied.
pub struct Edit {
    object: Object,
    changes: SmallVec<[(&'static str, Option<Json>); 4]>,
}

impl Edit {
    /// Starts to edit; `None` if the value is not an object without duplicate keys.
    pub fn of(json: &Json) -> Option<Edit> {
        Object::of(json).map(Edit::new)
    }

    /// Starts to edit an object.
    pub fn new(object: Object) -> Edit {
        Edit { object, changes: SmallVec::new() }
    }

    /// The object as it was.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Removes a member, if it is there.
    pub fn remove(&mut self, name: &'static str) -> &mut Self {
        if self.object.has(name) {
            self.change(name, None);
        }
        self
    }

    /// Sets a member: in place if it is there, else at the end.
    pub fn set(&mut self, name: &'static str, value: Json) -> &mut Self {
        self.change(name, Some(value));
        self
    }

    /// Gives a member, if it is there, to `change`, and replaces it by what comes back.
    pub fn map(&mut self, name: &'static str, change: impl FnOnce(&Json) -> Option<Json>) -> &mut Self {
        if let Some(value) = self.object.json(name).and_then(|value| change(&value)) {
            self.change(name, Some(value));
        }
        self
    }

    fn change(&mut self, name: &'static str, value: Option<Json>) {
        self.changes.retain(|(other, _)| *other != name);
        self.changes.push((name, value));
    }

    /// The changed object; `None` if nothing changed.
    pub fn finish(self) -> Option<Json> {
        if self.changes.is_empty() {
            return None;
        }
        let added: usize =
            self.changes.iter().filter_map(|(n, v)| Some(n.len() + v.as_ref()?.len() + 4)).sum();
        let mut out = Vec::with_capacity(self.object.as_str().len() + added);
        out.push(b'{');
        let comma = |out: &mut Vec<u8>| {
            if out.len() > 1 {
                out.push(b',');
            }
        };
        let write = |out: &mut Vec<u8>, name: &str, value: &Json| {
            comma(out);
            write_str(out, name);
            out.push(b':');
            out.extend_from_slice(value.as_str().as_bytes());
        };
        for (index, member) in self.object.members().enumerate() {
            match self.changes.iter().find(|(name, _)| *name == member.name) {
                None => {
                    comma(&mut out);
                    out.extend_from_slice(self.object.raw_member(index).as_bytes());
                }
                Some((name, Some(value))) => write(&mut out, name, value),
                Some((_, None)) => {}
            }
        }
        for (name, value) in &self.changes {
            if let (Some(value), false) = (value, self.object.has(name)) {
                write(&mut out, name, value);
            }
        }
        out.push(b'}');
        Some(Json::from_written(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &'static str, edit: impl FnOnce(&mut Edit)) -> Option<String> {
        let mut e = Edit::of(&Json::trusted(text)).unwrap();
        edit(&mut e);
        e.finish().map(|json| json.as_str().to_owned())
    }

    #[test]
    fn changes_are_made_in_one_copy() {
        let text = r#"{ "a" : 1e2,"\u0062":"x", "c":null}"#;
        for (got, want) in [
            (edited(text, |_| {}), None),
            (edited(text, |e| _ = e.remove("z")), None),
            (edited(text, |e| _ = e.map("a", |_| None)), None),
            (edited(text, |e| _ = e.map("z", |_| Some(Json::null()))), None),
            (edited(text, |e| _ = e.remove("b")), Some(r#"{"a" : 1e2,"c":null}"#)),
            (edited(text, |e| _ = e.remove("a").remove("b").remove("c")), Some("{}")),
            (
                edited(text, |e| _ = e.set("d", Json::null())),
                Some(r#"{"a" : 1e2,"\u0062":"x","c":null,"d":null}"#),
            ),
            (edited(text, |e| _ = e.set("a", Json::null()).remove("c")), Some(r#"{"a":null,"\u0062":"x"}"#)),
            (edited("{}", |e| _ = e.set("d", Json::null())), Some(r#"{"d":null}"#)),
        ] {
            assert_eq!(got.as_deref(), want);
        }
    }
}

//! Arrays, split one level deep.

use super::scan::{Limits, Scanner};
use super::text::Json;

impl Json {
    /// The elements of an array, sharing the buffer; `None` if the value is not an array.
    ///
    /// ```
    /// use tidegate_protocol::Json;
    ///
    /// let elements = Json::trusted(r#"[1.0, {"a":[]}]"#).elements().unwrap();
    /// assert_eq!(elements, [Json::trusted("1.0"), Json::trusted(r#"{"a":[]}"#)]);
    /// assert!(Json::empty_object().elements().is_none());
    /// ```
    pub fn elements(&self) -> Option<Vec<Json>> {
        let mut scanner = Scanner::new(self.as_str(), &Limits { max_depth: 127, max_bytes: usize::MAX });
        scanner.expect(b'[').ok()?;
        let mut elements = Vec::new();
        if scanner.next_token() == Some(b']') {
            return Some(elements);
        }
        loop {
            scanner.next_token();
            let start = scanner.at;
            scanner.value(1).ok()?;
            elements.push(Json::from_span(self.text(), start, scanner.at));
            if scanner.next_token() != Some(b',') {
                return Some(elements);
            }
            scanner.at += 1;
        }
    }

    /// An array of these elements.
    ///
    /// ```
    /// use tidegate_protocol::Json;
    ///
    /// assert_eq!(Json::array(&[Json::null(), Json::string("a")]).as_str(), r#"[null,"a"]"#);
    /// ```
    pub fn array(elements: &[Json]) -> Json {
        let mut out = Vec::with_capacity(elements.iter().map(|e| e.len() + 1).sum::<usize>() + 2);
        out.push(b'[');
        for (i, element) in elements.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(element.as_str().as_bytes());
        }
        out.push(b']');
        Json::from_written(out)
    }

    /// This array with each element for which `change` gives another replaced; `None` if nothing changes.
    pub fn map_elements(&self, mut change: impl FnMut(&Json) -> Option<Json>) -> Option<Json> {
        let mut elements = self.elements()?;
        let mut changed = false;
        for element in &mut elements {
            if let Some(other) = change(element) {
                *element = other;
                changed = true;
            }
        }
        changed.then(|| Json::array(&elements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_spelling() {
        for (text, want) in [
            ("[]", Some(vec![])),
            ("[ ]", Some(vec![])),
            ("[1]", Some(vec!["1"])),
            ("[ 1.50 ,\"a,]\" , [1, 2] ]", Some(vec!["1.50", "\"a,]\"", "[1, 2]"])),
            ("{}", None),
            ("\"[]\"", None),
        ] {
            let got = Json::trusted(text).elements();
            assert_eq!(got.as_ref().map(|e| e.iter().map(Json::as_str).collect()), want, "{text}");
        }
    }

    #[test]
    fn unchanged_is_not_copied() {
        let json = Json::trusted("[1,2,3]");
        assert!(json.map_elements(|_| None).is_none());
        let got = json.map_elements(|e| (e.as_str() == "2").then(Json::null));
        assert_eq!(got.unwrap().as_str(), "[1,null,3]");
    }
}

//! URI templates: expand, match, and the way back.

use proptest::prelude::*;
use tidegate_protocol::template::{Template, Value};

/// Templates of two variables that can always be told apart again, with which of them are texts that keep reserved
/// characters.
const TEMPLATES: &[(&str, bool)] = &[
    ("x://{a}/{b}", false),
    ("{a,b}", false),
    ("{a}/{b}{?c}", false),
    ("x://h{/a,b}", false),
    ("x{?a,b}", false),
    ("x{?b,a}", false),
    ("x?z=1{&a,b}", false),
    ("x{;a,b}", false),
    ("x/{a}{;b}", false),
    ("x/{a}{?b}", false),
    ("x/{a}{#b}", true),
    ("x://{a}/{+b}", true),
];

fn names(vars: &[(String, String)]) -> Vec<(&str, &str)> {
    let mut all: Vec<_> = vars.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    all.sort_unstable();
    all
}

proptest! {
    #[test]
    fn what_is_expanded_matches(
        pick in 0..TEMPLATES.len(),
        a in any::<String>().prop_filter("empty values leave no trace", |s| !s.is_empty()),
        b in any::<String>().prop_filter("empty values leave no trace", |s| !s.is_empty()),
    ) {
        let (text, keeps) = TEMPLATES[pick];
        // Where reserved characters are kept, so are percent-encoded ones: they are not the value any more.
        prop_assume!(!keeps || !b.contains('%'));
        let template = Template::parse(text).unwrap();
        let uri = template.expand(&[("a", Value::from(a.as_str())), ("b", Value::from(b.as_str()))]);
        let vars = template.matches(&uri).expect(&uri);
        prop_assert_eq!(names(&vars), [("a", a.as_str()), ("b", b.as_str())], "{} {}", text, uri);
    }

    #[test]
    fn lists_come_back_one_by_one(
        template in prop_oneof![Just("x{/l*}"), Just("x{?l*}"), Just("x{;l*}"), Just("{l*}")],
        list in prop::collection::vec(any::<String>().prop_filter("empty", |s| !s.is_empty()), 1..5),
    ) {
        let template = Template::parse(template).unwrap();
        let uri = template.expand(&[("l", list.iter().cloned().collect::<Value>())]);
        let vars = template.matches(&uri).expect(&uri);
        prop_assert!(vars.iter().all(|(name, _)| name == "l"));
        prop_assert_eq!(vars.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), list);
    }

    #[test]
    fn whatever_matches_expands_to_the_same_variables(
        parts in prop::collection::vec(prop_oneof![
            Just("{a}"), Just("{+b}"), Just("{#c}"), Just("{.d}"), Just("{/e*}"), Just("{;f,g}"), Just("{?h,i*}"),
            Just("{&j}"), Just("{a:2}"), Just("/"), Just("x"), Just("%20"), Just("?"), Just("{k,l}"), Just("{.m,n*}"),
        ], 0..6),
        uri in prop_oneof!["[abx/?#.;&=%0-9+,]{0,16}", any::<String>()],
    ) {
        let template = Template::parse(&parts.concat()).unwrap();
        let Some(vars) = template.matches(&uri) else { return Ok(()) };
        let known: Vec<_> = template.variables().collect();
        prop_assert!(vars.iter().all(|(name, _)| known.contains(&name.as_str())));
        prop_assert_eq!(template.matches(&uri), Some(vars));
    }

    #[test]
    fn any_text_parses_or_says_why(text in "[{}a-c+#./;?&,:*%0-9=|é ]{0,16}") {
        match Template::parse(&text) {
            Ok(template) => prop_assert_eq!(template.as_str(), text),
            Err(fault) => prop_assert!(fault.at <= text.len() && !fault.to_string().is_empty()),
        }
    }
}

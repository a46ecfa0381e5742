//! Versions of agents: which comes after which.

/// Whether a version comes before another, by its numbers.
pub(crate) fn is_before(version: &str, other: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let numbers = version.split(['-', '+']).next().unwrap_or_default().split('.');
        let mut numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap_or_default()).collect();
        numbers.resize(4, 0);
        numbers
    };
    numbers(version) < numbers(other)
}

/// The version after this one: its last number is one more.
pub(crate) fn raised(version: &str) -> String {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let (before, last) = numbers.rsplit_once('.').map_or(("", numbers), |(before, last)| (before, last));
    let next = last.parse::<u64>().map_or(1, |last| last + 1);
    if before.is_empty() { next.to_string() } else { format!("{before}.{next}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_raised() {
        for (before, after) in [("1.0.0", "1.0.1"), ("1.0.9-beta", "1.0.10"), ("2", "3"), ("x", "1")] {
            assert_eq!(raised(before), after);
        }
        for (version, other, before) in [
            ("1.0.0", "1.0.1", true),
            ("1.10.0", "1.9", false),
            ("2", "2.0.0", false),
            ("1", "1.0.0-beta", false),
        ] {
            assert_eq!(is_before(version, other), before, "{version} {other}");
        }
    }
}

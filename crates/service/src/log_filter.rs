//! Which log lines are wanted, as it is written: `info,tidegate::wire=debug`.

use tracing::level_filters::LevelFilter;

/// How long a filter may be, in bytes.
const LONGEST: usize = 4096;

/// How filters are written, for whoever wrote something else.
pub const FORM: &str = "use error, warn, info, debug, trace or off, or a list with levels for parts of the program, such as \
                        info,tidegate::wire=debug";

/// Whether this is a filter: a level, or a list of levels for parts of the program. `EnvFilter` of `tracing` would take a misspelt level for
/// the name of a part, of which everything would be shown.
pub fn is_filter(text: &str) -> bool {
    let says_level = |directive: &str| match directive.rsplit_once('=') {
        Some((part, level)) => is_part(part) && is_level(level),
        None => is_level(directive),
    };
    text.len() <= LONGEST && text.split(',').all(says_level)
}

fn is_level(text: &str) -> bool {
    !text.is_empty() && text.parse::<LevelFilter>().is_ok()
}

/// Whether this names a part of the program, or the spans of one: `tidegate_edge`, `[call{tool=echo}]`.
fn is_part(text: &str) -> bool {
    let (target, span) = text.split_at(text.find('[').unwrap_or(text.len()));
    let is_name = target.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-'));
    !text.is_empty() && is_name && (span.is_empty() || span.ends_with(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_lists_of_them() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,tidegate::wire=debug",
            "warn,tidegate_server=error",
            "tidegate::access=off",
            "info,[call{tool=echo}]=debug",
            "tidegate_edge[call]=trace",
        ] {
            assert!(is_filter(text), "{text:?}");
        }
        for text in [
            "",
            "infoo",
            "info,",
            "info;debug",
            "debug=tidegate",
            "=info",
            "tidegate=",
            "tidegate::wire",
            "in fo",
            "warn, tidegate=info",
            "a b=info",
            "[call=info",
            &format!("info{}", ",a=info".repeat(LONGEST)),
        ] {
            assert!(!is_filter(text), "{text:?}");
        }
    }
}

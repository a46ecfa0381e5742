//! Who agents and sessions belong to, as it stands in addresses and in the store.

use tidegate_protocol::seal::digest;

use super::check;

/// Between the name of somebody and what tells them from others of that name. No name that people give has it.
pub(crate) const MARK: char = '~';
/// How many characters tell people of one name apart.
pub(crate) const MARKED: usize = 16;
/// Who vouches for the names of API keys, which are what the operator calls their owners.
const KEYS: &str = "tidegate:keys";
/// How much of a name that does not fit is shown.
const SHOWN: usize = 100;

/// Who somebody is, by their issuer and what that calls them. Two issuers may know different people by the same name, and
/// names that do not fit into an address may look alike there: such people are told apart by a digest.
pub(crate) fn of(issuer: Option<&str>, subject: &str) -> String {
    let is_plain = issuer.is_none_or(|issuer| issuer == KEYS) && check::user("", subject).is_ok();
    if is_plain {
        return subject.to_owned();
    }
    let shown: String = in_address(subject).chars().take(SHOWN).collect();
    format!("{shown}{MARK}{}", mark(issuer.unwrap_or_default(), subject))
}

/// The name as it can stand in an address.
pub(crate) fn in_address(name: &str) -> String {
    let fits = |c: char| check::user("", c.encode_utf8(&mut [0; 4])).is_ok();
    name.chars().map(|c| if fits(c) { c } else { '-' }).take(200).collect()
}

/// 80 bits of a digest, five to a character.
fn mark(issuer: &str, subject: &str) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digest = digest([issuer, subject]);
    let bits = |at: usize| {
        (0..5).fold(0, |value, bit| value << 1 | digest[(at + bit) / 8] >> (7 - (at + bit) % 8) & 1)
    };
    (0..MARKED).map(|at| char::from(LETTERS[usize::from(bits(at * 5))])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn people_of_one_name_are_told_apart() {
        let all = [
            (None, "ann"),
            (Some("https://a.example.com"), "ann"),
            (Some("https://b.example.com"), "ann"),
            (Some("https://a.example.com"), "auth0 7"),
            (Some("https://a.example.com"), "auth0-7"),
            (None, "auth0 7"),
            (None, "auth0-7"),
            (None, "ann~"),
            (Some("https://a.example.com/ann"), ""),
        ];
        let owners: BTreeSet<String> = all.iter().map(|(issuer, subject)| of(*issuer, subject)).collect();
        assert_eq!(owners.len(), all.len(), "{owners:?}");
        for owner in &owners {
            assert!(check::owner("", owner).is_ok(), "{owner}");
        }
        assert_eq!(of(None, "ann"), "ann");
        assert_eq!(of(Some("tidegate:keys"), "laptop"), "laptop", "the operator gave that name");
        assert_eq!(of(Some("https://a.example.com"), "ann"), of(Some("https://a.example.com"), "ann"));
        let long = of(Some("https://a.example.com"), &"ü".repeat(1000));
        assert!(long.chars().count() <= 200 && check::owner("", &long).is_ok(), "{long}");
    }

    #[test]
    fn nobody_calls_themselves_like_that() {
        let owner = of(Some("https://a.example.com"), "ann");
        assert!(owner.starts_with("ann~"), "{owner}");
        assert!(check::user("user_id", &owner).is_err());
    }
}

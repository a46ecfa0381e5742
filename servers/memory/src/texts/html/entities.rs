//! Entities: characters that HTML spells out.

/// The entities that pages use.
const ENTITIES: &[(&str, &str)] = &[
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("hellip", "…"),
    ("mdash", "—"),
    ("ndash", "–"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("bull", "•"),
    ("middot", "·"),
    ("times", "×"),
    ("divide", "÷"),
    ("plusmn", "±"),
    ("deg", "°"),
    ("para", "¶"),
    ("sect", "§"),
    ("euro", "€"),
    ("pound", "£"),
    ("yen", "¥"),
    ("cent", "¢"),
    ("larr", "←"),
    ("rarr", "→"),
    ("uarr", "↑"),
    ("darr", "↓"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("Auml", "Ä"),
    ("Ouml", "Ö"),
    ("Uuml", "Ü"),
    ("szlig", "ß"),
    ("eacute", "é"),
    ("egrave", "è"),
    ("agrave", "à"),
    ("ccedil", "ç"),
    ("ntilde", "ñ"),
    ("oacute", "ó"),
    ("aacute", "á"),
    ("iacute", "í"),
    ("uacute", "ú"),
    ("oslash", "ø"),
    ("aring", "å"),
    ("aelig", "æ"),
    ("shy", ""),
    ("zwnj", ""),
    ("ensp", " "),
    ("emsp", " "),
    ("thinsp", " "),
];
/// The longest entity that is looked for, in bytes.
const ENTITY: usize = 12;

/// The text with its entities as the characters that they are.
pub(super) fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match entity(rest) {
            Some((meant, length)) => {
                out.push_str(&meant);
                rest = &rest[length..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

/// What an entity stands for, and how long it is with its semicolon.
fn entity(text: &str) -> Option<(String, usize)> {
    let end = text.bytes().take(ENTITY).position(|byte| byte == b';')?;
    let name = text.get(..end)?;
    let meant = match name.strip_prefix('#') {
        Some(number) => {
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(number).filter(|c| *c != '\0')?.to_string()
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1.to_owned(),
    };
    Some((meant, end + 1))
}

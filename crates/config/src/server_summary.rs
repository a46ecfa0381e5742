//! What a server is, in words for people and logs: as it was written, so that nothing that was filled in can be seen, and
//! without what looks like a secret even so.

use std::collections::HashMap;

use tidegate_client::{Command, Remote, Target};
use toml::de::{DeTable, DeValue};

/// All servers of a configuration that is not filled in yet.
pub(crate) fn servers(root: &DeTable<'_>) -> HashMap<String, String> {
    let servers = root.get("servers").and_then(|servers| servers.get_ref().as_table());
    let all = servers.into_iter().flat_map(DeTable::iter);
    all.filter_map(|(name, server)| Some((name.get_ref().to_string(), server_in(server.get_ref())?)))
        .collect()
}

fn server_in(server: &DeValue<'_>) -> Option<String> {
    let text = |field: &str| server.get(field)?.get_ref().as_str();
    let list = |field: &str| -> Option<Vec<String>> {
        let items = server.get(field)?.get_ref().as_array()?.iter();
        Some(items.filter_map(|item| item.get_ref().as_str()).map(str::to_owned).collect())
    };
    if let Some(url) = text("url") {
        return Some(address(url));
    }
    if let Some(builtin) = text("builtin") {
        return Some(format!("builtin {builtin}"));
    }
    let args = list("args");
    let mut words = match (list("command"), text("command"), &args) {
        (Some(words), ..) => words,
        (None, Some(line), None) => match Target::parse(line) {
            Ok(target) => return Some(target.to_string()),
            Err(_) => vec![line.to_owned()],
        },
        (None, program, _) => vec![program?.to_owned()],
    };
    words.extend(args.into_iter().flatten());
    let env = server.get("env").and_then(|env| env.get_ref().as_table());
    let names: Vec<String> =
        env.into_iter().flat_map(DeTable::keys).map(|name| name.get_ref().to_string()).collect();
    words.split_first().map(|(first, rest)| program(first, rest, names.iter()))
}

/// A server of an `mcpServers` file; `None` if it is described in an unusual way.
pub(crate) fn entry(raw: &serde_json::Value) -> Option<String> {
    let text = |key: &str| raw.get(key)?.as_str();
    if let Some(url) = ["httpUrl", "url", "serverUrl"].into_iter().find_map(text) {
        return text("command").is_none().then(|| address(url));
    }
    let args = raw.get("args").and_then(|args| args.as_array());
    let args = args.into_iter().flatten().map(|arg| arg.as_str().map_or(arg.to_string(), str::to_owned));
    let env = raw.get("env").and_then(|env| env.as_object());
    Some(program(text("command")?, &args.collect::<Vec<_>>(), env.into_iter().flat_map(|env| env.keys())))
}

/// A program, its arguments, and the names of its variables.
pub(crate) fn program<'a>(program: &str, args: &[String], env: impl Iterator<Item = &'a String>) -> String {
    let env = env.map(|name| (name.clone(), String::new())).collect();
    Command { program: program.to_owned(), args: args.to_vec(), env, cwd: None }.to_string()
}

/// An address without user, password and query.
pub(crate) fn address(text: &str) -> String {
    // With references in it, it is often no address yet.
    if !text.contains("${")
        && let Ok(remote) = Remote::parse(text)
    {
        return remote.to_string();
    }
    let (rest, query) = text.split_once('?').map_or((text, ""), |(rest, _)| (rest, "?***"));
    let bare = match rest.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.find('/').unwrap_or(rest.len());
            let (host, path) = rest.split_at(host);
            format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
        }
        None => rest.to_owned(),
    };
    format!("{bare}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_not_filled_in_and_secrets_are_hidden() {
        for (fields, shown) in [
            ("command = \"a ${TOKEN} --key hush\"", "a '${TOKEN}' --key ***"),
            ("command = \"K=hush a b\"", "K=*** a b"),
            ("command = [\"a\", \"b c\"]\nargs = [\"--token=hush\"]", "a 'b c' --token=***"),
            ("command = \"a b\"\nargs = []\nenv = { K = \"hush\" }", "K=*** 'a b'"),
            ("url = \"https://me:hush@example.com/?q=hush\"", "https://example.com/?***"),
            ("url = \"https://me:hush@${HOST}/${PATH}?q=hush\"", "https://${HOST}/${PATH}?***"),
            ("url = \"${URL}\"", "${URL}"),
            ("builtin = \"demo\"", "builtin demo"),
        ] {
            let text = format!("[servers.x]\n{fields}");
            assert_eq!(servers(DeTable::parse(&text).unwrap().get_ref())["x"], shown, "{fields}");
        }
        for odd in ["", "servers = 5", "[servers]\nx = 5", "[servers.x]", "[servers.x]\ncommand = []"] {
            assert!(servers(DeTable::parse(odd).unwrap().get_ref()).is_empty(), "{odd}");
        }
    }
}

//! `tidegate model`, with a place for models on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;

use crate::rig::{Folder, TIDEGATE, tidegate_in};

/// The three files of a model that knows four words, of which two mean nearly the same.
fn files() -> [(&'static str, Vec<u8>); 3] {
    let words =
        [("[UNK]", [0.0_f32, 0.0]), ("tea", [1.0, 0.1]), ("beverage", [1.0, -0.1]), ("car", [0.0, 1.0])];
    let vocabulary: serde_json::Map<_, _> =
        words.iter().enumerate().map(|(id, (word, _))| ((*word).to_owned(), json!(id))).collect();
    let tokenizer = json!({
        "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocabulary},
    });
    let data: Vec<u8> =
        words.iter().flat_map(|(_, row)| row).flat_map(|number| number.to_le_bytes()).collect();
    let head =
        json!({"embeddings": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, data.len()]}}).to_string();
    let table = [&(head.len() as u64).to_le_bytes(), head.as_bytes(), &data].concat();
    [
        ("config.json", b"{\"normalize\": true}".to_vec()),
        ("tokenizer.json", tokenizer.to_string().into_bytes()),
        ("model.safetensors", table),
    ]
}

/// Serves these files of any model, and nothing else.
fn serve(files: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head: Vec<String> = BufReader::new(&stream)
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let wanted = head[0].split(' ').nth(1).unwrap();
            let found = files.iter().find(|(name, _)| wanted.ends_with(&format!("/resolve/main/{name}")));
            let (status, body) = found.map_or(("404 Not Found", &[][..]), |(_, body)| ("200 OK", body));
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
    });
    address
}

#[test]
fn a_model_that_was_brought_is_used() {
    let folder = Folder::new();
    let from = serve(files().into());
    let call = |args: &[&str]| {
        let server = ["--", TIDEGATE, "--log-level", "warn", "serve", "--stdio"];
        tidegate_in(&folder, &[args, &server[..]].concat(), "").exits(0).json()
    };
    let entities = r#"entities=[{"name":"Ann","entityType":"person","observations":["likes tea"]}]"#;
    call(&["call", "--json", "create_entities", entities]);
    let search = ["call", "--json", "semantic_search", "query=beverage"];
    assert_eq!(call(&search)["structuredContent"]["count"], 0);

    let done = tidegate_in(&folder, &["model", "some/tiny", "--from", &from], "").exits(0);
    assert!(done.out.contains("some/tiny") && done.out.contains("next start"), "{}", done.out);
    let models = folder.path().join(".local/share/tidegate/model");
    assert_eq!(std::fs::read_dir(models.join("tiny")).unwrap().count(), 3);
    // The vector is made in the background.
    let found = (0..50).any(|_| call(&search)["structuredContent"]["results"][0]["entity"]["name"] == "Ann");
    assert!(found);

    // Another one takes its place.
    let done = tidegate_in(&folder, &["model", "some/other", "--from", &from, "--json"], "").exits(0).json();
    assert_eq!(done["model"], "some/other");
    let left: Vec<_> = std::fs::read_dir(&models).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["other"]);
}

#[test]
fn what_is_no_model_leaves_nothing_behind() {
    let folder = Folder::new();
    let models = folder.path().join(".local/share/tidegate/model");
    let [config, tokenizer, (name, table)] = files();
    let broken = serve(vec![config, tokenizer, (name, table[..table.len() - 4].to_vec())]);
    let run = |args: &[&str]| tidegate_in(&folder, &[&["model"], args].concat(), "");
    let said = run(&["some/tiny", "--from", &broken]).exits(2).err;
    assert!(said.contains("model.safetensors"), "{said}");
    let said = run(&["some/tiny", "--from", &serve(Vec::new())]).exits(3).err;
    assert!(said.contains("404"), "{said}");
    let said = run(&["some/tiny", "--from", "http://127.0.0.1:9"]).exits(3).err;
    assert!(said.contains("cannot be reached"), "{said}");
    let said = run(&["tiny", "--from", &broken]).exits(2).err;
    assert!(said.contains("an owner and a name"), "{said}");
    assert_eq!(std::fs::read_dir(&models).map_or(0, Iterator::count), 0);

    folder.write("notes/diary.txt", "mine");
    let said = run(&["some/tiny", "--from", &broken, "--folder", "notes"]).exits(2).err;
    assert!(said.contains("diary.txt"), "{said}");
    assert_eq!(folder.read("notes/diary.txt"), "mine");
    let said = run(&["some/tiny", "--from", &serve(files().into()), "--folder", "models/tiny"]).exits(0).out;
    assert!(said.contains("[memory.embeddings]"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path().join("models/tiny")).unwrap().count(), 3);
}

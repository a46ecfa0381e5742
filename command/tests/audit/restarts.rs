//! A trail goes on after the program was killed, and belongs to one program at a time.

use serde_json::json;

use crate::http::until;
use crate::rig::Folder;

#[test]
fn the_chain_goes_on_after_a_kill() {
    let folder = Folder::new("file = \"audit.jsonl\"");
    let ann = folder.key("ann");
    let served = folder.serve();
    assert!(served.call(Some(&ann), "demo_add", json!({"a": 1, "b": 2})).is_fine());
    until("it is written", || folder.read("audit.jsonl").contains("demo_add"));
    served.kill();
    let before = folder.records().len();
    // As if the kill had come in the middle of a write.
    folder.write("audit.jsonl", &(folder.read("audit.jsonl") + "{\"v\":1,\"seq\":9"));
    let served = folder.serve();
    assert!(served.call(Some(&ann), "demo_add", json!({"a": 3, "b": 4})).is_fine());
    served.stop();
    let verified = folder.run(&["audit", "verify"]).exits(0).out;
    assert!(
        verified.contains("One line is torn") && verified.contains("ended once without closing"),
        "{verified}"
    );
    let records = folder.records();
    assert_eq!(records.len(), before + 3, "start, call, stop");
    assert_eq!(records.last().unwrap()["seq"], records.len());
}

#[test]
fn a_second_program_is_refused() {
    let folder = Folder::new("file = \"audit.jsonl\"");
    let _first = folder.serve();
    let refused = folder.run(&["serve", "--listen", "127.0.0.1:0"]).exits(2);
    assert!(
        refused.err.contains("is written by another process: stop it, or name another file"),
        "{refused:?}"
    );
    // Whoever only looks at it is not.
    folder.run(&["audit", "verify"]).exits(0);
}

#[test]
fn what_cannot_be_continued_stays_as_it_is() {
    let folder = Folder::new("file = \"audit.jsonl\"");
    folder.write("audit.jsonl", "not a trail\n");
    let refused = folder.run(&["serve", "--listen", "127.0.0.1:0"]).exits(2);
    assert!(refused.err.contains("cannot be continued"), "{refused:?}");
    assert_eq!(folder.read("audit.jsonl"), "not a trail\n");
}

//! Event streams, cut anywhere.

use proptest::prelude::*;
use tidegate_protocol::sse::{
    SseDecoder, SseEvent, SseFault, write_comment, write_event, write_named_event, write_retry,
};

const LIMIT: usize = 200;

/// Everything that a stream gives when it arrives in pieces of these sizes, over and over.
fn decode(stream: &[u8], sizes: &[usize]) -> (Vec<Result<SseEvent, SseFault>>, Option<String>, Option<u64>) {
    let mut decoder = SseDecoder::new(LIMIT);
    let mut events = Vec::new();
    let mut rest = stream;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, more) = rest.split_at((*size).clamp(1, rest.len()));
        rest = more;
        decoder.push(piece);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    (events, decoder.last_event_id().map(str::to_owned), decoder.retry())
}

/// What may stand in a stream.
#[derive(Debug, Clone)]
enum Item {
    Event { id: Option<String>, data: String },
    Named { event: String, data: String },
    Comment(String),
    Retry(u64),
}

fn item() -> impl Strategy<Value = Item> {
    let line = "[^\r\n\u{0}]{0,12}";
    let data = prop_oneof!["[^\r\n]{0,40}", "[^\r]{0,40}"];
    prop_oneof![
        (prop::option::of(line), data.clone()).prop_map(|(id, data)| Item::Event { id, data }),
        ("[a-z]{1,8}", data).prop_map(|(event, data)| Item::Named { event, data }),
        any::<String>().prop_map(Item::Comment),
        any::<u64>().prop_map(Item::Retry),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(items in prop::collection::vec(item(), 0..8), sizes in prop::collection::vec(1usize..30, 1..6)) {
        let (mut stream, mut want) = (Vec::new(), Vec::new());
        for item in &items {
            match item {
                Item::Event { id, data } => {
                    write_event(&mut stream, id.as_deref(), data);
                    want.push(Ok(SseEvent { event: None, id: id.clone(), data: data.clone() }));
                }
                Item::Named { event, data } => {
                    write_named_event(&mut stream, event, data);
                    want.push(Ok(SseEvent { event: Some(event.clone()), id: None, data: data.clone() }));
                }
                Item::Comment(text) => write_comment(&mut stream, text),
                Item::Retry(ms) => write_retry(&mut stream, *ms),
            }
        }
        // Long comments are faults of their own.
        prop_assume!(items.iter().all(|i| !matches!(i, Item::Comment(text) if text.len() > LIMIT)));
        prop_assert_eq!(decode(&stream, &sizes).0, want);
    }

    #[test]
    fn pieces_make_no_difference(
        parts in prop::collection::vec(prop_oneof![
            Just(b"data: ".to_vec()), Just(b"id:".to_vec()), Just(b"event".to_vec()), Just(b"retry: 5".to_vec()),
            Just(b"\n".to_vec()), Just(b"\r".to_vec()), Just(b"\r\n".to_vec()), Just(b"\n\n".to_vec()), Just(b":".to_vec()),
            Just(b"\xef\xbb\xbf".to_vec()), Just(vec![b'x'; 90]), prop::collection::vec(any::<u8>(), 0..6),
        ], 0..30),
        sizes in prop::collection::vec(1usize..12, 1..6),
    ) {
        let stream = parts.concat();
        prop_assert_eq!(decode(&stream, &sizes), decode(&stream, &[usize::MAX]));
    }
}

//! The fuzz targets, for a moment: a seeded generator mutates a small corpus, so that every run is the same run.

mod fuzz_bodies;

/// xorshift64*: enough to choose mutations.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end.max(1)
    }
}

/// Feeds a body with the corpus as it is, and then with `rounds` mutations of it.
fn run(seed: u64, rounds: usize, corpus: &[&[u8]], body: fn(&[u8])) {
    corpus.iter().for_each(|data| body(data));
    let mut random = Random(seed);
    for _ in 0..rounds {
        let mut data = corpus[random.below(corpus.len())].to_vec();
        for _ in 0..=random.below(4) {
            mutate(&mut data, corpus, &mut random);
        }
        body(&data);
    }
}

fn mutate(data: &mut Vec<u8>, corpus: &[&[u8]], random: &mut Random) {
    const SPECIAL: &[u8] = b"{}[]\",:\\ \n\r\t0-9.eE+u\x00\x1f\x7f\x80\xff=?%;#/&";
    let at = random.below(data.len() + 1);
    match random.below(6) {
        0 => data.insert(at, SPECIAL[random.below(SPECIAL.len())]),
        1 => data.insert(at, random.next() as u8),
        2 if at < data.len() => data[at] ^= 1 << random.below(8),
        3 if at < data.len() => _ = data.remove(at),
        4 => data.truncate(at),
        _ => {
            // A piece of another entry, put in somewhere.
            let other = corpus[random.below(corpus.len())];
            let start = random.below(other.len());
            let end = start + random.below(other.len() - start + 1);
            data.splice(at..at, other[start..end.min(other.len())].iter().copied());
        }
    }
}

#[test]
fn frames() {
    let deep = "[".repeat(40);
    run(
        1,
        20_000,
        &[
            br#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":0},"arguments":{"a":[1.50,null]}}}"#,
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            br#" { "id" : "a\u0062\ud83d\ude00" , "result" : {} , "jsonrpc" : "2.0" } "#,
            br#"{"jsonrpc":"2.0","error":{"code":-32600,"message":""}}"#,
            br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","method":"n"}]"#,
            br#"[{"jsonrpc":"2.0","id":22222222222222222222222222222222222221,"method":"ping"}]"#,
            r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"é/世界","params":{"x":"\ud800"}}"#.as_bytes(),
            deep.as_bytes(),
            b"\xff\xfe",
            b"",
        ],
        fuzz_bodies::frame,
    );
}

#[test]
fn envelopes() {
    run(
        2,
        20_000,
        &[b"\x20\x01\x02\x02\x06\x03\x0b", b"\x20\x04\x09", b"\x20\x01\x07", b"\x20\x07\x02\x02\x06"],
        fuzz_bodies::envelope,
    );
}

#[test]
fn event_streams() {
    let long = format!("\x03data: {}\n\ndata: b\n\n", "x".repeat(300));
    run(
        3,
        20_000,
        &[
            b"\x00data: a\n\n",
            b"\x01\xef\xbb\xbfid: 7\r\nevent: message\r\ndata: {}\r\n\r\n",
            b"\x02:c\rdata:a\rdata\rdata: b\r\rretry: 10\r\r",
            b"\x05data: \xff\xe2\x82\n\nid: 1\n\n",
            long.as_bytes(),
        ],
        fuzz_bodies::sse,
    );
}

#[test]
fn header_values() {
    run(
        4,
        20_000,
        &[
            b"us-west1",
            b"=?base64?SGVsbG8sIOS4lueVjA==?=",
            b"=?base64??=",
            b"  a\tb ",
            b"=?BASE64?SGVsbG8=?=",
            b"",
            b"\xc3\xa9",
        ],
        fuzz_bodies::header,
    );
}

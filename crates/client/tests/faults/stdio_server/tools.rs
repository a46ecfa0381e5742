//! The tools of the misbehaving server over stdio.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Server, stay};
use crate::wire::{Asked, Era, chatter};

impl Server {
    /// Calls a tool. Those that stop the server itself run here; all others in a thread of their own.
    pub(super) fn call(self: &Arc<Self>, asked: Asked) {
        self.note(&format!("call {}", asked.tool()));
        let null = || std::fs::File::options().read(true).write(true).open("/dev/null").expect("/dev/null");
        match asked.tool() {
            "crash" => std::process::exit(asked.number("code") as i32),
            "close_output" => rustix::stdio::dup2_stdout(null()).expect("stdout closes"),
            "close_input" => {
                rustix::stdio::dup2_stdin(null()).expect("stdin closes");
                self.say(&asked.text("closed"));
                stay();
            }
            "deaf" => {
                self.say(&asked.text("deaf from now on"));
                stay();
            }
            _ => {
                let server = self.clone();
                std::thread::spawn(move || server.misbehave(&asked));
            }
        }
    }

    fn misbehave(&self, asked: &Asked) {
        let good = asked.text("good");
        match asked.tool() {
            "hang" => {}
            "slow" => {
                std::thread::sleep(Duration::from_millis(300));
                self.say(&good);
            }
            "twice" => self.say(&format!("{good}\n{}", asked.text("again"))),
            "wrong_id" => self.say(&good.replace(&asked.id.to_string(), "\"another\"")),
            "duplicate" => {
                let id = &asked.id;
                self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"result":{{"a":1}}}}"#));
            }
            "garbage" => {
                self.say("\n\n\r\n   \nnot JSON at all\n{\"half\": \n}{\n]\n\u{0}\u{1b}[31m\ntrue\n{\"jsonrpc\":\"2.0\"}");
                self.write(b"\xff\xfe\x80 broken UTF-8\n{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}\n");
                self.say(&format!("  {good}\r"));
            }
            // The answer itself is broken.
            "utf8" => {
                let id = &asked.id;
                let mut answer =
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":""#).into_bytes();
                answer.extend_from_slice(b"\xff\xfe\"}}\n");
                self.write(&answer);
            }
            "oversize" => self.say(&asked.text(&"x".repeat(asked.number("size") as usize))),
            "drip" => {
                // Nobody else writes meanwhile, or the lines would mix.
                let _alone = std::io::stdout().lock();
                for byte in format!("{good}\n").bytes() {
                    self.write(&[byte]);
                    std::thread::sleep(Duration::from_millis(asked.number("pause")));
                }
            }
            "flood" => {
                for n in 0..asked.number("count") / 2 {
                    let [log, progress] = chatter(asked, n);
                    self.say(&format!("{log}\n{progress}"));
                }
                self.say(&good);
            }
            "flood_forever" => {
                for n in 0.. {
                    let [log, progress] = chatter(asked, n);
                    self.say(&format!("{log}\n{progress}"));
                }
            }
            "ask" | "ask_forever" => self.asking(asked),
            _ => self.say(&good),
        }
    }

    fn asking(&self, asked: &Asked) {
        let forever = asked.tool() == "ask_forever";
        match self.era {
            Era::Modern if forever || asked.params["inputResponses"].is_null() => {
                self.say(&asked.input_required(1));
            }
            Era::Modern => self.say(&asked.text(&asked.params["inputResponses"]["who"].to_string())),
            Era::Legacy => {
                let mut answer = json!(null);
                for id in 1..if forever { u64::MAX } else { 2 } {
                    answer = self.ask(id);
                    // It was given up: whatever it asked now would be taken for a question of the next call.
                    if !answer["error"].is_null() {
                        break;
                    }
                }
                self.say(&asked.text(&answer["result"].to_string()));
            }
        }
    }
}

//! [`Client`]: a server as a process, asked over its standard streams. The same for all servers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    /// Starts the server and shakes hands.
    pub(crate) fn start(mut command: Command) -> Result<Client> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let input = child.stdin.take();
        let output = BufReader::with_capacity(1 << 20, child.stdout.take().context("no stdout")?);
        let mut client = Client { child, input, output, next: 0 };
        client.send(json!({"method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
        }}))?;
        client.answer()?;
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("the server was stopped")?;
        input.write_all(format!("{message}\n").as_bytes())?;
        Ok(input.flush()?)
    }

    fn send(&mut self, mut message: Value) -> Result<u64> {
        self.next += 1;
        message["jsonrpc"] = "2.0".into();
        message["id"] = self.next.into();
        self.write(&message)?;
        Ok(self.next)
    }

    /// The next answer, whichever it is for. What the server tells besides is passed over.
    fn answer(&mut self) -> Result<(u64, Value)> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                bail!("the server has ended");
            }
            let mut message: Value = serde_json::from_str(&line)?;
            let Some(id) = message["id"].as_u64().filter(|_| message.get("method").is_none()) else {
                continue;
            };
            if message.get("error").is_some() || message["result"]["isError"] == true {
                bail!("refused: {}", line.chars().take(300).collect::<String>());
            }
            return Ok((id, message["result"].take()));
        }
    }

    /// Calls a tool and says how long the answer took.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<(Duration, Value)> {
        let began = Instant::now();
        self.send(json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}}))?;
        let (_, result) = self.answer()?;
        Ok((began.elapsed(), result))
    }

    /// Calls a tool many times, so many at once, and says how long each took.
    pub(crate) fn calls(
        &mut self,
        tool: &str,
        arguments: impl Iterator<Item = Value>,
        at_once: usize,
    ) -> Result<Vec<Duration>> {
        let mut waiting = HashMap::new();
        let mut took = Vec::new();
        for arguments in arguments {
            if waiting.len() >= at_once {
                let (id, _) = self.answer()?;
                took.extend(waiting.remove(&id).map(|began: Instant| began.elapsed()));
            }
            let call = json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}});
            let began = Instant::now();
            waiting.insert(self.send(call)?, began);
        }
        while !waiting.is_empty() {
            let (id, _) = self.answer()?;
            took.extend(waiting.remove(&id).map(|began| began.elapsed()));
        }
        Ok(took)
    }

    /// Closes the input and waits for the end.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.input = None;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

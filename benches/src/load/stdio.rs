//! Newline-delimited requests over a child's pipes, with a fixed number in flight.

use std::io::{ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;

use anyhow::{Context, Result};
use memchr::memchr;
use mio::unix::pipe;
use mio::{Events, Interest, Poll, Token};

use super::{Load, Meter, SPOT_CHECK, STALLED, Sample, Until};
use crate::case::Case;
use crate::request::{self, Ask, Request};

const INPUT: Token = Token(0);
const OUTPUT: Token = Token(1);

pub(crate) struct StdioLoad {
    poll: Poll,
    input: pipe::Sender,
    output: pipe::Receiver,
    request: Request,
    ask: Ask,
    in_flight: usize,
    next_id: u64,
    /// When the requests in flight were sent, by id modulo the length.
    sent_at: Vec<Option<Instant>>,
    /// Requests for the pipe, which has taken the first `written` bytes of them.
    outgoing: Vec<u8>,
    written: usize,
    buffer: Vec<u8>,
    filled: usize,
}

impl StdioLoad {
    pub(crate) fn connect(input: ChildStdin, output: ChildStdout, case: Case) -> Result<Self> {
        let ask = Ask::echo(&case.payload.message());
        Self::open(input, output, Request::modern_stdio(&ask), case.concurrency, ask)
    }

    pub(crate) fn open(
        input: ChildStdin,
        output: ChildStdout,
        request: Request,
        in_flight: usize,
        ask: Ask,
    ) -> Result<Self> {
        let mut load = Self {
            poll: Poll::new()?,
            input: input.into(),
            output: output.into(),
            request,
            in_flight,
            next_id: 0,
            // Far more places than requests in flight, so that none is taken twice even if answers come out of order.
            sent_at: vec![None; 1 << 16],
            outgoing: Vec::new(),
            written: 0,
            buffer: vec![0; 4 * ask.answer_length() + 64 * 1024],
            filled: 0,
            ask,
        };
        load.input.set_nonblocking(true)?;
        load.output.set_nonblocking(true)?;
        load.poll.registry().register(&mut load.input, INPUT, Interest::WRITABLE)?;
        load.poll.registry().register(&mut load.output, OUTPUT, Interest::READABLE)?;
        // Id 0 is among those that are checked in full.
        load.run(Until::requests(1)).context("the first request over stdio")?;
        Ok(load)
    }

    fn queue(&mut self, now: Instant) {
        self.outgoing.extend_from_slice(self.request.numbered(self.next_id));
        *self.sent_at(self.next_id) = Some(now);
        self.next_id += 1;
    }

    fn sent_at(&mut self, id: u64) -> &mut Option<Instant> {
        let place = id as usize % self.sent_at.len();
        &mut self.sent_at[place]
    }

    /// Writes what the pipe takes.
    fn write(&mut self) -> Result<()> {
        while self.written < self.outgoing.len() {
            match self.input.write(&self.outgoing[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("writing to the server"),
            }
        }
        // Moved to the front only when that is cheap compared with what was written.
        if self.written * 2 >= self.outgoing.len() {
            self.outgoing.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }

    /// Takes what is in the pipe, answers every complete line to the meter, and queues the next requests.
    fn read(&mut self, meter: &mut Meter) -> Result<()> {
        loop {
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            match self.output.read(&mut self.buffer[self.filled..]) {
                Ok(0) => anyhow::bail!("the server closed its output"),
                Ok(read) => {
                    let unseen = self.filled;
                    self.filled += read;
                    self.take_lines(unseen, meter)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("reading from the server"),
            }
        }
    }

    /// `unseen`: from where on the buffer was not searched for line ends yet.
    fn take_lines(&mut self, mut unseen: usize, meter: &mut Meter) -> Result<()> {
        let now = Instant::now();
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &self.buffer[unseen..self.filled]) {
            let line = &self.buffer[start..unseen + length];
            let id = request::number_of(line)?;
            if id.is_multiple_of(SPOT_CHECK) {
                self.ask.check(line, id)?;
            }
            let sent_at =
                self.sent_at(id).take().with_context(|| format!("an answer nobody asked for: {id}"))?;
            meter.answered(sent_at, now);
            start = unseen + length + 1;
            unseen = start;
            if meter.may_send(now) {
                self.queue(now);
            }
        }
        self.buffer.copy_within(start..self.filled, 0);
        self.filled -= start;
        Ok(())
    }
}

impl Load for StdioLoad {
    fn run(&mut self, until: Until) -> Result<Sample> {
        let mut meter = Meter::start(until);
        let mut events = Events::with_capacity(4);
        for _ in 0..self.in_flight {
            let now = Instant::now();
            if meter.may_send(now) {
                self.queue(now);
            }
        }
        self.write()?;
        while !meter.all_answered() {
            self.poll.poll(&mut events, Some(STALLED))?;
            anyhow::ensure!(!events.is_empty(), "no answer for {STALLED:?}");
            if events.iter().any(|event| event.token() == OUTPUT) {
                self.read(&mut meter)?;
            }
            self.write()?;
        }
        Ok(meter.finish())
    }
}

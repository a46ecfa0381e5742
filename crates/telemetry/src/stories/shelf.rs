//! [`Shelf`]: the stories that there is room for. The oldest go first, of those who have most.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use tidegate_protocol::{Json, Method};
use tidegate_service::{CorrelationId, Principal};

use super::row::Row;
use super::story::{Round, Story};
use super::told::told;

/// How many rounds are remembered whose questions may still be answered.
const MOST_ROUNDS: usize = 1024;

/// A story under its number.
pub(super) struct Kept {
    pub(super) number: u64,
    content: Content,
    /// How many bytes it takes, with its place on the shelf.
    pub(super) size: usize,
}

/// A story as it is known.
#[expect(clippy::large_enum_variant, reason = "there are many of the large ones and few of the others")]
pub(super) enum Content {
    /// Of this process.
    Own(Story),
    /// Of an earlier one, as it stands in the file.
    Read(ReadStory),
}

/// What was read of a story.
pub(super) struct ReadStory {
    pub(super) id: Box<str>,
    pub(super) tool: Option<Box<str>>,
    pub(super) has_failed: bool,
    pub(super) principal: Principal,
    pub(super) text: Json,
}

impl Kept {
    fn new(number: u64, content: Content) -> Arc<Kept> {
        let texts = match &content {
            Content::Own(story) => story.texts_size(),
            Content::Read(read) => {
                read.id.len() + read.tool.as_ref().map_or(0, |tool| tool.len()) + read.text.len()
            }
        };
        const PLACES: usize = 64;
        Arc::new(Kept { number, content, size: PLACES + size_of::<Kept>() + texts })
    }

    pub(super) fn id(&self) -> &str {
        match &self.content {
            Content::Own(story) => story.id.as_str(),
            Content::Read(read) => &read.id,
        }
    }

    pub(super) fn tool(&self) -> Option<&str> {
        match &self.content {
            Content::Own(story) => story.tool(),
            Content::Read(read) => read.tool.as_deref(),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        match &self.content {
            Content::Own(story) => story.has_failed(),
            Content::Read(read) => read.has_failed,
        }
    }

    fn principal(&self) -> &Principal {
        match &self.content {
            Content::Own(story) => &story.principal,
            Content::Read(read) => &read.principal,
        }
    }

    pub(super) fn told(&self) -> Json {
        match &self.content {
            Content::Own(story) => told(self.number, story),
            Content::Read(read) => read.text.clone(),
        }
    }
}

/// Stories in a bounded number of bytes.
pub(super) struct Shelf {
    room: usize,
    pub(super) stories: Row<Arc<Kept>>,
    pub(super) bytes: usize,
    /// Whose they are.
    shares: HashMap<Principal, Share, RandomState>,
    /// Who had most when that was last looked at, and how often something went since then.
    largest: Option<Principal>,
    gone: usize,
    next: u64,
    /// The rounds whose questions may still be answered, by what comes back with the answers.
    rounds: IndexMap<u64, Round>,
}

/// The stories of one principal.
#[derive(Default)]
struct Share {
    numbers: VecDeque<u64>,
    bytes: usize,
}

impl Share {
    fn add(&mut self, kept: &Kept) {
        self.numbers.push_back(kept.number);
        self.bytes += kept.size;
    }
}

impl Shelf {
    pub(super) fn new(room: usize) -> Shelf {
        Shelf {
            room,
            stories: Row::new(),
            bytes: 0,
            shares: HashMap::default(),
            largest: None,
            gone: 0,
            next: 1,
            rounds: IndexMap::new(),
        }
    }

    /// Puts a story there, under the next number.
    pub(super) fn put(&mut self, content: Content) -> Arc<Kept> {
        let kept = Kept::new(self.next, content);
        self.place(&kept);
        kept
    }

    /// Puts one there that has a number already. One that is not larger than those before is none of the same file.
    pub(super) fn put_back(&mut self, number: u64, content: Content) {
        if number >= self.next {
            self.place(&Kept::new(number, content));
        }
    }

    fn place(&mut self, kept: &Arc<Kept>) {
        self.next = kept.number.saturating_add(1);
        self.bytes += kept.size;
        if let Some(share) = self.shares.get_mut(kept.principal()) {
            share.add(kept);
        } else {
            self.shares.entry(kept.principal().clone()).or_default().add(kept);
        }
        self.stories.push(kept.number, kept.clone());
        while self.bytes > self.room {
            let Some(goes) = self.oldest_of_many().or_else(|| self.stories.first()) else { break };
            self.take_away(goes);
        }
    }

    /// The oldest story of somebody who has more than everybody's part of the room: whoever has little keeps it, however many others call.
    fn oldest_of_many(&mut self) -> Option<u64> {
        let part = self.room / self.shares.len().max(1);
        let has_many = |share: &&Share| share.bytes > part;
        self.gone += 1;
        if let Some(share) = self.largest.as_ref().and_then(|one| self.shares.get(one)).filter(has_many) {
            return share.numbers.front().copied();
        }
        // Looking at all takes as long as there are many: not each time.
        if self.largest.is_some() && self.gone < self.shares.len() {
            return None;
        }
        self.gone = 0;
        let (principal, share) = self.shares.iter().max_by_key(|(_, share)| share.bytes)?;
        self.largest = Some(principal.clone());
        share.numbers.front().copied().filter(|_| share.bytes > part)
    }

    fn take_away(&mut self, number: u64) {
        let Some(kept) = self.stories.remove(number) else { return };
        self.bytes -= kept.size;
        if let Some(share) = self.shares.get_mut(kept.principal()) {
            share.bytes -= kept.size;
            match share.numbers.front() {
                Some(first) if *first == number => _ = share.numbers.pop_front(),
                _ => share.numbers.retain(|other| *other != number),
            }
            if share.numbers.is_empty() {
                self.shares.remove(kept.principal());
            }
        }
    }

    /// The round whose questions come back with this state, which was given out with them.
    pub(super) fn round_of(&mut self, state: u64) -> Option<Round> {
        self.rounds.get(&state).copied()
    }

    /// The last round that has asked something under this id.
    pub(super) fn last_round(&self, id: &CorrelationId) -> Option<Round> {
        self.rounds.values().rev().find(|round| round.id == *id).copied()
    }

    /// Remembers a round until its questions are answered.
    pub(super) fn asked(&mut self, state: u64, round: Round) {
        if self.rounds.len() >= MOST_ROUNDS {
            self.rounds.shift_remove_index(0);
        }
        self.rounds.insert(state, round);
    }
}

/// No process tells so many stories.
const LARGEST_NUMBER: u64 = 1 << 53;

/// Reads what a line of the file says; `None` if it is no story.
pub(super) fn read(line: &str) -> Option<(u64, Content)> {
    let limits = tidegate_protocol::Limits { max_depth: 127, max_bytes: usize::MAX };
    let story = tidegate_protocol::Object::parse(line.to_owned(), &limits).ok()?;
    // One from which nobody could count on is none.
    let number = story.get("number")?.parse().ok().filter(|number| *number < LARGEST_NUMBER)?;
    let part = |name: &str| story.str(name).map(|text| text.into_owned().into());
    let (issuer, subject, tenant) = (part("issuer"), part("subject"), part("tenant"));
    let content = ReadStory {
        id: story.str("id")?.into(),
        tool: story.str("tool").filter(|_| is_tool_call(&story)).map(Into::into),
        has_failed: matches!(story.str("outcome").as_deref()?, "error" | "tool_error"),
        principal: Principal { issuer, subject, tenant },
        text: story.to_json(),
    };
    Some((number, Content::Read(content)))
}

fn is_tool_call(story: &tidegate_protocol::Object) -> bool {
    story.str("method").as_deref() == Some(Method::ToolsCall.as_str())
}

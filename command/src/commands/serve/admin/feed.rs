//! [`Feed`]: one source of events, and those who follow it. Whoever tells something never waits: a follower that reads too slowly
//! loses events, and is told how many.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use tokio::sync::Notify;

/// How many may follow at once: so many through the socket, and as many others, who cannot lock out whoever runs the gateway.
const MOST_FOLLOWERS: usize = 16;
/// How many events, and how many bytes of them, wait for one follower.
const MOST_EVENTS: usize = 1024;
const MOST_BYTES: usize = 512 * 1024;

/// Those who follow. Clones are the same feed.
#[derive(Clone, Default)]
pub(super) struct Feed(Arc<Shared>);

#[derive(Default)]
struct Shared {
    followers: Mutex<Vec<Arc<Waiting>>>,
    /// How many there are: asked for each event, without a lock.
    count: AtomicUsize,
}

/// What waits for a follower.
#[derive(Default)]
struct Waiting {
    is_operator: bool,
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Bytes>,
    bytes: usize,
    lost: u64,
}

impl Waiting {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    fn followers(&self) -> MutexGuard<'_, Vec<Arc<Waiting>>> {
        self.0.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody follows.
    pub(super) fn is_followed(&self) -> bool {
        self.0.count.load(Ordering::Relaxed) > 0
    }

    /// Follows from now on; `None` if too many do.
    pub(super) fn follow(&self, is_operator: bool) -> Option<Follower> {
        let mut followers = self.followers();
        if followers.iter().filter(|one| one.is_operator == is_operator).count() >= MOST_FOLLOWERS {
            return None;
        }
        let waiting = Arc::new(Waiting { is_operator, ..Waiting::default() });
        followers.push(waiting.clone());
        self.0.count.store(followers.len(), Ordering::Relaxed);
        Some(Follower { feed: self.clone(), waiting })
    }

    /// Tells all followers something: the bytes of an event.
    pub(super) fn tell(&self, event: &Bytes) {
        for follower in self.followers().iter() {
            let mut queue = follower.queue();
            if queue.events.len() >= MOST_EVENTS || queue.bytes + event.len() > MOST_BYTES {
                queue.lost += 1;
            } else {
                queue.bytes += event.len();
                queue.events.push_back(event.clone());
            }
            drop(queue);
            follower.news.notify_one();
        }
    }
}

/// Somebody who follows, until this is dropped.
pub(super) struct Follower {
    feed: Feed,
    waiting: Arc<Waiting>,
}

/// What a follower gets next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Event(Bytes),
    /// So many events before the next one had no room.
    Lost(u64),
}

impl Follower {
    /// Waits for the next one.
    pub(super) async fn next(&self) -> Next {
        loop {
            {
                let mut queue = self.waiting.queue();
                // What was lost came after everything that is still here.
                match queue.events.pop_front() {
                    Some(event) => {
                        queue.bytes -= event.len();
                        return Next::Event(event);
                    }
                    None if queue.lost > 0 => return Next::Lost(std::mem::take(&mut queue.lost)),
                    None => {}
                }
            }
            self.waiting.news.notified().await;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followers = self.feed.followers();
        followers.retain(|other| !Arc::ptr_eq(other, &self.waiting));
        self.feed.0.count.store(followers.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_follower_loses_events_and_learns_how_many() {
        let feed = Feed::default();
        feed.tell(&Bytes::from_static(b"before"));
        let (slow, quick) = (feed.follow(false).unwrap(), feed.follow(false).unwrap());
        for at in 0..MOST_EVENTS + 5 {
            feed.tell(&Bytes::from(at.to_string()));
            assert_eq!(quick.next().await, Next::Event(Bytes::from(at.to_string())));
        }
        for at in 0..MOST_EVENTS {
            assert_eq!(slow.next().await, Next::Event(Bytes::from(at.to_string())));
        }
        assert_eq!(slow.next().await, Next::Lost(5));
        feed.tell(&Bytes::from(vec![0; MOST_BYTES + 1]));
        assert_eq!((slow.next().await, quick.next().await), (Next::Lost(1), Next::Lost(1)));
    }

    #[tokio::test]
    async fn there_is_a_bound_on_followers_and_those_who_leave_make_room() {
        let feed = Feed::default();
        assert!(!feed.is_followed());
        let mut followers: Vec<Follower> = (0..MOST_FOLLOWERS).map(|_| feed.follow(false).unwrap()).collect();
        assert!(feed.is_followed() && feed.follow(false).is_none());
        followers.pop();
        assert!(feed.follow(false).is_some());
        followers.clear();
        assert!(!feed.is_followed());
    }
}

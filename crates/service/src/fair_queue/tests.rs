//! The queue: its rules as properties of the state machine, and the futures around it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::line::{Joined, Line, PATIENCE, Standing, Ticket};
use super::{Entry, FairKey, FairQueue, Place, Priority, Unserved, Waiting};

fn key(name: &str) -> FairKey {
    FairKey::of(name)
}

/// What happens to a line.
#[derive(Debug, Clone)]
enum Step {
    Join {
        key: u8,
        priority: Priority,
    },
    /// One of those who run ends.
    Release,
    /// One of those who wait, or do not know yet that they run, goes away.
    GiveUp(usize),
    /// One of those who have a ticket asks.
    Look(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let priority = prop_oneof![Just(Priority::High), Just(Priority::Normal), Just(Priority::Low)];
    let step = prop_oneof![
        4 => (0..5u8, priority).prop_map(|(key, priority)| Step::Join { key, priority }),
        3 => Just(Step::Release),
        1 => any::<usize>().prop_map(Step::GiveUp),
        2 => any::<usize>().prop_map(Step::Look),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn a_line_holds_its_bounds_and_leaves_nothing_behind(
        steps in steps(), max_running in 1..4usize, max_waiting in 0..6usize,
    ) {
        let mut line = Line::new(max_running, max_waiting);
        let (mut running, mut tickets) = (0, Vec::<Ticket>::new());
        for step in steps {
            match step {
                Step::Join { key, priority } => match line.join(FairKey::of(&key), priority) {
                    Joined::Running => running += 1,
                    Joined::Waiting(ticket, pushed_out) => {
                        prop_assert!(line.running() == max_running, "nobody waits while there is room");
                        prop_assert_ne!(pushed_out, Some(ticket.number));
                        tickets.push(ticket);
                    }
                    Joined::Full => prop_assert!(line.waiting() == max_waiting),
                },
                Step::Release if running > 0 => {
                    running -= 1;
                    line.release();
                }
                Step::Release => {}
                Step::GiveUp(at) if !tickets.is_empty() => {
                    let ticket = tickets.swap_remove(at % tickets.len());
                    line.give_up(ticket);
                }
                Step::Look(at) if !tickets.is_empty() => {
                    let at = at % tickets.len();
                    match line.standing(tickets[at]) {
                        Standing::Waiting => {}
                        Standing::Granted => {
                            running += 1;
                            tickets.swap_remove(at);
                        }
                        Standing::PushedOut => drop(tickets.swap_remove(at)),
                    }
                }
                Step::GiveUp(_) | Step::Look(_) => {}
            }
            prop_assert!(line.running() <= max_running && line.waiting() <= max_waiting);
            prop_assert!(line.waiting() == 0 || line.running() == max_running, "somebody waits while there is room");
            prop_assert!(running <= line.running());
        }
        for ticket in tickets {
            line.give_up(ticket);
        }
        for _ in 0..running {
            line.release();
        }
        prop_assert!(line.is_untouched(), "{:?}", line);
    }

    #[test]
    fn keys_take_turns(lengths in prop::collection::vec(1..20usize, 1..6)) {
        let mut line = Line::new(1, usize::MAX);
        prop_assert!(line.try_enter());
        let mut owners = std::collections::HashMap::new();
        for (owner, length) in lengths.iter().enumerate() {
            for _ in 0..*length {
                let Joined::Waiting(ticket, None) = line.join(FairKey::of(&owner), Priority::Normal) else { panic!() };
                owners.insert(ticket.number, owner);
            }
        }
        // What is expected: round after round over those who still have somebody.
        let mut left = lengths.clone();
        let mut expected = Vec::new();
        while left.iter().any(|length| *length > 0) {
            for (owner, length) in left.iter_mut().enumerate().filter(|(_, length)| **length > 0) {
                *length -= 1;
                expected.push(owner);
            }
        }
        let mut served = Vec::new();
        while let Some(number) = line.release() {
            served.push(owners[&number]);
        }
        prop_assert_eq!(served, expected);
    }
}

fn waits(line: &mut Line, name: &str, priority: Priority) -> Ticket {
    match line.join(key(name), priority) {
        Joined::Waiting(ticket, _) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn classes_are_strict_and_nobody_starves() {
    let mut line = Line::new(1, 1000);
    assert!(line.try_enter());
    let mut classes = std::collections::HashMap::new();
    for priority in Priority::ALL {
        for _ in 0..100 {
            classes.insert(waits(&mut line, "a", priority).number, priority);
        }
    }
    let served: Vec<Priority> = (0..20).map(|_| classes[&line.release().unwrap()]).collect();
    use Priority::{High, Low, Normal};
    assert_eq!(served[..5], [High, High, High, Normal, Low]);
    assert_eq!(served[..5], served[5..10], "and so on");
    // Two classes: every fourth goes to the lower one.
    let mut line = Line::new(1, 1000);
    assert!(line.try_enter());
    let low = waits(&mut line, "a", Low).number;
    for _ in 0..10 {
        waits(&mut line, "b", Normal);
    }
    let served: Vec<u64> = (0..=PATIENCE).map(|_| line.release().unwrap()).collect();
    assert_eq!(served.iter().position(|number| *number == low), Some(PATIENCE as usize));
}

#[test]
fn a_quiet_tenant_has_its_turn_within_one_round() {
    let mut line = Line::new(1, 1000);
    assert!(line.try_enter());
    for _ in 0..1000 {
        waits(&mut line, "flood", Priority::Normal);
    }
    let Joined::Waiting(quiet, pushed_out) = line.join(key("quiet"), Priority::Normal) else { panic!() };
    assert_eq!(pushed_out, Some(999), "the newest of those who have the most makes room");
    line.release();
    assert_eq!(line.release(), Some(quiet.number), "after one of the others");
    // Whoever has as many waiting as anybody pushes nobody out.
    let mut line = Line::new(1, 2);
    assert!(line.try_enter());
    waits(&mut line, "a", Priority::Normal);
    waits(&mut line, "b", Priority::Normal);
    assert_eq!(line.join(key("a"), Priority::High), Joined::Full);
    assert_eq!(line.join(key("c"), Priority::High), Joined::Full);
}

fn waiting(queue: &FairQueue, name: &str, deadline: Option<Instant>) -> Waiting {
    match queue.enter(key(name), Priority::Normal, deadline) {
        Entry::Waits(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

fn is_pending(waiting: &mut Waiting) -> bool {
    pin!(waiting).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_a_place_or_in_time() {
    let queue = FairQueue::new(1, 10);
    let place = queue.try_enter().unwrap();
    let late = waiting(&queue, "a", Some(Instant::now() + Duration::from_secs(5)));
    let patient = waiting(&queue, "a", Some(Instant::now() + Duration::from_secs(50)));
    assert_eq!(late.await.unwrap_err(), Unserved::Late);
    assert_eq!((queue.depth().running, queue.depth().waiting), (1, 1));
    drop(place);
    let place = patient.await.unwrap();
    assert_eq!((queue.depth().running, queue.depth().waiting), (1, 0));
    drop(place);
    assert!(queue.0.lock().unwrap().line.is_untouched());
}

#[test]
fn whoever_is_dropped_has_left_at_once() {
    let queue = FairQueue::new(1, 10);
    let place = queue.try_enter().unwrap();
    let mut waiters: VecDeque<Waiting> = (0..3).map(|_| waiting(&queue, "a", None)).collect();
    assert!(waiters.iter_mut().all(is_pending));
    waiters.pop_front();
    assert_eq!((queue.depth().waiting, queue.depth().waiting_by_priority), (2, [0, 2, 0]));
    // The place is handed to somebody who goes away without knowing: the next one has it.
    drop(place);
    waiters.pop_front();
    assert!(!is_pending(&mut waiters[0]));
    waiters.clear();
    let shared = queue.0.lock().unwrap();
    assert!(shared.line.is_untouched() && shared.wakers.is_empty(), "{shared:?}");
}

#[tokio::test]
async fn whoever_is_pushed_out_is_told() {
    let queue = FairQueue::new(1, 2);
    let _place = queue.try_enter().unwrap();
    let (_first, second) = (waiting(&queue, "a", None), waiting(&queue, "a", None));
    let second = tokio::spawn(second);
    tokio::task::yield_now().await;
    let _quiet = waiting(&queue, "b", None);
    assert_eq!(second.await.unwrap().unwrap_err(), Unserved::PushedOut);
    assert!(matches!(queue.enter(key("c"), Priority::Normal, None), Entry::Full));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_than_may_run_under_many_callers_and_no_wake_up_is_lost() {
    let queue = FairQueue::new(3, usize::MAX);
    let (now, most, ended) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..64u32)
        .map(|task| {
            let (queue, now, most, ended) = (queue.clone(), now.clone(), most.clone(), ended.clone());
            tokio::spawn(async move {
                for round in 0..100u32 {
                    let priority = Priority::ALL[(task + round) as usize % 3];
                    let place: Place = match queue.enter(FairKey::of(&(task % 7)), priority, None) {
                        Entry::Entered(place) => place,
                        // Some go away in the middle of it.
                        Entry::Waits(mut waiting) if (task + round) % 5 == 0 => {
                            is_pending(&mut waiting);
                            continue;
                        }
                        Entry::Waits(waiting) => waiting.await.unwrap(),
                        Entry::Full => panic!("there is no bound"),
                    };
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    drop(place);
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert!(ended.load(Ordering::SeqCst) > 0);
    let shared = queue.0.lock().unwrap();
    assert!(shared.line.is_untouched() && shared.wakers.is_empty());
}

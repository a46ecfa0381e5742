//! Several servers, a few at a time: starting all of them at once makes each one slow, and some of them time out.

use std::collections::BTreeMap;

use tokio::task::{Id, JoinSet};

use super::display::Display;
use crate::term::clean;

/// How many servers are started at the same time.
const AT_ONCE: usize = 4;

/// Does all of this, a few at a time, and shows what is under way. The results come in the order of the jobs; `None` for one
/// that broke.
pub(crate) async fn run_all<T, F>(verb: &str, jobs: Vec<(String, F)>, display: &Display) -> Vec<Option<T>>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let total = jobs.len();
    let mut results: Vec<Option<T>> = jobs.iter().map(|_| None).collect();
    let mut next = jobs.into_iter().enumerate();
    let mut running = JoinSet::new();
    let mut names: BTreeMap<Id, String> = BTreeMap::new();
    loop {
        while running.len() < AT_ONCE
            && let Some((at, (name, job))) = next.next()
        {
            let task = running.spawn(async move { (at, job.await) });
            names.insert(task.id(), name);
        }
        let shown: Vec<&str> = names.values().map(String::as_str).collect();
        let done = total - next.len() - names.len();
        display.waiting(&format!("{verb} {} ({done} of {total} done)", shown.join(", ")));
        match running.join_next_with_id().await {
            None => break,
            Some(Ok((id, (at, result)))) => {
                names.remove(&id);
                results[at] = Some(result);
            }
            Some(Err(error)) => {
                let name = names.remove(&error.id()).unwrap_or_default();
                tracing::error!(server = clean::line(&name), %error, "checking the server failed unexpectedly");
            }
        }
    }
    display.clear();
    results
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_few_at_a_time_and_in_order() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let job = |n: usize| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                assert_ne!(n, 3, "one breaks");
                n
            }
        };
        let jobs = (0..10).map(|n| (n.to_string(), job(n))).collect();
        let results = run_all("Checking", jobs, &Display::new(0)).await;
        let expected: Vec<_> = (0..10).map(|n| (n != 3).then_some(n)).collect();
        assert_eq!(results, expected);
        assert_eq!(most.load(Ordering::SeqCst), AT_ONCE);
    }
}

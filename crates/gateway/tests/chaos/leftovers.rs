//! What is left when everything is over: nothing.

use std::time::Duration;

use super::PATIENCE;
use super::upstream::process;

/// How many tasks there are.
pub(crate) fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// How many bytes of memory this process has.
pub(crate) fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    resident * 4096
}

/// There is hardly more memory in use than before. The allocator keeps some, and caches may fill up to their bounds.
pub(crate) fn memory_is_back_to(before: u64) {
    const SOME: u64 = 64 << 20;
    let now = memory();
    println!("memory: {} MB before, {} MB after", before >> 20, now >> 20);
    assert!(now < before + SOME, "{now} bytes, {before} before");
}

/// Waits until no process of the servers is left.
pub(crate) async fn no_process_is_left() {
    let gone = async {
        while !process::running(None).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let gone = tokio::time::timeout(PATIENCE, gone).await;
    assert!(gone.is_ok(), "still running: {:?}", process::running(None));
}

/// Waits until there are no more tasks than at the start, and those of the endpoint itself.
pub(crate) async fn tasks_are_back_to(before: usize) {
    const OF_THE_ENDPOINT: usize = 8;
    let back = async {
        while tasks() > before + OF_THE_ENDPOINT {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let back = tokio::time::timeout(PATIENCE, back).await;
    assert!(back.is_ok(), "{} tasks, {before} at the start", tasks());
}

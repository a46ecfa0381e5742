//! [`RefusedHosts`]: the guard tells the operator whom it does not let in, until there are too many.

use std::sync::{Mutex, PoisonError};

use tidegate_service::epoch_ms;
use tidegate_service::events::{self, Event, HostRefused};

use super::client_address::ClientAddress;

/// In so long a time there are so many lines at most.
const WINDOW_MS: u64 = 10_000;
const LINES: u32 = 20;

/// Tells of requests that the guard refuses. After a flood the next line says how many got none.
#[derive(Debug, Default)]
pub(super) struct RefusedHosts(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began_ms: u64,
    lines: u32,
    untold: u64,
}

impl RefusedHosts {
    /// One was refused for this reason.
    pub(super) fn tell(&self, why: &str, client: Option<ClientAddress>) {
        let window = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = window().line(epoch_ms());
        events::emit(&Event::HostRefused(HostRefused {
            why: why.strip_prefix("Forbidden: ").unwrap_or(why),
            address: client.map(|client| client.ip),
            is_one_of_many: untold.is_none(),
            untold: untold.unwrap_or_default(),
        }));
    }
}

impl Window {
    /// Whether there is a line for one more, and how many had none before it.
    fn line(&mut self, now_ms: u64) -> Option<u64> {
        if now_ms.saturating_sub(self.began_ms) >= WINDOW_MS {
            (self.began_ms, self.lines) = (now_ms, 0);
        }
        if self.lines >= LINES {
            self.untold += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_lines_and_a_number() {
        let mut window = Window::default();
        let told = (0..1000).filter_map(|_| window.line(50_000)).collect::<Vec<_>>();
        assert_eq!(told, [0; 20]);
        assert_eq!(window.line(59_999), None);
        assert_eq!((window.line(60_000), window.line(60_000)), (Some(981), Some(0)));
    }
}

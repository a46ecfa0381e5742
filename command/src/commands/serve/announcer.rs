//! One line when all servers have come up, or have been found not to.

use std::time::Duration;

use tidegate_gateway::{Gateway, Health, ServerStatus};
use tidegate_service::events::{self, Event, ServersReady};
use tokio::task::JoinHandle;

/// How long servers may take before the line comes without them. Each has a timeout of its own.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Says when servers are ready, once for each configuration.
pub(super) struct Announcer {
    gateway: Gateway,
    waiting: Option<JoinHandle<()>>,
}

impl Announcer {
    /// For the servers of a gateway. It says nothing yet.
    pub(super) fn new(gateway: Gateway) -> Announcer {
        Announcer { gateway, waiting: None }
    }

    /// Says when the servers that there are now are ready. Whatever was to be said before is not said any more.
    pub(super) fn announce(&mut self) {
        self.stop();
        let gateway = self.gateway.clone();
        self.waiting = Some(tokio::spawn(async move {
            gateway.settled(PATIENCE).await;
            let disabled: Vec<String> = gateway.disabled().into_iter().map(|server| server.name).collect();
            say(&gateway.status(), &disabled);
        }));
    }

    fn stop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.abort();
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn say(servers: &[ServerStatus], disabled: &[String]) {
    let Some(sentence) = sentence(servers, disabled) else { return };
    let ready = servers.iter().filter(|server| is_ready(server)).count();
    let tools: usize = servers.iter().map(|server| server.tools).sum();
    let (all, disabled) = (servers.len(), disabled.len());
    let all = ServersReady { servers: all, ready, disabled, tools, message: &sentence };
    events::emit(&Event::ServersReady(all));
}

/// What is ready, and what is not; nothing without servers.
fn sentence(servers: &[ServerStatus], disabled: &[String]) -> Option<String> {
    let names = |is_it: &dyn Fn(&Health) -> bool| -> Vec<&str> {
        servers.iter().filter(|server| is_it(&server.health)).map(|server| &*server.name).collect()
    };
    let down = names(&|health| matches!(health, Health::Down { .. }));
    let starting = names(&|health| matches!(health, Health::Starting));
    let ready: Vec<&ServerStatus> = servers.iter().filter(|server| is_ready(server)).collect();
    let tools = match ready.iter().map(|server| server.tools).sum() {
        1 => "1 tool".to_owned(),
        tools => format!("{tools} tools"),
    };
    let mut sentence = match (ready.len(), servers.len()) {
        (_, 0) if disabled.is_empty() => return None,
        (_, 0) => "No server is enabled".to_owned(),
        (0, 1) => "The server is not ready".to_owned(),
        (0, all) => format!("None of the {all} servers is ready"),
        (1, 1) => format!("1 server ready: {tools}"),
        (some, all) if some < all => format!("{some} of {all} servers ready: {tools}"),
        (_, all) => format!("{all} servers ready: {tools}"),
    };
    for (what, names) in [("not available", down), ("still starting", starting)] {
        if !names.is_empty() {
            sentence += &format!("; {what}: {}", names.join(", "));
        }
    }
    if !disabled.is_empty() {
        sentence += &format!("; {} disabled: {}", disabled.len(), disabled.join(", "));
    }
    Some(sentence)
}

/// A server that rests is there when it is called.
fn is_ready(server: &ServerStatus) -> bool {
    matches!(server.health, Health::Ready | Health::Resting)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use tidegate_service::layers::BreakerState;

    fn server(name: &str, health: Health, tools: usize) -> ServerStatus {
        ServerStatus {
            name: name.to_owned(),
            health,
            since: Instant::now(),
            revision: None,
            breaker: BreakerState::Closed,
            in_flight: 0,
            listed: [tools, 0, 0, 0],
            tools,
            in_use: Default::default(),
        }
    }

    #[test]
    fn one_line_says_it() {
        let down = || Health::Down { why: "w".to_owned(), told: "t".to_owned() };
        let time = || server("time", Health::Ready, 2);
        for (servers, said) in [
            (vec![time()], "1 server ready: 2 tools"),
            (vec![server("one", Health::Ready, 1)], "1 server ready: 1 tool"),
            (vec![time(), server("files", Health::Resting, 45)], "2 servers ready: 47 tools"),
            (
                vec![time(), server("github", down(), 9), server("slow", Health::Starting, 0)],
                "1 of 3 servers ready: 2 tools; not available: github; still starting: slow",
            ),
            (vec![server("github", down(), 0)], "The server is not ready; not available: github"),
            (
                vec![server("a", down(), 0), server("b", down(), 0)],
                "None of the 2 servers is ready; not available: a, b",
            ),
        ] {
            assert_eq!(sentence(&servers, &[]).as_deref(), Some(said));
        }
        assert_eq!(sentence(&[], &[]), None);
        let off = ["github".to_owned()];
        let said = sentence(&[time(), time()], &off);
        assert_eq!(said.as_deref(), Some("2 servers ready: 4 tools; 1 disabled: github"));
        assert_eq!(sentence(&[], &off).as_deref(), Some("No server is enabled; 1 disabled: github"));
    }
}

//! Calls that are made just when a server has died: they were surely not executed, and are made again.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tidegate_edge::Eras;
use tidegate_server::{Cx, Server, Tool};
use tidegate_service::layers::RetryPolicy;

use crate::faults::{lives, pid};
use crate::rig::*;
use crate::world::child;

fn kill(pid: u32) {
    let id = Pid::from_raw(pid.try_into().expect("a process id")).expect("a process id");
    kill_process(id, Signal::KILL).expect("it lives");
    // Without giving the gateway a chance to notice first.
    while lives(pid) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn quick() -> RetryPolicy {
    RetryPolicy { base: Duration::from_millis(100), ..RetryPolicy::default() }
}

#[tokio::test]
async fn no_call_is_lost_when_a_process_dies() {
    let mut servers = [child("new", Eras::Modern), child("old", Eras::Legacy)];
    servers.iter_mut().for_each(|server| server.options.retry = quick());
    let gateway = gateway(servers).await;
    for server in ["new", "old"] {
        let first = pid(&gateway, server).await.expect("it runs");
        kill(first);
        // At once, while the gateway notices, and while it starts the server again.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            let together = (0..4).map(|_| pid(&gateway, server));
            for second in futures_util::future::join_all(together).await {
                assert!(second.expect("an answer") != first);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn no_call_is_lost_when_a_server_is_started_again() {
    let server = || {
        let tool = Tool::new("t").handler(|_: (), _: Cx| std::future::ready("well".to_owned()));
        Server::new("s", "1.0").tool(tool)
    };
    for eras in [Eras::Modern, Eras::Legacy] {
        let served = Served::start(server(), eras).await;
        let address = served.address;
        let mut settings = at("s", address);
        settings.options.retry = RetryPolicy { jitter: 0.0, base: Duration::from_millis(400), ..quick() };
        let gateway = gateway([settings]).await;
        assert_eq!(modern().call(&gateway, "s_t").await, ("well".to_owned(), false));
        drop(served);
        until("that nobody listens", async || tokio::net::TcpStream::connect(address).await.is_err()).await;
        let caller = modern();
        let (answer, _serving) = tokio::join!(caller.call(&gateway, "s_t"), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            serve(server().build(), eras, address).await
        });
        assert_eq!(answer, ("well".to_owned(), false));
        gateway.close().await;
    }
}

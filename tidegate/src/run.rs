//! [`Run`]: a server as the whole of a program.

use std::io;

use tidegate_server::{Server, ServerDoor};

use crate::{http, logging, stdio};

/// The environment variable that says where to listen.
const LISTEN: &str = "TIDEGATE_LISTEN";

/// Runs a server in one line.
///
/// ```no_run
/// use tidegate::{Run, Server, tool};
///
/// /// Greets somebody by name.
/// #[tool(read_only)]
/// async fn greet(name: String) -> String {
///     format!("Hello, {name}!")
/// }
///
/// #[tokio::main]
/// async fn main() -> std::io::Result<()> {
///     Server::new("hello", "1.0.0").tool(greet()).run().await
/// }
/// ```
///
/// Clients that start the program talk to it over its standard streams. Started with `--listen ADDRESS`, or with `TIDEGATE_LISTEN` in
/// its environment, it serves HTTP at `/mcp` there: `my-server --listen 8765`, or `--listen 0.0.0.0:8765`.
pub trait Run: Sized {
    /// Serves until the input ends or a signal comes. Logs go to standard error.
    fn run(self) -> impl Future<Output = io::Result<()>> + Send;
}

impl Run for Server {
    fn run(self) -> impl Future<Output = io::Result<()>> + Send {
        self.build().run()
    }
}

impl Run for ServerDoor {
    async fn run(self) -> io::Result<()> {
        logging::init(Default::default(), None);
        match listen_address(std::env::args().skip(1), std::env::var(LISTEN).ok())? {
            Some(address) => http::serve(self, address, Default::default()).await,
            None => {
                stdio::serve(self, Default::default()).await;
                Ok(())
            }
        }
    }
}

/// Where to listen, if anywhere: what the arguments say, else the environment.
fn listen_address(
    arguments: impl Iterator<Item = String>,
    environment: Option<String>,
) -> io::Result<Option<String>> {
    let mut arguments = arguments;
    let given = loop {
        match arguments.next() {
            Some(argument) if argument == "--listen" => {
                let missing = "--listen needs an address: a port, or host:port";
                let address = arguments.next();
                break Some(address.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, missing))?);
            }
            Some(argument) => {
                if let Some(address) = argument.strip_prefix("--listen=") {
                    break Some(address.to_owned());
                }
            }
            None => break environment.filter(|address| !address.is_empty()),
        }
    };
    // A port alone is one of this machine.
    Ok(given.map(|address| match address.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => address,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_listens() {
        let address = |arguments: &[&str], environment: Option<&str>| {
            let arguments = arguments.iter().map(|argument| (*argument).to_owned());
            listen_address(arguments, environment.map(str::to_owned)).unwrap()
        };
        assert_eq!(address(&["--quiet"], None), None);
        assert_eq!(address(&[], Some("")), None);
        assert_eq!(address(&[], Some("8765")).as_deref(), Some("127.0.0.1:8765"));
        for arguments in [&["-v", "--listen", "0.0.0.0:80"][..], &["--listen=0.0.0.0:80"]] {
            assert_eq!(address(arguments, Some("1")).as_deref(), Some("0.0.0.0:80"));
        }
        let refused = listen_address(["--listen".to_owned()].into_iter(), None).unwrap_err();
        assert_eq!(refused.to_string(), "--listen needs an address: a port, or host:port");
    }
}

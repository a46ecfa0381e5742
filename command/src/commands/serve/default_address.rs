//! Where to listen if nobody says it: what Percolate's variables say, for those who come from there.

const HOST: &str = "PERCOLATE_API_HOST";
const PORT: &str = "PERCOLATE_API_PORT";

/// The usual address, with the host and the port that the environment names instead of its own.
pub(super) fn from_environment(
    usual: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let set =
        |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let (usual_host, usual_port) = usual.rsplit_once(':').unwrap_or((usual, "8765"));
    let host = match set(HOST) {
        // The colons of an IPv6 address go into brackets.
        Some(host) if host.contains(':') && !host.starts_with('[') => format!("[{host}]"),
        Some(host) => host,
        None => usual_host.to_owned(),
    };
    let port = match set(PORT) {
        Some(port) => match port.parse::<u16>() {
            Ok(port) => port.to_string(),
            Err(_) => return Err(format!("{PORT} must be the number of a port, not {port:?}")),
        },
        None => usual_port.to_owned(),
    };
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_host_and_port() {
        let place = |host: &str, port: &str| {
            from_environment("127.0.0.1:8765", |name| {
                Some(if name == HOST { host.to_owned() } else { port.to_owned() })
            })
        };
        assert_eq!(from_environment("127.0.0.1:8765", |_| None).as_deref(), Ok("127.0.0.1:8765"));
        assert_eq!(place("", "9000").as_deref(), Ok("127.0.0.1:9000"));
        assert_eq!(place("localhost", " ").as_deref(), Ok("localhost:8765"));
        assert_eq!(place("::1", "1").as_deref(), Ok("[::1]:1"));
        assert!(place("", "http").unwrap_err().contains("PERCOLATE_API_PORT"));
    }
}

//! The macros in a crate that calls the framework `mcp`, and has no other dependency. That it compiles is most of the test.

use mcp::{Server, prompt, resource, tool};

/// Adds two numbers
#[tool(read_only)]
pub async fn add(
    /// The first number
    a: f64,
    #[default = 1.0] b: f64,
) -> String {
    (a + b).to_string()
}

/// Asks for a greeting
#[prompt]
pub fn greeting(#[complete = ["Ada", "Grace"]] name: Option<String>) -> String {
    format!("Greet {}.", name.unwrap_or_else(|| "everybody".to_owned()))
}

/// A memo by its number
#[resource(uri = "memo://{id}")]
pub fn memo(id: u32) -> String {
    format!("memo {id}")
}

/// For where the manifest does not say it: the path can be given.
pub mod given {
    /// The framework under a name that no manifest knows.
    pub mod framework {
        pub use mcp::*;
    }

    /// Says nothing
    #[mcp::tool(crate = crate::given::framework)]
    pub fn quiet(_loud: Option<bool>) {}
}

/// All of them.
pub fn server() -> mcp::ServerDoor {
    Server::new("renamed", "1.0.0")
        .tool(add())
        .tool(given::quiet())
        .prompt(greeting())
        .resource_template(memo())
        .build()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_server_is_made_of_them() {
        let _ = super::server();
        assert_eq!(super::add().name(), "add");
    }
}

//! Calls a tool of any server, whichever era it speaks, and answers what the server asks on the way.
//!
//! ```sh
//! cargo run --features client --example call_any_server -- "npx -y @modelcontextprotocol/server-everything" get-env
//! ```

use tidegate::client::{Client, ElicitAnswer, Handlers};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tidegate::logging::init(Default::default(), None);
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().ok_or("say which server: a command line or a URL")?;
    let tool = arguments.next();

    // A real program would show a form here; this one takes the defaults.
    let handlers = Handlers::new().on_elicit(false, |question| async move {
        eprintln!("The server asks: {}", question.message);
        ElicitAnswer::Accept(question.defaults())
    });
    let client = Client::builder(target)?.handlers(handlers).connect().await?;
    let server = client.server().await?;
    eprintln!("{} speaks {} over {}", server.name().unwrap_or_default(), server.revision, server.transport);

    match tool {
        None => {
            for tool in client.tools().await? {
                print(tool.name());
            }
        }
        Some(tool) => {
            let call = client.call(tool, serde_json::Value::Null);
            print(&call.on_progress(|progress| eprintln!("{progress}")).await?.text());
        }
    }
    client.close().await;
    Ok(())
}

#[allow(clippy::print_stdout)] // this is what the program is for
fn print(line: &str) {
    println!("{line}");
}

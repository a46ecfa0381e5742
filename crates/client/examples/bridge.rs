//! Puts Streamable HTTP, in every revision, in front of any one server: `bridge TARGET ADDRESS`.
use tidegate_client::*;
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let client = Client::builder(args[1].as_str())?.configure(|o| o.lanes.shared = true).connect().await?;
    let listener = tokio::net::TcpListener::bind(&args[2]).await?;
    tidegate_edge::http::serve(client.door(), listener, Default::default(), std::future::pending()).await?;
    Ok(())
}

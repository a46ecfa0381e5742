//! A tool that asks its user before it acts. The same code serves clients of both eras: a modern one gets
//! `input_required` and calls again, a legacy one gets an `elicitation/create` request.
//!
//! The one rule: ask before you act, because the tool runs again from the start with the answers at hand. What must
//! be done before asking goes through `cx.run_once`, which does it once.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate::{Cx, Elicit, Elicited, Server, Tool, ToolError};

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// How many seats.
    seats: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    /// Book it at this price?
    confirm: bool,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    tidegate::logging::init(Default::default(), None);
    let book = Tool::new("book").description("Books seats, after asking").handler(
        |booking: Booking, cx: Cx| async move {
            // Looked up once and kept across the rounds: the user confirms the price that will be charged.
            let price: u32 = cx.run_once("price", async { booking.seats * 42 }).await;
            let question = format!("{} seats cost {price} €. Book them?", booking.seats);
            match cx.elicit(Elicit::<Confirm>::form(question).key("confirm")).await {
                Elicited::Accept(Confirm { confirm: true }) => {
                    Ok(format!("Booked {} seats for {price} €", booking.seats))
                }
                _ => Err(ToolError::from("Nothing was booked")),
            }
        },
    );
    let server = Server::new("theatre", "1.0.0").tool(book).build();
    tidegate::http::serve(server, "127.0.0.1:8765", Default::default()).await
}

//! [`Cx::run_once`]: what is done before asking, and only once.

use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_protocol::Error;

use crate::cx::Cx;

impl Cx {
    /// Does something once, however many rounds of questions the call takes.
    ///
    /// The first round runs `work` and keeps its value in the sealed state; later rounds get that value. Use it for
    /// what must happen before a question and must not happen twice: making a reservation, choosing a random number.
    /// The state travels through the client (sealed, so that it cannot be read or changed), so keep the value small.
    ///
    /// ```
    /// # use tidegate_server::{Cx, Elicit, ToolError};
    /// # async fn reserve() -> u64 { 7 }
    /// # async fn handler(cx: Cx) -> Result<String, ToolError> {
    /// let seat = cx.run_once("seat", async { reserve().await }).await;
    /// cx.elicit(Elicit::url(format!("Pay for seat {seat}"), "https://pay.example.com")).await.accepted()?;
    /// # Ok(String::new()) }
    /// ```
    pub async fn run_once<T, Fut>(&self, key: &str, work: Fut) -> T
    where
        T: Serialize + DeserializeOwned,
        Fut: Future<Output = T>,
    {
        if self.task().is_some() {
            return work.await;
        }
        let kept = self.replay().as_ref().and_then(|replay| replay.kept(key).cloned());
        if let Some(kept) = kept {
            match serde_json::from_value(kept) {
                Ok(value) => return value,
                Err(error) => {
                    tracing::error!(key, %error, "a kept value cannot be read back as its type");
                    return self.give_up().await;
                }
            }
        }
        let working = Working::start(self);
        let value = work.await;
        drop(working);
        match serde_json::to_value(&value) {
            Ok(json) => self.replay().get_or_insert_default().keep(key, json),
            Err(error) => {
                tracing::error!(key, %error, "a value cannot be kept: it cannot be written as JSON");
                return self.give_up().await;
            }
        }
        value
    }

    /// Ends the call with an internal error. The handler is not polled again.
    async fn give_up<T>(&self) -> T {
        self.replay().get_or_insert_default().fail(Error::internal());
        self.runner().wake();
        std::future::pending().await
    }
}

/// While one of these exists, a question that was asked meanwhile does not stop the handler: work that is done only
/// once must not be torn.
struct Working<'a>(&'a Cx);

impl<'a> Working<'a> {
    fn start(cx: &'a Cx) -> Working<'a> {
        cx.replay().get_or_insert_default().keeping += 1;
        Working(cx)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.replay().get_or_insert_default().keeping -= 1;
    }
}

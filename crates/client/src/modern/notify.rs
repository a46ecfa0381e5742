//! What callers tell a modern server.

use bytes::Bytes;
use tidegate_protocol::{Error, Id};
use tidegate_service::Call;

use super::{Link, Modern};
use crate::status;
use crate::wire;

impl Modern {
    /// Passes a notification on, with the terms of the caller.
    pub(crate) async fn notify(&self, call: &Call) -> Result<(), Error> {
        let terms = self.terms(call);
        let mut params = Vec::with_capacity(call.params.as_str().len() + 320);
        terms.write_params(&mut params, &Id::from(0));
        let body = wire::notification_with(call.method.as_str(), &params);
        match &self.link {
            Link::Pipe(peer) => peer.line.tell(body).await,
            Link::Http(http) => {
                let http = http.for_caller(&call.context.principal);
                let answered = http.post(Bytes::from(body), terms.headers(None)).await?;
                match answered.status.is_success() {
                    true => Ok(()),
                    false => Err(status::error(http.url(), &answered, &self.dialer.options.limits)),
                }
            }
        }
    }
}

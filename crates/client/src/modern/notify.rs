//! What callers tell a modern server.

use bytes::Bytes;
use tidegate_protocol::{Error, Id};
use tidegate_service::Call;

use super::{Modern, Via};
use crate::status;
use crate::wire;

impl Modern {
    /// Passes a notification on, with the terms of the caller.
    pub(crate) async fn notify(&self, call: &Call) -> Result<(), Error> {
        let request = self.request(call);
        let mut params = Vec::with_capacity(call.params.as_str().len() + 320);
        request.write_params(&mut params, &Id::from(0));
        let body = wire::notification(call.method.as_str(), &params);
        match &self.via {
            Via::Connection(connection) => connection.channel.tell(body).await,
            Via::Http(http) => {
                let http = http.for_caller(&call.context.principal);
                let answered = http.post(Bytes::from(body), request.headers(None)).await?;
                match answered.status.is_success() {
                    true => Ok(()),
                    false => Err(status::error(http.url(), &answered, &self.dialer.settings.limits)),
                }
            }
        }
    }
}

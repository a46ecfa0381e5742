//! [`Opened`]: a server that is open.

use std::fmt;

use futures_util::future::BoxFuture;
use tidegate_service::layers::PanicBoundaryLayer;
use tidegate_service::{BoxDoor, Door};
use tower::Layer;

/// A server that is open, and how it ends.
pub struct Opened {
    pub(crate) door: BoxDoor,
    close: Option<Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>>,
}

impl Opened {
    /// A server that has nothing to close: `Opened::new(server.bare())`, without layers of its own. It stands behind the
    /// front of the program, which tells of each call once and turns failures into results once. What is added here is that
    /// a panic ends the call that it happens in, also where the program itself asks for something.
    pub fn new(door: impl Door) -> Opened {
        Opened { door: PanicBoundaryLayer.layer(door).boxed(), close: None }
    }

    /// The same, which is ended so: whatever was acknowledged must be where it belongs when the future is done.
    pub fn on_close<F>(mut self, close: impl Fn() -> F + Send + Sync + 'static) -> Opened
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.close = Some(Box::new(move || Box::pin(close())));
        self
    }

    pub(crate) async fn close(&self) {
        if let Some(close) = &self.close {
            close().await;
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opened")
    }
}

//! [`Call`]: one request that stands alone.

use tidegate_protocol::{Method, Params};

use crate::context::Context;

/// A request as every service sees it: what is asked, with which parameters, and by whom.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked.
    pub method: Method,
    /// With which parameters, raw.
    pub params: Params,
    /// By whom, how long there is, where notifications go.
    pub context: Context,
}

impl Call {
    /// A call.
    pub fn new(method: Method, params: Params, context: Context) -> Call {
        Call { method, params, context }
    }
}

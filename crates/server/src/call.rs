//! A request that passed the gate, as routes get it.

use std::sync::Arc;

use abide_api::operations::Operation;
use bytes::Bytes;
use http::HeaderMap;

use crate::access::Caller;
use crate::app::App;
use crate::body::Query;
use crate::shares::Holder;

/// A request that passed the gate.
pub(crate) struct Call {
    pub app: Arc<App>,
    pub operation: &'static Operation,
    pub caller: Caller,
    pub holder: Holder,
    pub path_text: String,
    pub params: Vec<(String, String)>,
    pub query: Query,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The `Idempotency-Key`.
    pub key: Option<String>,
}

impl Call {
    /// A part of the path that the operation names.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

//! Request and reply (§4.7).

use std::sync::Arc;

/// Where the answer to a request goes.
#[derive(Debug, Clone)]
pub(crate) struct Return(pub(crate) Arc<()>);

//! The frozen vocabulary and seams of the fak multi-agent coordination protocol.

pub mod json;

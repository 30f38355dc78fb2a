//! The policy rung (§3.7): rules as data, parsed into closed types and compiled per tool.
//!
//! A policy is text, TOML or JSON, that the host read: nothing here opens a file.
//!
//! ```toml
//! version = 1
//!
//! [[allow]]
//! tool = "a2a.send"           # the capability's tool: every act it opens
//! agent = "worker-*"          # globs: `*` is any run of characters
//! address = "in_kernel:work-*"
//! scope = "fleet"             # only acts with a body
//! max_bytes = 65536           # an allow up to it, a deny above it
//!
//! [[deny]]
//! tool = "a2a.publish"        # the verb's tool: that act alone
//! reason = "POLICY_BLOCK"
//!
//! [[quarantine]]              # what enters a context (§4.4)
//! tool = "a2a.recv"
//! taint = "tainted"
//!
//! [[grant]]                   # the grant policy (§2.3)
//! capability = "a2a.send"
//! agent = "worker-*"
//! ```
//!
//! A matching deny denies; else a matching allow allows; else DEFAULT_DENY. A condition that is
//! absent is no condition; one on what the act does not have (a body, an address, a fleet) does not
//! match. The rung is [`PolicyRung`]; [`Policy::lint`] names rules that can never match.

mod compile;
mod covering;
mod error;
mod glob;
mod lint;
mod parse;
mod program;
mod rule;
mod rung;
mod source;
mod words;

pub use error::{PolicyError, PolicyProblem};
pub use lint::PolicyLint;
pub use rule::Policy;
pub use rung::{POLICY, POLICY_SITES, PolicyRung};

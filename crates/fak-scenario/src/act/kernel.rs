//! The acts on the kernel itself: flow, pool, calls, attachment, time, log and counters (§2, §3).

use super::{Address, Body, RawJson, Subject};

/// An act on the kernel.
#[derive(Clone, Debug)]
pub(crate) enum KernelAct {
    /// `widen` (§2.4).
    Widen { what: Subject, scope: fak_abi::ShareScope },
    /// `trust` (§2.4).
    Trust { what: Subject, evidence: Evidence },
    /// `read` a kept Ref (§2.1); no act of the kernel, but §2.4 applies.
    Read { name: String },
    /// `pool_put` (§3.9).
    PoolPut { body: Body },
    /// `pool_get` by the digest of a text (§3.9).
    PoolGet { text: String },
    /// `call` of any tool.
    Call { tool: String, args: Option<CallArgs>, meta: Option<RawJson>, address: Option<Address> },
    /// `detach` an agent, the host's (§2.3).
    Detach { agent: String },
    /// `attach` an agent again, the host's (§2.3).
    Attach { agent: String },
    /// `who` (§4.10).
    Who,
    /// `held` (§4.4).
    Held,
    /// `tick`: time moves by this alone.
    Tick { ms: u64 },
    /// `audit`: the log verified as it stands (§3.6).
    Audit,
    /// `stats` of the bus (§4.10).
    Stats,
}

/// The arguments of a `call`.
#[derive(Clone, Debug)]
pub(crate) enum CallArgs {
    /// A body.
    Body(Body),
    /// Any other JSON: its text is the argument.
    Json(RawJson),
}

/// What the host's witness says of a `trust` (§3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Confirmed.
    Confirmed,
    /// Refuted.
    Refuted,
    /// Abstains.
    None,
}

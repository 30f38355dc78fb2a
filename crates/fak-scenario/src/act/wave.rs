//! The acts of a wave: groups, collectives, barriers, splits and lanes (§6).

use super::{Actor, Body};

/// An act of a wave.
#[derive(Clone, Debug)]
pub(crate) enum WaveAct {
    /// `group` (§6.1).
    Group { name: String, members: Vec<MemberSpec>, wave: Option<String> },
    /// `broadcast` (§6.3).
    Broadcast { group: String, body: Body },
    /// `scatter` (§6.3), one body a rank.
    Scatter { group: String, bodies: Vec<Body> },
    /// `gather` (§6.4), one output a rank.
    Gather { group: String, outputs: Vec<Body>, reduce: String, scores: Option<Vec<f64>> },
    /// `barrier` (§6.5).
    Barrier { group: String, name: String },
    /// `arrive` (§6.5).
    Arrive { barrier: String, member: String, by: Actor, evidence: Option<String> },
    /// `depart` (§6.5).
    Depart { barrier: String, member: String, by: Actor },
    /// `barrier_status` (§6.5).
    BarrierStatus { barrier: String },
    /// `split` (§6.6).
    Split { group: String, colours: Colours, lease: Option<u64> },
    /// `lease` (§6.7).
    Lease { claim: Claim, ttl_ms: u64, name: String },
    /// `renew` (§6.7).
    Renew { name: String },
    /// `release` (§6.7).
    Release { name: String },
    /// `check` a lease's token against a path (§6.7).
    Check { name: String, path: String },
}

/// A member of a group.
#[derive(Clone, Debug)]
pub(crate) struct MemberSpec {
    /// Its id.
    pub(crate) id: String,
    /// Its lane.
    pub(crate) lane: Option<String>,
    /// Its weight, more than 0.
    pub(crate) weight: Option<f64>,
}

/// How a split colours its members.
#[derive(Clone, Debug)]
pub(crate) enum Colours {
    /// `"lane"`: by the member's lane.
    Lane,
    /// By a table of id to colour.
    Table(Vec<(String, String)>),
}

/// What a lease asks for.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// A lane of the taxonomy.
    Lane(String),
    /// Paths.
    Tree(Vec<String>),
}

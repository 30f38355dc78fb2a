//! The acts on channels (§4).

use super::{Address, Body, Inbox};

/// An act on a channel.
#[derive(Clone, Debug)]
pub(crate) enum ChannelAct {
    /// `send` (§4.3).
    Send { to: Address, body: Body, key: Option<String>, ttl_ms: Option<u64> },
    /// `recv`, which never waits (§4.4).
    Recv { from: Inbox },
    /// `recv_leased` (§4.4).
    RecvLeased { from: Inbox, name: String, deadline_ms: Option<u64> },
    /// `consume` a leased message.
    Consume { name: String },
    /// `drop` a leased message's guard.
    Drop { name: String },
    /// `publish` (§4.5).
    Publish { topic: Address, body: Body },
    /// `subscribe` (§4.5).
    Subscribe { topic: Address, name: String },
    /// `unsubscribe` (§4.5).
    Unsubscribe { inbox: String },
    /// `open` a key, the host's (§2.8).
    Open { at: Address },
    /// `bind` (§4.6).
    Bind { at: Address },
    /// `unbind` (§4.6).
    Unbind { at: Address },
    /// `request` (§4.7).
    Request { to: Address, body: Body, name: String, blocking: bool, deadline_ms: Option<u64> },
    /// `reply` to a received request (§4.7).
    Reply { to_request: String, body: Body },
    /// `await` a request's reply (§4.7).
    Await { name: String },
    /// `compact` a window (§4.8).
    Compact { body: Body, name: String },
    /// `resume` a window (§4.8).
    Resume { window: String },
    /// `status` of a worker (§4.9).
    Status { status: StatusSpec },
    /// `correct` a worker (§4.9).
    Correct { request: CorrectionSpec, name: String },
    /// `receive_correction` (§4.9).
    ReceiveCorrection { name: String },
    /// `ack` a correction (§4.9).
    Ack { action: ActionSpec, name: String },
    /// `observe` an acknowledgement (§4.9).
    Observe { name: String },
}

/// The members of a worker status (§4.9).
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusSpec {
    /// The worker; the acting agent if absent.
    pub(crate) worker_id: Option<String>,
    /// The issue it works on.
    pub(crate) issue: i64,
    /// The task; may be empty.
    pub(crate) task_id: String,
    /// The lane.
    pub(crate) lane: String,
    /// Whether it is live.
    pub(crate) live: bool,
    /// The rising number.
    pub(crate) seq: i64,
    /// What it did last.
    pub(crate) last_action: String,
}

/// The members of a correction request (§4.9).
#[derive(Clone, Debug, Default)]
pub(crate) struct CorrectionSpec {
    /// The orchestrator; the acting agent if absent.
    pub(crate) orchestrator_id: Option<String>,
    /// The worker.
    pub(crate) worker_id: String,
    /// The issue.
    pub(crate) issue: i64,
    /// The task; may be empty.
    pub(crate) task_id: String,
    /// The lane.
    pub(crate) lane: String,
    /// The text.
    pub(crate) message: String,
    /// The status judged: absent means the worker's current one, `""` none.
    pub(crate) status_digest: Option<String>,
    /// A ceiling below the default one.
    pub(crate) max_bytes: Option<u64>,
}

/// What a worker does next.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSpec {
    /// In words.
    pub(crate) summary: String,
    /// The worker it says acts; as the correction has it if absent, and so the others.
    pub(crate) worker_id: Option<String>,
    /// The issue.
    pub(crate) issue: Option<i64>,
    /// The task.
    pub(crate) task_id: Option<String>,
    /// The lane.
    pub(crate) lane: Option<String>,
    /// The correction it says it reflects.
    pub(crate) correction_id: Option<String>,
    /// The status that correction cited.
    pub(crate) status_digest: Option<String>,
}

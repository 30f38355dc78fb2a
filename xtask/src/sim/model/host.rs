//! What the host's rungs say, in the order in which they are asked, and what the fold makes of it (§3.2, §3.4, §3.7).

use fak_abi::Reason;

use super::{Body, Cap, Model, Scope, Who};
use crate::sim::setup::Setup;

/// The acts that are played, each with its verb's tool and its capability (§2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Send,
    Publish,
    Request,
    Reply,
    Await,
    Recv,
    RecvLeased,
    Subscribe,
    Unsubscribe,
    Bind,
    Unbind,
    Widen,
    CellPut,
    CellCas,
    CellDelete,
    CellGet,
    Lease,
    Renew,
    Release,
    Check,
    TaskPatch,
    TaskView,
    TaskApprove,
    TaskReject,
    TaskWatch,
    CellWatch,
    Status,
    Correct,
    ReceiveCorrection,
    Ack,
    Observe,
    Compact,
    Resume,
    Barrier,
    Arrive,
    Depart,
    Broadcast,
    Scatter,
    Gather,
    Split,
    PoolPut,
    PoolGet,
}

impl Act {
    pub(crate) const fn tool(self) -> &'static str {
        match self {
            Self::Send => "a2a.send",
            Self::Publish => "a2a.publish",
            Self::Request => "a2a.request",
            Self::Reply => "a2a.reply",
            Self::Await => "a2a.await",
            Self::Recv => "a2a.recv",
            Self::RecvLeased => "a2a.recv_leased",
            Self::Subscribe => "a2a.subscribe",
            Self::Unsubscribe => "a2a.unsubscribe",
            Self::Bind => "a2a.bind",
            Self::Unbind => "a2a.unbind",
            Self::Widen => "ref.widen",
            Self::CellPut => "space.put",
            Self::CellCas => "space.cas",
            Self::CellDelete => "space.delete",
            Self::CellGet => "space.get",
            Self::Lease => "lane.lease",
            Self::Renew => "lane.renew",
            Self::Release => "lane.release",
            Self::Check => "lane.check",
            Self::TaskPatch => "sharedtask.patch",
            Self::TaskView => "sharedtask.view",
            Self::TaskApprove => "sharedtask.approve",
            Self::TaskReject => "sharedtask.reject",
            Self::TaskWatch => "sharedtask.watch",
            Self::CellWatch => "space.watch",
            Self::Status => "a2a.status",
            Self::Correct => "a2a.correct",
            Self::ReceiveCorrection => "a2a.receive_correction",
            Self::Ack => "a2a.ack",
            Self::Observe => "a2a.observe",
            Self::Compact => "a2a.compact",
            Self::Resume => "a2a.resume",
            Self::Barrier => "comm.barrier",
            Self::Arrive => "comm.arrive",
            Self::Depart => "comm.depart",
            Self::Broadcast => "comm.broadcast",
            Self::Scatter => "comm.scatter",
            Self::Gather => "comm.gather",
            Self::Split => "comm.split",
            Self::PoolPut => "pool.put",
            Self::PoolGet => "pool.get",
        }
    }

    pub(crate) const fn cap(self) -> Cap {
        match self {
            Self::Send
            | Self::Publish
            | Self::Request
            | Self::Reply
            | Self::Status
            | Self::Correct
            | Self::Ack
            | Self::Compact
            | Self::Arrive
            | Self::Depart => Cap::Send,
            Self::ReceiveCorrection
            | Self::Observe
            | Self::Resume
            | Self::Await
            | Self::Recv
            | Self::RecvLeased
            | Self::Subscribe
            | Self::Unsubscribe
            | Self::Bind
            | Self::Unbind => Cap::Recv,
            Self::Widen => Cap::Widen,
            Self::CellPut | Self::CellCas | Self::CellDelete => Cap::SpaceWrite,
            Self::CellGet | Self::CellWatch => Cap::SpaceRead,
            Self::Lease | Self::Renew | Self::Release | Self::Check => Cap::Lane,
            Self::TaskPatch => Cap::TaskWrite,
            Self::TaskView | Self::TaskWatch => Cap::TaskRead,
            Self::TaskApprove | Self::TaskReject => Cap::Approve,
            Self::Barrier | Self::Broadcast | Self::Scatter | Self::Gather | Self::Split => Cap::Collective,
            Self::PoolPut => Cap::PoolWrite,
            Self::PoolGet => Cap::PoolRead,
        }
    }

    /// §1.4: the capability's tool names every act it opens, a verb's tool that verb.
    fn is_named(self, tool: &str) -> bool {
        tool == self.tool() || tool == self.cap().tool()
    }
}

/// What a fickle rung is about to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Defer,
    Allow,
    Block,
    Exfil,
    Panic,
    Indeterminate,
    Quarantine,
    Confirmed,
    Refuted,
    Unknown,
    Transform,
}

impl Mood {
    pub(crate) const ALL: [Self; 11] = [
        Self::Defer,
        Self::Allow,
        Self::Block,
        Self::Exfil,
        Self::Panic,
        Self::Indeterminate,
        Self::Quarantine,
        Self::Confirmed,
        Self::Refuted,
        Self::Unknown,
        Self::Transform,
    ];

    pub(crate) fn of(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Defer)
    }
}

/// The fickle rungs: the tool that each names, in the order in which they are asked.
pub(crate) const FICKLE: [&str; 8] = [
    "a2a.publish",
    "a2a.send",
    "ref.widen",
    "space.cas",
    "a2a.recv",
    "a2a.bind",
    "space.write",
    "lane.lease",
];

/// What the result admitter does with bodies whose length is a multiple of three (§4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Hold,
    Deny,
    Panic,
}

/// How the audit log is (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ledger {
    Fine,
    /// Its queue has no slot: RATE_LIMITED.
    Full,
    /// It could not be written: DEFAULT_DENY.
    Failed,
}

/// The state of everything the host registered.
#[derive(Debug)]
pub(crate) struct HostRungs {
    pub(crate) policy: u8,
    pub(crate) moods: [Mood; FICKLE.len()],
    pub(crate) door: Door,
    /// What the audit log says to acts that everybody else allows (§3.6).
    pub(crate) audit: Ledger,
    /// What the meter lets pass still.
    pub(crate) sends: u32,
    pub(crate) recvs: u32,
}

impl HostRungs {
    pub(crate) fn new(setup: &Setup) -> Self {
        let _ = setup;
        Self {
            policy: 0,
            moods: [Mood::Defer; FICKLE.len()],
            door: Door::Open,
            audit: Ledger::Fine,
            sends: 20,
            recvs: 20,
        }
    }
}

/// The policies that are reloaded into each other, as text and as code.
pub(crate) const POLICIES: [&str; 5] = [
    "version = 1\n[[allow]]\ntool = \"*\"\n",
    "version = 1\n[[allow]]\ntool = \"*\"\n[[deny]]\ntool = \"a2a.send\"\nagent = \"a1\"\nreason = \"SELF_MODIFY\"\n",
    "version = 1\n[[allow]]\ntool = \"a2a.*\"\n",
    "version = 1\n[[allow]]\ntool = \"*\"\n[[deny]]\ntool = \"a2a.publish\"\naddress = \"in_kernel:room-1\"\n\
     [[deny]]\ntool = \"a2a.bind\"\nfleet = \"f1\"\n",
    "version = 1\n[[allow]]\ntool = \"*\"\nmax_bytes = 40\n[[allow]]\ntool = \"a2a.recv\"\n\
     [[deny]]\ntool = \"a2a.*\"\nscope = \"tenant\"\n",
];

impl Model {
    /// What the policy says; `None` without one.
    fn policy(&self, act: Act, who: Who, address: &str, body: Option<&Body>) -> Option<Result<(), Reason>> {
        if !self.setup.policy {
            return None;
        }
        let agent = self.agent(who);
        let blocked = Err(Reason::PolicyBlock);
        let otherwise = Err(Reason::DefaultDeny);
        let named = |id: &str| agent.is_some_and(|agent| agent.id == id);
        Some(match self.host.policy {
            1 if act.is_named("a2a.send") && named("a1") => Err(Reason::SelfModify),
            2 if act.cap() != Cap::Send && act.cap() != Cap::Recv => otherwise,
            3 if act == Act::Publish && address == "in_kernel:room-1" => blocked,
            3 if act == Act::Bind && self.fleet(who) == Some(1) => blocked,
            4 if (act.tool().starts_with("a2a.") || act.cap().tool().starts_with("a2a."))
                && body.is_some_and(|body| body.scope == Scope::Tenant) =>
            {
                blocked
            }
            // An allow with `max_bytes` matches only acts with a body, up to that.
            4 if act.cap() == Cap::Recv => Ok(()),
            4 if body.is_none_or(|body| body.text.len() > 40) => otherwise,
            _ => Ok(()),
        })
    }

    /// The fold of the host's rungs after a floor that allows (§3.2); `to` is whom the address resolves to. The body that
    /// goes on, if a transform made one.
    pub(crate) fn fold(
        &self,
        act: Act,
        who: Who,
        to: Option<Who>,
        address: &str,
        body: Option<&Body>,
    ) -> Result<Option<Body>, Reason> {
        let mut transform = None;
        let (mut quarantine, mut refuted, mut unknown) = (false, false, false);
        let mut indeterminate = false;
        let before = FICKLE.len() / 2;
        for (at, (tool, mood)) in FICKLE.iter().zip(self.host.moods).enumerate() {
            if at == before
                && let Some(Err(reason)) = self.policy(act, who, address, body)
            {
                return Err(reason);
            }
            let answers = matches!(act, Act::Reply | Act::Ack);
            if at == before
                && let Some(to) = to
                && !self.has_way(who, to, answers)
            {
                return Err(Reason::PolicyBlock);
            }
            if !self.setup.fickle || !act.is_named(tool) {
                continue;
            }
            match mood {
                Mood::Defer | Mood::Allow | Mood::Confirmed => {}
                Mood::Block => return Err(Reason::PolicyBlock),
                Mood::Exfil => return Err(Reason::SecretExfil),
                Mood::Panic => return Err(Reason::DefaultDeny),
                Mood::Indeterminate => indeterminate = true,
                Mood::Quarantine => quarantine = true,
                Mood::Refuted => refuted = true,
                Mood::Unknown => unknown = true,
                Mood::Transform if transform.is_some() => return Err(Reason::Malformed),
                Mood::Transform => {
                    // A call without a body has nothing that could keep its owner.
                    let Some(body) = body else { return Err(Reason::TrustViolation) };
                    let text = format!("{}{}", super::super::TRANSFORMED, body.text);
                    transform = Some(Body { text, pooled: false, ..body.clone() });
                }
            }
        }
        let _ = indeterminate;
        if refuted {
            return Err(Reason::TrustViolation);
        }
        if unknown {
            return Err(Reason::Unwitnessed);
        }
        if quarantine {
            return Err(Reason::TrustViolation);
        }
        Ok(transform)
    }

    /// The meter of an act, if it is metered.
    pub(crate) fn meter(&mut self, act: Act) -> Option<&mut u32> {
        if !self.setup.metered {
            return None;
        }
        match act.cap() {
            Cap::Send => Some(&mut self.host.sends),
            Cap::Recv => Some(&mut self.host.recvs),
            _ => None,
        }
    }

    /// Whether the act may still be counted; it is not counted yet.
    pub(crate) fn has_credit(&mut self, act: Act) -> bool {
        self.meter(act).is_none_or(|left| *left > 0)
    }

    /// Counts an act that was finally allowed.
    pub(crate) fn count(&mut self, act: Act) {
        if let Some(left) = self.meter(act) {
            *left = left.saturating_sub(1);
        }
    }

    /// True if the admitter keeps a text out of a context.
    pub(crate) fn holds_back(&self, text: &str) -> bool {
        self.host.door != Door::Open && text.len().is_multiple_of(3)
    }
}

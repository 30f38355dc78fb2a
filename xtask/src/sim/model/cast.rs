//! Who acts, what they hold, and the flow rule (§2.3, §2.4).

use super::Model;
use crate::sim::{MARK, SECRETIVE};

/// One incarnation: the index of an attachment.
pub(crate) type Who = usize;

/// A scope, as the specification orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Scope {
    #[default]
    Agent,
    Fleet,
    Tenant,
}

/// The capabilities that the acts here need, each a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cap {
    Send,
    Recv,
    Widen,
    SpaceWrite,
    SpaceRead,
    TaskWrite,
    TaskRead,
    Approve,
    Lane,
    Collective,
    PoolWrite,
    PoolRead,
}

impl Cap {
    pub(crate) const ALL: [Self; 12] = [
        Self::Send,
        Self::Recv,
        Self::Widen,
        Self::SpaceWrite,
        Self::SpaceRead,
        Self::TaskWrite,
        Self::TaskRead,
        Self::Approve,
        Self::Lane,
        Self::Collective,
        Self::PoolWrite,
        Self::PoolRead,
    ];

    /// The capability's own tool (§2.8).
    pub(crate) const fn tool(self) -> &'static str {
        match self {
            Self::Send => "a2a.send",
            Self::Recv => "a2a.recv",
            Self::Widen => "ref.widen",
            Self::SpaceWrite => "space.write",
            Self::SpaceRead => "space.read",
            Self::TaskWrite => "sharedtask.write",
            Self::TaskRead => "sharedtask.read",
            Self::Approve => "sharedtask.approve",
            Self::Lane => "lane.lease",
            Self::Collective => "comm.collective",
            Self::PoolWrite => "pool.write",
            Self::PoolRead => "pool.read",
        }
    }
}

/// One attachment of a name.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) trace: String,
    pub(crate) fleet: Option<u8>,
    pub(crate) tenant: Option<u8>,
    pub(crate) human: bool,
    pub(crate) caps: Vec<Cap>,
    pub(crate) live: bool,
    /// Mailboxes it made, and waits it has (§4.12).
    pub(crate) made: u32,
}

/// A value: text, and its label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Body {
    pub(crate) text: String,
    pub(crate) owner: Who,
    pub(crate) scope: Scope,
    pub(crate) quarantined: bool,
    /// Made from parts of others (§6.4).
    pub(crate) derived: bool,
    /// Its bytes are in the pool: the limit of inline bodies is none of its (§4.3 row 6).
    pub(crate) pooled: bool,
}

impl Model {
    pub(crate) fn agent(&self, who: Who) -> Option<&Agent> {
        self.agents.get(who)
    }

    pub(crate) fn is_live(&self, who: Who) -> bool {
        self.agent(who).is_some_and(|agent| agent.live)
    }

    pub(crate) fn holds(&self, who: Who, cap: Cap) -> bool {
        self.agent(who).is_some_and(|agent| agent.caps.contains(&cap))
    }

    pub(crate) fn fleet(&self, who: Who) -> Option<u8> {
        self.agent(who).and_then(|agent| agent.fleet)
    }

    pub(crate) fn tenant(&self, who: Who) -> Option<u8> {
        self.agent(who).and_then(|agent| agent.tenant)
    }

    /// §2.4, quarantine aside.
    pub(crate) fn would_flow(&self, body: &Body, to: Who) -> bool {
        match body.scope {
            Scope::Agent => body.owner == to,
            Scope::Fleet => self.fleet(to).is_some() && self.fleet(to) == self.fleet(body.owner),
            Scope::Tenant => self.tenant(to).is_some() && self.tenant(to) == self.tenant(body.owner),
        }
    }

    /// §2.4.
    pub(crate) fn flows(&self, body: &Body, to: Who) -> bool {
        !body.quarantined && self.would_flow(body, to)
    }

    /// The attached incarnation of an id, and of a trace.
    pub(crate) fn attached(&self, id: &str) -> Option<Who> {
        self.agents.iter().position(|agent| agent.live && agent.id == id)
    }

    pub(crate) fn session(&self, trace: &str) -> Option<Who> {
        self.agents.iter().position(|agent| agent.live && agent.trace == trace)
    }

    /// Text that nobody else's body has: every body can be told from every other wherever it shows up.
    pub(crate) fn fresh_text(&mut self, who: Who, padding: u8) -> String {
        self.marks += 1;
        let is_secret = self.agent(who).is_some_and(|agent| agent.id == SECRETIVE);
        let letter = self.setup.secret.filter(|_| is_secret).unwrap_or('-');
        // Now and then a large one: what makes room for it is not one value alone.
        let length = if padding < 236 { padding % 40 + 1 } else { padding - 235 };
        let length = usize::from(length) * if padding < 236 { 1 } else { 60 };
        let padding: String = std::iter::repeat_n(letter, length).collect();
        format!("{MARK}{};{padding}", self.marks)
    }
}

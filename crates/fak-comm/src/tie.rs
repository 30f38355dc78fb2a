//! A layer's tie to the one kernel it is built into (§3.1), and the refusal of handles of any other.

use std::sync::OnceLock;

use fak_abi::{
    Admission, AgentHandle, DriverLink, Explanation, InstallError, Reason, Refusal, RungName, SiteInfo,
    ToolCall, Verdict,
};

const FOREIGN: &SiteInfo = &SiteInfo {
    check: "comm/foreign",
    clause: "§3.1",
    refuses: "an act of a handle of another kernel, or before the layer is built into one",
    next: "act with a handle of the kernel that the group, barrier or arbiter was built into",
};

/// What every layer here checks before its acts, for explain.
pub(crate) const FOREIGN_SITE: SiteInfo = *FOREIGN;

/// The link a kernel gave, once it has.
pub(crate) struct Tie {
    layer: RungName,
    link: OnceLock<DriverLink>,
}

impl Tie {
    pub(crate) const fn new(layer: RungName) -> Self {
        Self { layer, link: OnceLock::new() }
    }

    pub(crate) const fn layer(&self) -> RungName {
        self.layer
    }

    pub(crate) fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.link.set(link).map_err(|_| InstallError(self.layer))
    }

    /// The link, if `call` is by a principal of the same kernel; the audited refusal otherwise.
    pub(crate) fn own(&self, call: &ToolCall<'_>) -> Result<&DriverLink, Verdict> {
        let foreign = Refusal::new(Reason::TrustViolation, FOREIGN.site());
        let Some(link) = self.link.get() else { return Err(Verdict::deny(foreign, self.layer)) };
        if call.principal().tag() == link.tag() {
            return Ok(link);
        }
        let Some(host) = link.host() else { return Err(Verdict::deny(foreign, self.layer)) };
        let verdict = match host.admit_any(call) {
            Admission::Refuse(verdict) => verdict,
            Admission::Permit(permit) => permit.refuse(foreign, self.layer),
        };
        Err(verdict)
    }

    /// Why a call would be answered as it would be: by the kernel of this layer, also to a handle of another (§3.5).
    pub(crate) fn explain(&self, agent: &AgentHandle, call: &ToolCall<'_>) -> Explanation {
        match self.link().and_then(DriverLink::host) {
            Some(host) => host.explain(call),
            None => agent.gate().explain(call),
        }
    }

    /// The link, if there is one yet.
    pub(crate) fn link(&self) -> Option<&DriverLink> {
        self.link.get()
    }
}

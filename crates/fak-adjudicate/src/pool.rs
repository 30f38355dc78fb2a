//! The content-addressed pool (§3.9): `pool.put` and `pool.get` as acts. Bytes are shared by
//! digest; who may have them is kept per owner and scope. What is stored, and what makes room for
//! what, is in `store`.

mod floor;
mod store;

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use fak_abi::{
    Act, Adjudicator, Admission, AgentHandle, CapSet, Capability, Charge, Digest, Driver, DriverLink,
    Explanation, Host, InstallError, Outcome, Principal, Reason, Ref, Refusal, RungName, ToolCall, Verdict,
};
use parking_lot::Mutex;

pub use floor::{POOL, POOL_SITES};

use floor::PoolFloor;
use store::Store;

/// How much a pool holds (§3.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Bytes of all values, and 256 for each value and each owner and scope it is kept for; default
    /// 256 MiB.
    pub bytes: NonZeroUsize,
    /// How much of that the values first put by one principal may take, so that it cannot exhaust
    /// the others; default three quarters.
    pub share: Option<NonZeroUsize>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { bytes: NonZeroUsize::MIN.saturating_add((256 << 20) - 1), share: None }
    }
}

impl PoolOptions {
    fn share(self) -> usize {
        self.share.map_or(self.bytes.get() - self.bytes.get() / 4, NonZeroUsize::get)
    }
}

/// Values shared by their content between the agents of one kernel (§3.9).
///
/// Built first, then handed to the kernel's builder as a driver. A value a Ref points to is pinned;
/// of the others the least recently used makes room.
///
/// ```
/// use std::sync::Arc;
/// use fak_abi::{CapSet, Id, PrincipalSpec};
/// use fak_adjudicate::{Kernel, Pool, PoolOptions};
/// let pool = Arc::new(Pool::new(PoolOptions::default()));
/// let kernel = Kernel::builder().driver(pool.clone()).build()?;
/// let alpha = kernel.attach(PrincipalSpec::agent(Id::new("alpha")?).caps(CapSet::ALL))?;
/// let kept = pool.put(&alpha, &alpha.mint("a long text")).ok()?;
/// let got = pool.get(&alpha, kept.digest()).ok()?;
/// assert_eq!(alpha.read(&got).ok()?, "a long text");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pool {
    options: PoolOptions,
    link: OnceLock<DriverLink>,
    store: Mutex<Store>,
}

impl Pool {
    /// An empty pool that belongs to no kernel yet.
    #[must_use]
    pub fn new(options: PoolOptions) -> Self {
        let store = Store::new(options.bytes.get(), options.share());
        Self { options, link: OnceLock::new(), store: Mutex::new(store) }
    }

    /// The act `pool.put`: keeps a value under its digest, and answers the Ref that pins it. Owner
    /// and scope stay as they are; putting one's own value again joins the taints.
    ///
    /// Refused: OVERSIZE if the value is larger than the pool, RATE_LIMITED if everything that could
    /// make room is pinned, TRUST_VIOLATION for a value that may not flow to the agent.
    pub fn put(&self, agent: &AgentHandle, body: &Ref) -> Outcome<Ref> {
        let call = ToolCall::new(agent, Act::PoolPut).args(body);
        let Some((link, host)) = self.host() else { return unbuilt() };
        let permit = match host.admit_any(&call) {
            Admission::Permit(permit) => permit,
            Admission::Refuse(verdict) => return Outcome::Refuse(verdict),
        };
        let by = permit.by();
        let cleared = match permit.charge() {
            Charge::Cleared(cleared) => cleared,
            Charge::Refuse(verdict) => return Outcome::Refuse(verdict),
        };
        let body = cleared.transformed().unwrap_or(body).clone();
        match self.keep(&*host, agent, &body) {
            Ok(value) => {
                let _ = cleared.allow(link.sequence().next());
                Outcome::Allow { value, by }
            }
            Err(refusal) => Outcome::Refuse(cleared.refuse(refusal, POOL)),
        }
    }

    fn keep(&self, host: &dyn Host, agent: &AgentHandle, body: &Ref) -> Result<Ref, Refusal> {
        let bytes = host.resolver().bytes(body).map_err(|_| floor::flow())?;
        // Hashed before the lock is taken, and freed after it is released.
        let digest = body.digest();
        let mut evicted = Vec::new();
        let kept = self.store.lock().put(host, agent.principal(), body, (digest, bytes), &mut evicted);
        drop(evicted);
        if !agent.principal().is_attached() {
            // A detach that came between has dropped what there was before it.
            let freed = self.store.lock().forget(agent.principal());
            drop(freed);
        }
        kept
    }

    /// The act `pool.get`: the value of that digest, as the reader's own entry has it, else as that
    /// of the smallest owner id among those that may flow to it; taint joined over all of those.
    ///
    /// Refused: MISROUTE if nothing of that digest is kept, TRUST_VIOLATION if nothing that is may
    /// flow to the agent; answered `quarantine` if a result admitter holds it (§4.4).
    pub fn get(&self, agent: &AgentHandle, digest: Digest) -> Outcome<Ref> {
        let call = ToolCall::new(agent, Act::PoolGet);
        let Some((link, host)) = self.host() else { return unbuilt() };
        let permit = match host.admit_any(&call) {
            Admission::Permit(permit) => permit,
            Admission::Refuse(verdict) => return Outcome::Refuse(verdict),
        };
        let found = self.store.lock().get(&*host, agent.principal(), digest);
        let value = match found {
            Ok(value) => value,
            Err(refusal) => return Outcome::Refuse(permit.refuse(refusal, POOL)),
        };
        // What is handed over is what the act is counted and audited with.
        let permit = permit.transform(Some(value.clone()));
        if let held @ (Verdict::Quarantine { .. } | Verdict::Deny { .. }) = host.screen(&call, &value) {
            return Outcome::Refuse(permit.hold(held.by(), link.sequence().next()));
        }
        let by = permit.by();
        match permit.charge() {
            Charge::Refuse(verdict) => Outcome::Refuse(verdict),
            Charge::Cleared(cleared) => {
                let _ = cleared.allow(link.sequence().next());
                Outcome::Allow { value, by }
            }
        }
    }

    /// Explains what [`Pool::put`] would answer now (§3.5). Keeps nothing.
    #[must_use]
    pub fn explain_put(&self, agent: &AgentHandle, body: &Ref) -> Explanation {
        let call = ToolCall::new(agent, Act::PoolPut).args(body);
        self.explain(agent, &call, |_| self.store.lock().check_put(agent.principal(), body))
    }

    /// Explains what [`Pool::get`] would answer now (§3.5). Hands nothing over and makes nothing
    /// look used.
    #[must_use]
    pub fn explain_get(&self, agent: &AgentHandle, digest: Digest) -> Explanation {
        let call = ToolCall::new(agent, Act::PoolGet);
        self.explain(agent, &call, |host| self.store.lock().find(host, agent.principal(), digest).map(drop))
    }

    /// The kernel's explanation, and after it the pool's own checks.
    fn explain(
        &self,
        agent: &AgentHandle,
        call: &ToolCall<'_>,
        check: impl FnOnce(&dyn Host) -> Result<(), Refusal>,
    ) -> Explanation {
        let own = self.host().filter(|(link, _)| link.tag() == agent.tag());
        let explained = agent.gate().explain(call);
        let refusal = match own {
            // Of another kernel: refused before that one is asked.
            None => Refusal::new(Reason::TrustViolation, floor::UNBUILT.site()),
            Some(_) if !explained.verdict.is_allow() => return explained,
            Some((_, host)) => match check(&*host) {
                Ok(()) => return explained,
                Err(refusal) => refusal,
            },
        };
        let site = POOL_SITES.iter().find(|info| info.check == refusal.site.check()).copied();
        let next = site.map_or(refusal.reason.advice(), |info| info.next).to_owned();
        explained.decided(Verdict::deny(refusal, POOL), site, next)
    }

    /// How many bytes are taken, as [`PoolOptions::bytes`] counts them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.store.lock().bytes()
    }

    /// How many values are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.lock().len()
    }

    /// True if no value is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of the values are pinned by a Ref.
    #[must_use]
    pub fn pinned(&self) -> usize {
        self.store.lock().pinned()
    }

    fn host(&self) -> Option<(&DriverLink, Arc<dyn Host>)> {
        let link = self.link.get()?;
        Some((link, link.host()?))
    }
}

/// The pool was never built into a kernel, or that kernel is gone.
fn unbuilt<T>() -> Outcome<T> {
    Outcome::deny(Refusal::new(Reason::TrustViolation, floor::UNBUILT.site()), POOL)
}

impl Driver for Pool {
    fn name(&self) -> RungName {
        POOL
    }

    fn capabilities(&self) -> CapSet {
        CapSet::of(&[Capability::PoolWrite, Capability::PoolRead])
    }

    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        vec![Arc::new(PoolFloor::new(self.options.bytes.get().min(self.options.share())))]
    }

    fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.link.set(link).map_err(|_| InstallError(POOL))
    }

    /// Private values of who is gone can flow to nobody any more.
    fn detached(&self, principal: &Arc<Principal>) {
        let freed = self.store.lock().forget(principal);
        drop(freed);
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("options", &self.options).finish_non_exhaustive()
    }
}

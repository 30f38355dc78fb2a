//! Binding a key: from then on only its binder receives there (§4.6).

use std::fmt;
use std::sync::Arc;

use fak_abi::{Act, Address, ChannelKey, Outcome, Reason, ToolCall, Verdict};

use crate::core::Ownership;
use crate::delivery::End;
use crate::endpoint::Endpoint;
use crate::mailbox::{Bind, Mailbox};
use crate::message::Cause;
use crate::send::refusal;
use crate::sites;

/// A bound key (§4.6). Dropping it unbinds the key, unless it is [kept](Binding::keep).
///
/// ```
/// # use fak_a2achan::{Bus, BusConfig};
/// # use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, ShareScope};
/// # use fak_adjudicate::Kernel;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let bus = Bus::new(BusConfig::default())?;
/// # let kernel = Kernel::builder().driver(bus.driver()).build()?;
/// # let attach = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
/// #     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?);
/// #     Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
/// # };
/// # let (alpha, bravo) = (attach("alpha")?, attach("bravo")?);
/// # let work = ChannelKey::new(Locale::InKernel, "work")?;
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).ok()?;
/// let desk = bus.endpoint(&bravo).bind(&work).ok()?;
/// // From here on only bravo receives there, and sends are checked against it.
/// let mine = bus.endpoint(&alpha).try_recv(&work);
/// assert_eq!(mine.refusal().and_then(|verdict| verdict.reason()), Some(fak_abi::Reason::TrustViolation));
/// drop(desk);
/// assert!(bus.endpoint(&alpha).bind(&work).is_allow());
/// # Ok(())
/// # }
/// ```
#[must_use = "a binding ends when it is dropped"]
pub struct Binding {
    endpoint: Endpoint,
    mailbox: Arc<Mailbox>,
    key: ChannelKey,
    number: u64,
    open: bool,
}

impl Endpoint {
    /// Binds a key (§4.6): only this agent receives there from now on, and sends there are checked
    /// against it. What is queued and not for this agent becomes dead letters.
    pub fn bind(&self, key: &ChannelKey) -> Outcome<Binding> {
        let call = ToolCall::new(self.agent(), Act::Bind).address(Address::Channel(key));
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        let core = self.core();
        let refused = match core.ownership(key) {
            Ownership::Session(owner) | Ownership::Reserved(owner) if !Arc::ptr_eq(&owner, self.me()) => {
                Some(refusal(Reason::TrustViolation, sites::BIND_RESERVED))
            }
            Ownership::ActOnly(owner) if !Arc::ptr_eq(&owner, self.me()) => {
                Some(refusal(Reason::TrustViolation, sites::ACT_ONLY))
            }
            _ if core.is_closed() => Some(refusal(Reason::Misroute, sites::CLOSED)),
            _ => None,
        };
        if let Some(refusal) = refused {
            return Outcome::Refuse(self.refuse(permit, refusal));
        }
        let Some(account) = self.account() else {
            return Outcome::Refuse(self.refuse(permit, refusal(Reason::TrustViolation, sites::FOREIGN)));
        };
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        // A mailbox may be retired between finding and binding it; then it is made anew.
        loop {
            let mailbox = match core.find(key) {
                Some(mailbox) => mailbox,
                None if account.mailboxes.take(account.limits().mailboxes) => core.make(key, Some(account)),
                None => {
                    let refusal = refusal(Reason::RateLimited, sites::MAILBOXES);
                    return Outcome::Refuse(self.revoke(cleared, refusal));
                }
            };
            // Purges only where it binds.
            let (bind, purge) = mailbox.bind(self.me());
            let (reason, site) = match bind {
                Bind::Bound(number) => {
                    let binding =
                        Binding { endpoint: self.clone(), mailbox, key: key.clone(), number, open: true };
                    if !self.me().is_attached() {
                        // Detached meanwhile: it is unbound, and was of no use to anybody.
                        core.bury(purge, Cause::Bind);
                        drop(binding);
                        core.tidy(key);
                        let refusal = refusal(Reason::DefaultDeny, sites::DETACHED);
                        return Outcome::Refuse(self.revoke(cleared, refusal));
                    }
                    core.note_known(key);
                    let verdict = cleared.allow(0);
                    core.bury(purge, Cause::Bind);
                    return Outcome::Allow { value: binding, by: verdict.by() };
                }
                Bind::End if !self.me().is_attached() => (Reason::DefaultDeny, sites::DETACHED),
                Bind::End if !core.is_closed() => {
                    core.forget(key, &mailbox);
                    continue;
                }
                Bind::End => (Reason::Misroute, sites::CLOSED),
                Bind::Held => (Reason::LeaseHeld, sites::BIND_HELD),
                Bind::Reserved => (Reason::TrustViolation, sites::BIND_RESERVED),
                Bind::Waiting => (Reason::TrustViolation, sites::BIND_WAITING),
            };
            return Outcome::Refuse(self.revoke(cleared, refusal(reason, site)));
        }
    }

    /// Frees a key that this agent has bound: its waits there end, what is queued becomes dead
    /// letters (§4.6, §4.11).
    pub fn unbind(&self, key: &ChannelKey) -> Verdict {
        let call = ToolCall::new(self.agent(), Act::Unbind).address(Address::Channel(key));
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return verdict,
        };
        let mailbox = self.core().find(key);
        let owner = match &mailbox {
            Some(mailbox) => mailbox.binder(),
            None => self.core().session_owner(key),
        };
        let refused = match &owner {
            _ if self.core().is_closed() => Some(refusal(Reason::Misroute, sites::CLOSED)),
            None => Some(refusal(Reason::Misroute, sites::UNBIND_FREE)),
            Some(owner) if !Arc::ptr_eq(owner, self.me()) => {
                Some(refusal(Reason::TrustViolation, sites::UNBIND_OTHER))
            }
            Some(_) => None,
        };
        if let Some(refusal) = refused {
            return self.refuse(permit, refusal);
        }
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return verdict,
        };
        let (at, link) = (mailbox, self.core().link());
        let purge = at.zip(link).and_then(|(at, link)| at.unbind(self.me(), None, link.sequence()).ok());
        let verdict = cleared.allow(0);
        // After the entry: what is woken is foreign code.
        purge.into_iter().for_each(|purge| self.core().bury(purge, Cause::End(End::Unbind)));
        verdict
    }
}

impl Binding {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &ChannelKey {
        &self.key
    }

    /// Keeps the key bound until it is [unbound](Endpoint::unbind) or the agent is detached.
    pub fn keep(mut self) {
        self.open = false;
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        let core = self.endpoint.core();
        if self.open
            && let Some(link) = core.link()
            && let Ok(purge) = self.mailbox.unbind(self.endpoint.me(), Some(self.number), link.sequence())
        {
            core.bury(purge, Cause::End(End::Unbind));
        }
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binding({} by {:?})", self.key, self.endpoint.me())
    }
}

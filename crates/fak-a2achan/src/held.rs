//! Messages that were held out of a receiver's context, and who may look at them (§4.4).

use std::sync::Arc;

use fak_abi::{Act, Outcome, OwnedAddress, Principal, Reason, Ref, RungName, ToolCall};

use crate::endpoint::Endpoint;
use crate::send::refusal;
use crate::sites;

/// A message that was held (§4.4).
#[derive(Debug, Clone)]
pub struct HeldMessage {
    /// Who sent it.
    pub from: Arc<Principal>,
    /// Who was to receive it.
    pub receiver: Arc<Principal>,
    /// Where it was sent or published.
    pub to: OwnedAddress,
    /// Its number.
    pub seq: u64,
    /// What it says. Read it with [`Endpoint::read_held`].
    pub body: Ref,
    /// The rung that held it.
    pub by: RungName,
}

impl Endpoint {
    /// Lists the held messages whose bodies would flow to this agent were they not quarantined.
    /// An act: it needs `forensics.read`.
    pub fn held(&self) -> Outcome<Vec<HeldMessage>> {
        let call = ToolCall::new(self.agent(), Act::Forensics);
        let cleared = match self.decide(&call) {
            Ok(cleared) => cleared,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        let reader = self.agent().principal();
        let held = self.core().held.lock();
        let value = held.iter().filter(|held| held.body.would_flow_to(reader)).cloned().collect();
        drop(held);
        let verdict = cleared.allow(0);
        Outcome::Allow { value, by: verdict.by() }
    }

    /// Reads the body of a held message: an act that needs `forensics.read`.
    pub fn read_held(&self, message: &HeldMessage) -> Outcome<bytes::Bytes> {
        let call = ToolCall::new(self.agent(), Act::Forensics).address(message.to.view());
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        let reader = self.agent().principal();
        let host = self.core().host().filter(|_| message.body.would_flow_to(reader));
        let Some(bytes) = host.and_then(|host| host.resolver().bytes(&message.body).ok()) else {
            let refusal = refusal(Reason::TrustViolation, sites::HELD_UNREADABLE);
            return Outcome::Refuse(self.refuse(permit, refusal));
        };
        match self.charge(permit) {
            Ok(cleared) => {
                let verdict = cleared.allow(message.seq);
                Outcome::Allow { value: bytes, by: verdict.by() }
            }
            Err(verdict) => Outcome::Refuse(verdict),
        }
    }
}

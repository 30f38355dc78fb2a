//! How an answer of the product is held against the model's.

use fak_a2achan::{Delivery, End, LeasedMessage, Message};
use fak_abi::{Outcome, Reason, ShareScope, Verdict};

use super::Sim;
use crate::sim::fault::{Fault, Step, ensure};
use crate::sim::model::channels::Got;
use crate::sim::model::{Msg, Scope, Who};
use crate::sim::real::Received;

/// A verdict as the model would say it.
pub(super) fn said(verdict: &Verdict) -> Result<(), Option<Reason>> {
    if verdict.is_allow() { Ok(()) } else { Err(verdict.reason()) }
}

/// The verdict must be the model's.
pub(super) fn verdict(what: &str, product: &Verdict, model: Result<(), Reason>) -> Step {
    let model = model.map_err(Some);
    ensure!(said(product) == model, "{what}: the product says {product}, the model {model:?}");
    Ok(())
}

/// The outcome must be the model's; what it hands over, if it does.
pub(super) fn outcome<T, M>(
    what: &str,
    product: Outcome<T>,
    model: Result<M, Reason>,
) -> Result<Option<(T, M)>, Fault> {
    verdict(what, &product.verdict(), model.as_ref().map(|_| ()).map_err(|reason| *reason))?;
    Ok(product.allowed().zip(model.ok()))
}

pub(super) const fn scope(scope: Scope) -> ShareScope {
    match scope {
        Scope::Agent => ShareScope::Agent,
        Scope::Fleet => ShareScope::Fleet,
        Scope::Tenant => ShareScope::Tenant,
    }
}

fn end_name(end: End) -> &'static str {
    end.name()
}

impl Sim {
    /// As [`Self::delivery`], of what is handed over under a guard; the guard is kept.
    pub(super) fn leased(
        &mut self,
        who: Who,
        product: Delivery<LeasedMessage>,
        missed: u64,
        model: &Got,
    ) -> Step {
        let plain = match product {
            Delivery::Message(guard) => {
                let Got::Message(msg) = model else {
                    return Err(Fault::new(format!(
                        "leased receive by {who}: {guard:?}, the model says {model:?}"
                    )));
                };
                self.show(who, &format!("{guard:?}"));
                let (message, returns) = (guard.message(), guard.message().redeliveries());
                ensure!(
                    message.missed() == missed,
                    "§4.5: told of {} lost copies under a guard, the model says {missed}",
                    message.missed()
                );
                ensure!(
                    returns == msg.returns,
                    "§4.4: put back {returns} times, the model says {}",
                    msg.returns
                );
                self.message(who, message, msg)?;
                if let Some(at) = msg.request {
                    // It may be answered while it is under the guard.
                    self.model.inbox.push((who, at, returns));
                    self.real.inbox.push(Received::Guard(self.real.guards.len()));
                }
                self.real.guards.push(Some(guard));
                return Ok(());
            }
            Delivery::Empty => Delivery::Empty,
            Delivery::Hold(notice) => Delivery::Hold(notice),
            Delivery::Refuse(verdict) => Delivery::Refuse(verdict),
            Delivery::End(end) => Delivery::End(end),
        };
        self.delivery(who, plain, 0, model)
    }

    /// A delivery must be what the model says, and only what its receiver may see.
    pub(super) fn delivery(&mut self, who: Who, product: Delivery, missed: u64, model: &Got) -> Step {
        self.show(who, &format!("{product:?}"));
        let fits = match (&product, model) {
            (Delivery::Message(message), Got::Message(msg)) => {
                ensure!(
                    message.missed() == missed,
                    "§4.5: told of {} lost copies, the model says {missed}",
                    message.missed()
                );
                self.message(who, message, msg)?;
                ensure!(
                    message.is_request() == msg.request.is_some(),
                    "§4.7: taken for a request, or not: {message:?}"
                );
                if let (Some(at), Delivery::Message(message)) = (msg.request, product) {
                    self.model.inbox.push((who, at, msg.returns));
                    self.real.inbox.push(Received::Message(message));
                }
                return Ok(());
            }
            (Delivery::Hold(notice), Got::Held(msg)) => {
                let digest = fak_abi::Digest::of(msg.body.text.as_bytes());
                ensure!(
                    notice.digest == digest,
                    "§4.4: another message is held than the model says: {notice:?}"
                );
                return self.number(msg.order, notice.seq);
            }
            (Delivery::Empty, Got::Empty) => true,
            (Delivery::Refuse(verdict), Got::Refused(reason)) => said(verdict) == Err(Some(*reason)),
            (Delivery::End(end), Got::End(name)) => end_name(*end) == *name,
            _ => false,
        };
        let shown = match &product {
            Delivery::Refuse(verdict) => verdict.to_string(),
            other => format!("{other:?}"),
        };
        ensure!(fits, "receive by {who}: the product says {shown}, the model {model:?}");
        Ok(())
    }

    /// A message that arrived: the right one, with its label unchanged, for somebody it may flow to, and readable.
    fn message(&mut self, who: Who, product: &Message, model: &Msg) -> Step {
        let body = product.body();
        let receiver = self.real.agents.get(who).map(|endpoint| endpoint.agent().clone());
        let Some(receiver) = receiver else { return Ok(()) };
        ensure!(
            self.model.flows(&model.body, who),
            "§2.4: {who} received a message that may not flow to it: {product:?}"
        );
        let read = receiver.read(body);
        let Some(bytes) = read.allowed() else {
            return Err(Fault::new(format!("§4.4: {who} cannot read what it received: {product:?}")));
        };
        ensure!(
            bytes.as_ref() == model.body.text.as_bytes(),
            "§4.4: {who} received {:?}, the model says {:?}",
            String::from_utf8_lossy(&bytes),
            model.body.text
        );
        ensure!(body.scope() == scope(model.body.scope), "§1.2: the scope changed on the way: {product:?}");
        let owner = self.model.agent(model.body.owner).map(|agent| agent.id.clone()).unwrap_or_default();
        ensure!(body.owner().id().as_str() == owner, "§1.2: the owner changed on the way: {product:?}");
        let from = self.model.agent(model.from).map(|agent| agent.id.clone()).unwrap_or_default();
        ensure!(product.from().id().as_str() == from, "§4.2: it is said to be from another: {product:?}");
        self.number(model.order, product.seq())
    }

    /// §4.2: numbers rise with the order in which messages were accepted, and one message has one number.
    pub(super) fn number(&mut self, order: u64, seq: u64) -> Step {
        let seqs = &mut self.model.seqs;
        if let Some(known) = seqs.get(&order) {
            ensure!(*known == seq, "§4.2: one message had the numbers {known} and {seq}");
            return Ok(());
        }
        let below = seqs.range(..order).next_back().is_none_or(|(_, below)| *below < seq);
        let above = seqs.range(order..).next().is_none_or(|(_, above)| seq < *above);
        ensure!(below && above, "§4.2: message {order} has the number {seq}, out of order: {seqs:?}");
        seqs.insert(order, seq);
        Ok(())
    }
}

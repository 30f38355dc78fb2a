//! The bus as its kernel sees it: the floor rung, and what attaching and detaching change (§2.3,
//! §4.6).

use std::sync::Arc;

use fak_abi::{
    Adjudicator, CapSet, Capability, ChannelKey, Digest, Driver, DriverLink, Engine, Id, InstallError,
    Locale, MAX_ID_BYTES, Principal, RungName,
};

use crate::account::Account;
use crate::core::{ACK, CORRECTION, Core, GATE, STATUS};
use crate::correction::CorrectionRung;
use crate::delivery::End;
use crate::engine::Inboxes;
use crate::gate::Gate;
use crate::message::Cause;

/// See the module.
pub(crate) struct BusDriver(pub(crate) Arc<Core>);

impl Driver for BusDriver {
    fn name(&self) -> RungName {
        GATE
    }

    fn capabilities(&self) -> CapSet {
        CapSet::of(&[Capability::A2aSend, Capability::A2aRecv, Capability::ForensicsRead])
    }

    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        vec![Arc::new(CorrectionRung(Arc::clone(&self.0))), Arc::new(Gate(Arc::clone(&self.0)))]
    }

    fn engines(&self) -> Vec<Arc<dyn Engine>> {
        vec![Arc::new(Inboxes(Arc::clone(&self.0)))]
    }

    fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.0.install(link)
    }

    /// Its keys become its own: enrolled first, so that mailboxes made from here on know; then
    /// those that exist are told.
    fn attached(&self, principal: &Arc<Principal>) {
        let core = &self.0;
        let account = Account::new(Arc::clone(principal), core.config.limits);
        core.enroll(&account);
        let session = ChannelKey::with_id(Locale::Session, principal.trace().clone());
        core.note_known(&session);
        if let Some(mailbox) = core.find(&session) {
            core.bury(mailbox.reserve_for(principal, true), Cause::Bind);
        }
        for locale in [Locale::InKernel, Locale::Window] {
            let own = ChannelKey::with_id(locale, principal.id().clone());
            core.note_known(&own);
            if let Some(mailbox) = core.find(&own) {
                core.bury(mailbox.reserve_for(principal, false), Cause::Bind);
            }
        }
        for key in act_only_keys(principal.id()) {
            if let Some(mailbox) = core.find(&key) {
                core.bury(mailbox.end(End::Displace), Cause::Bind);
                core.forget(&key, &mailbox);
            }
        }
    }

    /// Everything that was its own is free, everything that waits wakes, everything that only it
    /// could have received is dead.
    fn detached(&self, principal: &Arc<Principal>) {
        let core = &self.0;
        let (Some(account), Some(link)) = (core.strike(principal), core.link()) else { return };
        for inbox in account.close() {
            core.bury(inbox.end(End::Detach), Cause::End(End::Detach));
            core.retire(&inbox);
        }
        core.end_requests(&account.close_answers(), End::Detach);
        *core.past.lock() += account.tally();
        let unread = core.book.lock().forget(principal);
        core.bury_acks(unread, Cause::End(End::Detach));
        core.windows.retain(|_, minter| !Arc::ptr_eq(minter, principal));
        // Copies of the list: no map is locked while mailboxes are.
        let boxes: Vec<_> =
            core.boxes.iter().map(|entry| (entry.key().clone(), Arc::clone(entry.value()))).collect();
        for (key, mailbox) in boxes {
            core.bury(mailbox.release(principal, link.sequence()), Cause::End(End::Detach));
            core.tidy(&key);
        }
        let topics: Vec<_> = core.topics.iter().map(|entry| Arc::clone(entry.value())).collect();
        for topic in topics {
            topic.forget(principal);
            for inbox in topic.inboxes(Some(principal)) {
                core.end_subscription(&topic, &inbox, End::Detach);
            }
        }
    }
}

/// The keys beside its own that belong to a principal for one act each (§4.6).
pub(crate) fn act_only_keys(id: &Id) -> impl Iterator<Item = ChannelKey> {
    [CORRECTION, ACK, STATUS].into_iter().filter_map(move |prefix| act_only_key(prefix, id))
}

/// One of them. Every id has it, however long.
pub(crate) fn act_only_key(prefix: &str, id: &Id) -> Option<ChannelKey> {
    let name = match long_digest(id) {
        Some(digest) if prefix.len() + 1 + id.len() > MAX_ID_BYTES => format!("{prefix}#{digest}"),
        _ => format!("{prefix}:{id}"),
    };
    ChannelKey::new(Locale::InKernel, &name).ok()
}

/// What stands for an id that is too long to follow each prefix.
pub(crate) fn long_digest(id: &Id) -> Option<String> {
    (CORRECTION.len() + 1 + id.len() > MAX_ID_BYTES).then(|| Digest::of(id.as_bytes()).hex())
}

//! What is known of every correction and of every worker's live status (§4.9): the truth that
//! corrections, acknowledgements and observations are judged by.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use fak_abi::{Digest, Principal};

use super::envelope::{Correction, CorrectionAck, WorkerStatus};

/// Corrections that are remembered for each worker.
const REMEMBERED: usize = 1_024;

/// How far a correction has come.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// It waits for the worker.
    Sent,
    /// The worker has it.
    Received,
    /// The worker acknowledged it; the number of that message, which waits for the orchestrator.
    Acked(Box<CorrectionAck>, u64),
    /// The orchestrator has that message.
    Observed(Box<CorrectionAck>, u64),
    /// That message was held: it is never the orchestrator's (§4.4).
    Withheld,
}

/// An acknowledgement that nobody can observe any more: whose it was, and its number.
pub(crate) type Unread = (Arc<Principal>, u64);

/// One correction.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) correction: Correction,
    pub(super) orchestrator: Arc<Principal>,
    pub(super) worker: Arc<Principal>,
    pub(super) phase: Phase,
    superseded: bool,
}

#[derive(Debug)]
struct Live {
    worker: Arc<Principal>,
    status: WorkerStatus,
    digest: Digest,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// The last status of each worker, by incarnation.
    statuses: HashMap<u64, Live>,
    records: HashMap<String, Record>,
    /// The corrections of each worker, oldest first.
    order: HashMap<u64, VecDeque<String>>,
}

impl Record {
    /// True until the worker has answered it.
    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Sent | Phase::Received)
    }

    fn unread(self) -> Option<Unread> {
        match self.phase {
            Phase::Acked(_, seq) => Some((self.orchestrator, seq)),
            _ => None,
        }
    }
}

impl Book {
    /// Posts a status; false if its seq does not rise.
    pub(super) fn post(&mut self, worker: &Arc<Principal>, status: WorkerStatus, digest: Digest) -> bool {
        if self.statuses.get(&worker.incarnation()).is_some_and(|live| status.seq <= live.status.seq) {
            return false;
        }
        self.statuses.insert(worker.incarnation(), Live { worker: Arc::clone(worker), status, digest });
        true
    }

    /// The last status of a worker.
    pub(super) fn status(&self, worker: u64) -> Option<(&WorkerStatus, Digest)> {
        self.statuses.get(&worker).map(|live| (&live.status, live.digest))
    }

    /// The live status of that digest, with its worker.
    pub(super) fn cited(&self, digest: &str) -> Option<(&WorkerStatus, &Arc<Principal>)> {
        let digest: Digest = digest.parse().ok()?;
        let live = self.statuses.values().find(|live| live.digest == digest && live.status.live)?;
        Some((&live.status, &live.worker))
    }

    pub(super) fn record(&self, id: &str) -> Option<&Record> {
        self.records.get(id)
    }

    /// A new correction: it supersedes those of the same task that nobody has acted on. What is
    /// forgotten for it may have been acknowledged.
    pub(super) fn add(
        &mut self,
        correction: Correction,
        orchestrator: &Arc<Principal>,
        worker: &Arc<Principal>,
    ) -> Option<Unread> {
        let order = self.order.entry(worker.incarnation()).or_default();
        for id in order.iter() {
            if let Some(older) = self.records.get_mut(id)
                && (older.correction.issue, &older.correction.task_id)
                    == (correction.issue, &correction.task_id)
                && older.is_open()
            {
                older.superseded = true;
            }
        }
        let oldest = if order.len() >= REMEMBERED { order.pop_front() } else { None };
        let unread = oldest.and_then(|oldest| self.records.remove(&oldest)?.unread());
        order.push_back(correction.correction_id.clone());
        let (orchestrator, worker) = (Arc::clone(orchestrator), Arc::clone(worker));
        let id = correction.correction_id.clone();
        let record = Record { correction, orchestrator, worker, phase: Phase::Sent, superseded: false };
        self.records.insert(id, record);
        unread
    }

    /// True if a correction may still be acted on: not superseded, and of the live status.
    pub(super) fn is_current(&self, record: &Record) -> bool {
        let live = self.status(record.worker.incarnation());
        !record.superseded
            && live.is_some_and(|(status, digest)| {
                status.live && digest.to_string() == record.correction.status_digest
            })
    }

    pub(super) fn advance(&mut self, id: &str, phase: Phase) {
        if let Some(record) = self.records.get_mut(id) {
            record.phase = phase;
        }
    }

    /// A principal is gone: its status ends, corrections of it are of no use, and neither is what it
    /// acknowledged.
    pub(crate) fn forget(&mut self, principal: &Principal) -> Vec<Unread> {
        self.statuses.remove(&principal.incarnation());
        let ids = self.order.remove(&principal.incarnation()).unwrap_or_default();
        ids.iter().filter_map(|id| self.records.remove(id)?.unread()).collect()
    }
}

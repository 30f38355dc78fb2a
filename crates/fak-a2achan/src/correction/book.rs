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
    /// The worker acknowledged it; the number of that message.
    Acked(Box<CorrectionAck>, u64),
}

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

    /// A new correction: it supersedes those of the same task that nobody has acted on.
    pub(super) fn add(
        &mut self,
        correction: Correction,
        orchestrator: &Arc<Principal>,
        worker: &Arc<Principal>,
    ) {
        let order = self.order.entry(worker.incarnation()).or_default();
        for id in order.iter() {
            if let Some(older) = self.records.get_mut(id)
                && (older.correction.issue, &older.correction.task_id)
                    == (correction.issue, &correction.task_id)
                && !matches!(older.phase, Phase::Acked(..))
            {
                older.superseded = true;
            }
        }
        if order.len() >= REMEMBERED
            && let Some(oldest) = order.pop_front()
        {
            self.records.remove(&oldest);
        }
        order.push_back(correction.correction_id.clone());
        let (orchestrator, worker) = (Arc::clone(orchestrator), Arc::clone(worker));
        let id = correction.correction_id.clone();
        let record = Record { correction, orchestrator, worker, phase: Phase::Sent, superseded: false };
        self.records.insert(id, record);
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

    /// A principal is gone: its status ends, corrections of it are of no use.
    pub(crate) fn forget(&mut self, principal: &Principal) {
        self.statuses.remove(&principal.incarnation());
        for id in self.order.remove(&principal.incarnation()).unwrap_or_default() {
            self.records.remove(&id);
        }
    }
}

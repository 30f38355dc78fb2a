//! The audit log when it cannot take more (§3.6): every act is refused, nothing else changes, nothing is lost silently.

use std::sync::atomic::Ordering;

use fak_adjudicate::{Auditor as _, Reservation};

use super::Sim;
use crate::sim::fault::{Step, ensure};
use crate::sim::model::host::Ledger;
use crate::sim::op::Op;
use crate::sim::real::broken;
use crate::sim::rng::Rng;

/// Acts under a log that takes nothing.
const ACTS: usize = 6;

impl Sim {
    pub(super) fn starve(&mut self, how: u8, seed: u8) -> Step {
        self.real.audit.drain().map_err(broken)?;
        if how.is_multiple_of(2) { self.fill_up(seed) } else { self.fail_writing(seed) }
    }

    /// Every slot is taken.
    fn fill_up(&mut self, seed: u8) -> Step {
        let Some(someone) = self.real.agents.first().cloned() else { return Ok(()) };
        let mut taken = 0_usize;
        while self.real.queue.reserve(someone.agent().principal()) == Reservation::Reserved {
            taken += 1;
        }
        ensure!(taken <= self.model.setup.audit, "§3.6: {taken} slots of {}", self.model.setup.audit);
        self.model.host.audit = Ledger::Full;
        let acted = self.act_in_vain(seed);
        self.model.host.audit = Ledger::Fine;
        (0..taken).for_each(|_| self.real.queue.release());
        acted?;
        self.real.audit.drain().map(drop).map_err(broken)
    }

    /// The disk is full: half a line is written, and no more.
    fn fail_writing(&mut self, seed: u8) -> Step {
        let Some(who) = self.agent(seed) else { return Ok(()) };
        self.view_as(who)?;
        self.real.state.disk_full.store(true, Ordering::Relaxed);
        let drained = self.real.audit.drain();
        ensure!(drained.is_err(), "§3.6: a log that could not be written says {drained:?}");
        self.model.host.audit = Ledger::Failed;
        let acted = self.act_in_vain(seed);
        self.real.state.disk_full.store(false, Ordering::Relaxed);
        self.real.audit.drain().map_err(broken)?;
        self.model.host.audit = Ledger::Fine;
        acted
    }

    fn act_in_vain(&mut self, seed: u8) -> Step {
        let mut rng = Rng::new(u64::from(seed));
        for _ in 0..ACTS {
            let op = Op::random(&mut rng);
            if op.is_refusable() {
                self.apply(op)?;
            }
        }
        Ok(())
    }
}

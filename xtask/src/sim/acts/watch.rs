//! Held patches (§5.7) and watches (§5.9, §5.11), at once and in futures.

use fak_abi::{Outcome, VerdictKind};
use fak_sharedtask::Watched;

use super::Sim;
use super::compare::{outcome, scope, verdict};
use super::layers::scope_of;
use super::record::task;
use crate::sim::fault::{Fault, Step, ensure, same};
use crate::sim::model::channels::What;
use crate::sim::model::host::Door;
use crate::sim::model::watch::{Next, Told};
use crate::sim::model::{Key, Wait};
use crate::sim::real::task::{Done, Task};

impl Sim {
    pub(super) fn decide_held(&mut self, agent: u8, held: u8, how: u8) -> Step {
        let count = self.real.held.len();
        let Some(at) = count.checked_sub(1 + usize::from(held) % count.clamp(1, 6)) else { return Ok(()) };
        let human = self.model.attached("h0");
        let Some(who) = (if agent.is_multiple_of(4) { self.agent(agent) } else { human }) else {
            return Ok(());
        };
        let Some((patch, decision)) = self.real.held.get(at).cloned() else { return Ok(()) };
        if how % 8 == 7 {
            return self.resubmit(at, &patch);
        }
        let approve = how % 4 != 3;
        let model = self.model.decide_held(who, at, approve);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let (agent, store, task) = (endpoint.agent(), &self.real.store, task()?);
        let product = if approve {
            store.approve(agent, &task, &decision)
        } else {
            store.reject(agent, &task, &decision)
        };
        if let Some((patched, reason)) = outcome(&format!("§5.7: {who} decides on {at}"), product, model)? {
            let said = patched.result.reason.to_string();
            ensure!(
                said == reason && patched.result.is_accepted() == reason.is_empty(),
                "§5.7: {who} decides on {at}: the product says {said}, the model {reason:?}"
            );
        }
        let after = self.real.store.revision(&task).map(|(number, _)| number);
        same("§5.7: revisions", &after, &Some(self.model.record.accepted))
    }

    /// §5.7: identical bytes are the same held patch, and after the answer its outcome.
    fn resubmit(&mut self, at: usize, patch: &fak_sharedtask::Patch) -> Step {
        let Some(held) = self.model.record.held.get(at).cloned() else { return Ok(()) };
        let actor = self.model.agent(held.actor).map(|agent| agent.id.clone()).unwrap_or_default();
        let Some(who) = self.model.attached(&actor) else { return Ok(()) };
        let model = self.model.resubmit(who, &held);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.store.patch(endpoint.agent(), patch, None);
        if let Some((patched, reason)) = outcome(&format!("§5.7: {who} resubmits {at}"), product, model)? {
            same(
                "§5.7: the outcome of identical bytes",
                &patched.result.reason.to_string(),
                &reason.to_owned(),
            )?;
        }
        let after = self.real.store.revision(&task()?).map(|(number, _)| number);
        same("§5.7: revisions after identical bytes", &after, &Some(self.model.record.accepted))
    }

    pub(super) fn watch_task(&mut self, agent: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        // The admitter is shown texts whose length is nobody's to say.
        if self.model.host.door != Door::Open || self.real.task_watches.len() >= 64 {
            return Ok(());
        }
        let model = self.model.watch_task(who);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.store.watch(endpoint.agent(), &task()?);
        if let Some(((view, watch), _)) = outcome(&format!("§5.9: {who} watches"), product, model)? {
            same("§5.9: the revision of the snapshot", &view.revision, &self.model.record.accepted)?;
            self.real.task_watches.push(Some(watch));
        }
        Ok(())
    }

    fn watched(
        &mut self,
        at: usize,
        product: Outcome<Option<Watched>>,
        model: Result<Option<Next>, fak_abi::Reason>,
    ) -> Step {
        let what = format!("§5.9: watch {at}");
        // What the admitter stops is passed over.
        if self.model.host.door != Door::Open
            && product.verdict().kind() == VerdictKind::Quarantine
            && matches!(model, Ok(Some(Next::Event(_))))
        {
            return Ok(());
        }
        if let Some((product, model)) = outcome(&what, product, model)? {
            let product = product.map(|watched| match watched {
                Watched::Event { revision, .. } => Next::Event(revision),
                Watched::Lagged { missed, revision } => Next::Lagged(missed, revision),
            });
            same(&what, &product, &model)?;
        }
        Ok(())
    }

    pub(super) fn next_watched(&mut self, watch: u8, how: u8) -> Step {
        let at = usize::from(watch) % self.real.task_watches.len().max(1);
        let Some(slot) = self.real.task_watches.get_mut(at) else { return Ok(()) };
        match how % 8 {
            0 => {
                // Dropped: it is over.
                slot.take();
                Ok(())
            }
            1..4 if self.real.tasks.len() < 40 => {
                let Some(mut watch) = slot.take() else { return Ok(()) };
                let Some(who) = self.model.task_watches.get(at).map(|watch| watch.who) else { return Ok(()) };
                let (_, cancel, _) = self.rider(1);
                let key = Key { locale: "watch", id: at.to_string() };
                let wait = Wait::new(who, key, What::Watch(at));
                let future = async move {
                    let next = watch.next().await;
                    Done::Watched(Box::new(watch), next)
                };
                self.real.tasks.push(Task::new(future, cancel, wait));
                Ok(())
            }
            _ => {
                let Some(watch) = slot.as_mut() else { return Ok(()) };
                let product = watch.try_next();
                let model = self.model.take_event(at);
                self.watched(at, product, model)
            }
        }
    }

    /// A poll of a watch that waits was ready.
    pub(super) fn watch_ready(
        &mut self,
        at: usize,
        watch: fak_sharedtask::TaskWatch,
        product: Outcome<Watched>,
    ) -> Step {
        let model = self.model.take_event(at);
        if model == Ok(None) {
            return Err(Fault::new(format!("§5.9: watch {at} is told {product:?}, the model of nothing")));
        }
        if let Some(slot) = self.real.task_watches.get_mut(at) {
            *slot = Some(watch);
        }
        self.watched(at, product.map(Some), model)
    }

    pub(super) fn watch_cells(&mut self, agent: u8, at: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        if self.real.cell_watches.len() >= 64 {
            return Ok(());
        }
        let model = self.model.watch_cells(who, scope_of(at));
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.space.watch(endpoint.agent(), "", scope(scope_of(at)));
        if let Some((watch, _)) = outcome(&format!("§5.11: {who} watches cells"), product, model)? {
            self.real.cell_watches.push(Some(watch));
        }
        Ok(())
    }

    pub(super) fn next_told(&mut self, watch: u8, how: u8) -> Step {
        let at = usize::from(watch) % self.real.cell_watches.len().max(1);
        let Some(slot) = self.real.cell_watches.get_mut(at) else { return Ok(()) };
        if how.is_multiple_of(16) {
            slot.take();
            self.model.end_cell_watch(at);
            return Ok(());
        }
        let Some(watch) = slot.as_mut() else { return Ok(()) };
        let product = watch.try_next();
        let model = self.model.take_told(at);
        verdict(
            &format!("§5.11: cell watch {at}"),
            &product.verdict(),
            model.as_ref().map(|_| ()).map_err(|reason| *reason),
        )?;
        let (Some(product), Ok(model)) = (product.allowed(), model) else { return Ok(()) };
        let product = product.map(|event| {
            let key = event.key.as_str().strip_prefix("cell-").and_then(|key| key.parse().ok());
            Told {
                key: key.unwrap_or(255),
                version: event.version,
                change: event.change.name(),
                writer: event.writer.as_str().to_owned(),
                missed: event.missed,
            }
        });
        same(&format!("§5.11: cell watch {at}"), &product, &model)
    }
}

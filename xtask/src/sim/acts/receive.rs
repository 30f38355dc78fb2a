//! Receiving at once, and in futures that are polled, cancelled and dropped (§4.4, §4.5, §4.11).

use std::task::Poll;
use std::time::Duration;

use fak_a2achan::Subscription;
use fak_abi::{Cancel, ChannelKey, Rider, Timestamp};

use super::Sim;
use super::compare::{outcome, verdict};
use super::guards::guard_time;
use crate::sim::fault::{Fault, Step, ensure, same};
use crate::sim::model::channels::{Got, What};
use crate::sim::model::waves::Barrier;
use crate::sim::model::{Key, Wait, Who};
use crate::sim::real::task::{Done, Task};
use crate::sim::rng::Rng;

impl Sim {
    pub(super) fn try_recv(&mut self, agent: u8, key: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let (key, real_key) = Self::key(key)?;
        self.try_recv_by(who, &key, &real_key)
    }

    pub(super) fn try_recv_by(&mut self, who: Who, key: &Key, real_key: &ChannelKey) -> Step {
        let model = self.model.try_recv(who, key, None);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.try_recv(real_key);
        self.delivery(who, product, 0, &model)
            .map_err(|fault| Fault::new(format!("{fault} (try_recv at {})", key.text())))
    }

    pub(super) fn rider(&self, deadline: u8) -> (Rider, Cancel, Option<u64>) {
        let at = deadline.is_multiple_of(4).then(|| self.model.now + u64::from(deadline) * 20_000);
        let cancel = Cancel::new();
        let rider = Rider {
            deadline: at.map(Timestamp::from_micros),
            cancel: Some(cancel.clone()),
            ..Rider::default()
        };
        (rider, cancel, at)
    }

    /// A request that somebody waits for the answer of.
    pub(super) fn asked_at(&self, request: u8) -> Option<usize> {
        let open = (0..).zip(&self.real.asked).filter(|(_, asked)| asked.is_some()).map(|(at, _)| at);
        let open: Vec<usize> = open.collect();
        open.get(usize::from(request) % open.len().max(1)).copied()
    }

    pub(super) fn take_answer(&mut self, request: u8) -> Step {
        let Some(at) = self.asked_at(request) else { return Ok(()) };
        self.take_answer_of(at)
    }

    pub(super) fn take_answer_of(&mut self, at: usize) -> Step {
        let Some(pending) = self.real.asked.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        let product = pending.try_take();
        let who = self.model.asked.get(at).map_or(0, |asked| asked.who);
        let model = self.model.take_answer(at, None);
        self.delivery(who, product, 0, &model).map_err(|fault| Fault::new(format!("{fault} (§4.7: answer)")))
    }

    pub(super) fn drop_asked(&mut self, request: u8) -> Step {
        let at = usize::from(request) % self.real.asked.len().max(1);
        if let Some(pending) = self.real.asked.get_mut(at).and_then(Option::take) {
            drop(pending);
            self.model.drop_asked(at, "cancelled", "late");
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, agent: u8, key: u8, deadline: u8, lease: Option<u8>) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        if self.real.tasks.len() >= 40 {
            return Ok(());
        }
        // Mostly at a room: where several wait, a wake-up can be passed on.
        let key = if deadline.is_multiple_of(3) { key } else { key % 3 };
        let (key, real_key) = Self::key(key)?;
        let (rider, cancel, at) = self.rider(deadline);
        let Some(endpoint) = self.real.agents.get(who).cloned() else { return Ok(()) };
        let lease = lease.map(guard_time);
        let wait = Wait { deadline: at, lease, ..Wait::new(who, key, What::Message) };
        let task = match lease.map(Duration::from_micros) {
            None => {
                let future = async move { Done::Recv(endpoint.recv_with(&real_key, &rider).await) };
                Task::new(future, cancel, wait)
            }
            Some(lease) => {
                let future = async move {
                    Done::Leased(endpoint.recv_leased(&real_key, Some(lease), Some(&rider)).await)
                };
                Task::new(future, cancel, wait)
            }
        };
        self.real.tasks.push(task);
        Ok(())
    }

    pub(super) fn wait_sub(&mut self, sub: u8, deadline: u8, lease: Option<u8>) -> Step {
        let count = self.real.subs.len().max(1);
        let at = usize::from(sub) % count;
        let Some(mut subscription) = self.real.subs.get_mut(at).and_then(Option::take) else { return Ok(()) };
        let Some((who, key)) = self.model.subs.get(at).map(|sub| (sub.who, sub.key.clone())) else {
            return Ok(());
        };
        let (rider, cancel, deadline) = self.rider(deadline);
        let lease = lease.map(guard_time);
        let wait = Wait { sub: Some(at), deadline, lease, ..Wait::new(who, key, What::Message) };
        let task = match lease.map(Duration::from_micros) {
            None => {
                let future = async move {
                    let delivery = subscription.recv_with(&rider).await;
                    Done::Sub(Box::new(subscription), delivery)
                };
                Task::new(future, cancel, wait)
            }
            Some(lease) => {
                let future = async move {
                    let delivery = subscription.recv_leased(Some(lease), Some(&rider)).await;
                    Done::LeasedSub(Box::new(subscription), delivery)
                };
                Task::new(future, cancel, wait)
            }
        };
        self.real.tasks.push(task);
        Ok(())
    }

    /// Polls a future, woken or not: a wake-up too many must change nothing.
    pub(super) fn poll_one(&mut self, task: u8) -> Step {
        let count = self.real.tasks.len();
        if count == 0 {
            return Ok(());
        }
        self.poll_at(usize::from(task) % count)
    }

    pub(super) fn poll_at(&mut self, at: usize) -> Step {
        let mut task = self.real.tasks.remove(at);
        let who = task.wait.who;
        let waits = |other: &&Task| {
            (other.wait.is_receive() || matches!(other.wait.what, What::Room(_)))
                && other.wait.begun.is_some()
        };
        let others = self.real.tasks.iter().filter(|other| other.wait.who == who).filter(waits);
        let others = others.count();
        if !task.wait.is_receive() {
            return self.poll_other(at, task, others);
        }
        let (model, missed) = if task.wait.sub.is_some() {
            self.model.poll_sub(&mut task.wait, others)
        } else {
            (self.model.poll_wait(&mut task.wait, others), 0)
        };
        let place = format!("poll by {who} at {}", task.wait.key.text());
        match (task.poll(), &model) {
            (Poll::Pending, Got::Waits) => {
                self.real.tasks.insert(at, task);
                Ok(())
            }
            (Poll::Pending, _) => {
                Err(Fault::new(format!("{place}: the product waits on, the model says {model:?}")))
            }
            (Poll::Ready(done), _) => {
                let mut keep = |subscription: Box<Subscription>| {
                    let slot = task.wait.sub.and_then(|sub| self.real.subs.get_mut(sub));
                    if let Some(slot) = slot {
                        *slot = Some(*subscription);
                    }
                };
                let told = match done {
                    Done::Leased(delivery) => self.leased(who, delivery, missed, &model),
                    Done::LeasedSub(subscription, delivery) => {
                        keep(subscription);
                        self.leased(who, delivery, missed, &model)
                    }
                    Done::Recv(delivery) => self.delivery(who, delivery, missed, &model),
                    Done::Sub(subscription, delivery) => {
                        keep(subscription);
                        self.delivery(who, delivery, missed, &model)
                    }
                    Done::Sent(_) | Done::Barrier(_) | Done::Watched(..) => Ok(()),
                };
                told.map_err(|fault| Fault::new(format!("{fault} ({place})")))
            }
        }
    }

    /// As [`Self::poll_at`], of what waits for something else than a message.
    fn poll_other(&mut self, at: usize, mut task: Task, others: usize) -> Step {
        let who = task.wait.who;
        let model = self.model.poll_other(&mut task.wait, others);
        let place = format!("poll by {who} of {:?} at {}", task.wait.what, task.wait.key.text());
        let product = match (task.poll(), &model) {
            (Poll::Pending, Got::Waits) => {
                self.real.tasks.insert(at, task);
                return Ok(());
            }
            (Poll::Pending, _) => {
                return Err(Fault::new(format!("{place}: the product waits on, the model says {model:?}")));
            }
            (Poll::Ready(_), Got::Waits) => {
                return Err(Fault::new(format!("{place}: the product is ready, the model waits on")));
            }
            (Poll::Ready(done), _) => done,
        };
        match (product, model, task.wait.what) {
            (Done::Sent(product), Got::Sent(model), _) => {
                let key = task.wait.key.clone();
                drop(task);
                self.tidied(who, &key);
                verdict(&place, &product, model)
            }
            (Done::Barrier(product), model, What::Barrier(at)) => {
                let model = if let Got::Refused(reason) = model { Err(reason) } else { Ok(()) };
                if let Some((report, ())) = outcome(&place, product, model)? {
                    let complete = self.model.barriers.get(at).is_some_and(Barrier::is_complete);
                    same(&format!("{place}: complete"), &report.complete, &complete)?;
                }
                self.barrier_stands(at)
            }
            (Done::Watched(watch, product), _, What::Watch(at)) => self.watch_ready(at, *watch, product),
            (_, model, _) => Err(Fault::new(format!("{place}: the model says {model:?}"))),
        }
    }

    pub(super) fn cancel(&mut self, task: u8) -> Step {
        let count = self.real.tasks.len().max(1);
        if let Some(task) = self.real.tasks.get_mut(usize::from(task) % count) {
            task.cancel.cancel();
            task.wait.cancelled = true;
        }
        Ok(())
    }

    /// A future is dropped where it stands: nothing may be lost by that.
    pub(super) fn drop_task(&mut self, task: u8) -> Step {
        let count = self.real.tasks.len();
        if count == 0 {
            return Ok(());
        }
        // Mostly one that was woken: what it was woken for must reach another.
        let woken = self.real.tasks.iter().position(Task::is_woken).filter(|_| !task.is_multiple_of(4));
        let task = self.real.tasks.remove(woken.unwrap_or(usize::from(task) % count));
        if let Some(sub) = task.wait.sub {
            // The subscription went with it.
            self.model.end_sub(sub, "unsubscribed");
        }
        drop(task);
        Ok(())
    }

    /// Polls whoever was woken, in an order that the seed says, until nobody is: then nobody may be left who could go on.
    pub(super) fn settle(&mut self, order: u8) -> Step {
        let mut rng = Rng::new(u64::from(order));
        for _ in 0..2_000 {
            let woken: Vec<usize> =
                (0..).zip(&self.real.tasks).filter(|(_, task)| task.is_woken()).map(|(at, _)| at).collect();
            if woken.is_empty() {
                return self.nobody_forgotten();
            }
            let first = woken.first().copied().unwrap_or_default();
            self.poll_at(rng.pick(&woken, first))?;
        }
        Err(Fault::new("wake-ups go round in circles"))
    }

    /// §4.4: whoever waits and was not woken has nothing to go on for.
    fn nobody_forgotten(&self) -> Step {
        for task in &self.real.tasks {
            // Turning a switch wakes nobody (§2.5: it is looked at when the act is).
            let could =
                !(task.wait.is_receive() && task.wait.cancelled) && self.model.could_go_on(&task.wait);
            ensure!(
                !could,
                "§4.4: {} waits at {} although there is something for it: a wake-up was lost",
                task.wait.who,
                task.wait.key.text()
            );
        }
        Ok(())
    }

    pub(super) fn subscribe(&mut self, agent: u8, key: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let (key, real_key) = Self::key(key)?;
        let model = self.model.subscribe(who, &key);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.subscribe(&real_key);
        if let Some((subscription, _)) =
            outcome(&format!("§4.5: subscribe by {who} to {}", key.text()), product, model)?
        {
            self.real.subs.push(Some(subscription));
        }
        Ok(())
    }

    pub(super) fn sub_at(&self, sub: u8) -> usize {
        usize::from(sub) % self.real.subs.len().max(1)
    }

    pub(super) fn unsubscribe(&mut self, sub: u8) -> Step {
        let at = self.sub_at(sub);
        let Some(subscription) = self.real.subs.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        let model = self.model.unsubscribe(at);
        let product = subscription.unsubscribe();
        verdict("§4.5: unsubscribe", &product, model)
    }

    pub(super) fn drop_sub(&mut self, sub: u8) -> Step {
        let at = self.sub_at(sub);
        if let Some(subscription) = self.real.subs.get_mut(at).and_then(Option::take) {
            drop(subscription);
            self.model.end_sub(at, "unsubscribed");
        }
        Ok(())
    }

    pub(super) fn pull(&mut self, sub: u8) -> Step {
        self.pull_at(self.sub_at(sub))
    }

    pub(super) fn pull_at(&mut self, at: usize) -> Step {
        let Some(subscription) = self.real.subs.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        let Some(who) = self.model.subs.get(at).map(|sub| sub.who) else { return Ok(()) };
        let product = subscription.try_recv();
        let (model, missed) = self.model.pull(at, false, None);
        self.delivery(who, product, missed, &model).map_err(|fault| Fault::new(format!("{fault} (pull)")))
    }
}

impl crate::sim::model::Model {
    /// Whether a wait would end if it were polled.
    fn could_go_on(&self, wait: &Wait) -> bool {
        let who: Who = wait.who;
        let Some((serial, epoch)) = wait.begun else { return true };
        match wait.what {
            What::Message => {}
            What::Room(_) => {
                return !self.is_live(who)
                    || wait.deadline.is_some_and(|at| self.now >= at)
                    || self.has_room(who, &wait.key);
            }
            What::Barrier(at) => {
                return !self.is_live(who)
                    || wait.deadline.is_some_and(|at| self.now >= at)
                    || self.barriers.get(at).is_none_or(Barrier::is_complete);
            }
            What::Watch(at) => {
                let next = self.task_watches.get(at).and_then(|watch| self.next_event(watch).0);
                return !self.is_live(who) || next.is_some();
            }
        }
        if !self.is_live(who)
            || self.closed
            || wait.displaced
            || wait.deadline.is_some_and(|at| self.now >= at)
        {
            return true;
        }
        if let Some(sub) = wait.sub.and_then(|at| self.subs.get(at)) {
            return !sub.open || !sub.queue.is_empty();
        }
        let Some(mailbox) = self.boxes.get(&wait.key) else { return true };
        let fresh = |expires: Option<u64>| expires.is_none_or(|at| self.now < at);
        mailbox.serial != serial
            || mailbox.epoch != epoch
            || mailbox.queue.iter().any(|msg| {
                fresh(msg.expires)
                    && self.would_flow(&msg.body, who)
                    && self.is_linked(&wait.key, msg.from, who)
            })
    }
}

//! The steps, performed on the product and on the model, and their answers compared.

mod agents;
mod audit;
mod channels;
mod compare;
mod guards;
mod layers;
mod pool;
mod receive;
pub(crate) mod record;
mod room;
mod splits;
mod steer;
mod topology;
mod urged;
mod values;
mod watch;
mod waves;
mod windows;

use std::time::Duration;

use fak_abi::ChannelKey;

use super::SECRETIVE;
use super::fault::{Fault, Step};
use super::model::host::{Door, FICKLE, Mood, POLICIES};
use super::model::{Body, Key, Model, Scope, Who};
use super::op::Op;
use super::real::rungs::DOORS;
use super::real::{self, START, World, broken};
use super::setup::Setup;

/// Product and model, side by side: what has an index in one has it in the other.
pub(crate) struct Sim {
    pub(crate) real: World,
    pub(crate) model: Model,
}

/// The keys that are played with: locale and id. The first four are drawn most often.
const KEYS: [(&str, &str); 20] = [
    ("in_kernel", "room-0"),
    ("in_kernel", "room-1"),
    ("in_kernel", "room-2"),
    ("session", "trace-a0"),
    ("session", "trace-a1"),
    ("session", "trace-a2"),
    ("session", "shared"),
    ("session", "nobody"),
    ("in_kernel", "a0"),
    ("in_kernel", "a1"),
    ("in_kernel", "a2"),
    ("window", "a0"),
    ("window", "a3"),
    ("window", "free"),
    ("in_kernel", "correction:a0"),
    ("in_kernel", "ack:a1"),
    ("in_kernel", "status:a2"),
    ("in_kernel", "room-3"),
    ("in_kernel", "room-4"),
    ("in_kernel", "room-5"),
];

impl Sim {
    pub(crate) fn new(setup: Setup) -> Result<Self, Fault> {
        let real = World::new(&setup)?;
        let model = Model::new(setup, START);
        let mut sim = Self { real, model };
        sim.refill(20, 20);
        sim.create_record()?;
        Ok(sim)
    }

    /// Performs one step.
    pub(crate) fn apply(&mut self, op: Op) -> Step {
        if self.model.closed {
            return self.after_close(op);
        }
        match op {
            Op::Attach { name, shape } => self.attach(name, shape),
            Op::Detach { name } => self.detach(name),
            Op::Mint { agent, padding } => self.mint(agent, padding),
            Op::Widen { agent, body, scope } => self.widen(agent, body, scope),
            Op::Raise { agent, body } => self.raise(agent, body),
            Op::Derive { agent, first, second } => self.derive(agent, first, second),
            Op::Read { agent, body } => self.read(agent, body),
            Op::Send { agent, key, body, ttl, again } => self.send(agent, key, body, ttl, again),
            Op::Burst { agent, key, body, times } => {
                (0..times % 64).try_for_each(|_| self.send(agent, key, body, 0, 0))
            }
            Op::TryRecv { agent, key } => self.try_recv(agent, key),
            Op::Wait { agent, key, deadline } => self.wait(agent, key, deadline, None),
            Op::Lease { agent, key, time } => self.lease(agent, key, time),
            Op::WaitLease { agent, key, deadline, time } => self.wait(agent, key, deadline, Some(time)),
            Op::Request { agent, key, body, deadline } => self.request(agent, key, body, deadline),
            Op::Reply { agent, request, body } => self.reply(agent, request, body),
            Op::TakeAnswer { request } => self.take_answer(request),
            Op::DropRequest { request } => self.drop_asked(request),
            Op::Ack { guard } => self.ack(guard),
            Op::Return { guard } => self.give_back(guard),
            Op::Poll { task } => self.poll_one(task),
            Op::Cancel { task } => self.cancel(task),
            Op::Drop { task } => self.drop_task(task),
            Op::Settle { order } => self.settle(order),
            Op::Bind { agent, key } => self.bind(agent, key),
            Op::Unbind { agent, key } => self.unbind(agent, key),
            Op::DropBinding { binding } => self.drop_binding(binding),
            Op::Keep { binding } => self.keep(binding),
            Op::Open { key } => self.open(key),
            Op::Publish { agent, key, body } => self.publish(agent, key, body),
            Op::Subscribe { agent, key } => self.subscribe(agent, key),
            Op::Unsubscribe { sub } => self.unsubscribe(sub),
            Op::DropSub { sub } => self.drop_sub(sub),
            Op::Pull { sub } => self.pull(sub),
            Op::WaitSub { sub, deadline } => self.wait_sub(sub, deadline, None),
            Op::Advance { by } => self.advance(by),
            Op::Mood { rung, mood } => self.mood(rung, mood),
            Op::Door { door } => self.door(door),
            Op::Shaky { on } => {
                self.real.state.shaky.store(on, std::sync::atomic::Ordering::Relaxed);
                Ok(())
            }
            Op::Refill { sends, recvs } => {
                self.refill(u32::from(sends % 40), u32::from(recvs % 40));
                Ok(())
            }
            Op::Reload { policy } => self.reload(policy),
            Op::Explain { agent, key, body } => self.explain(agent, key, body),
            Op::CellWrite { agent, cell, body, expected } => self.cell_write(agent, cell, body, expected),
            Op::CellDelete { agent, cell, scope } => self.cell_delete(agent, cell, scope),
            Op::CellGet { agent, cell, scope } => self.cell_get(agent, cell, scope),
            Op::LaneLease { agent, lane, time } => self.lane_lease(agent, lane, time),
            Op::LaneToken { agent, token, what } => self.lane_token(agent, token, what),
            Op::Patch { agent, scope, base, what } => self.patch(agent, scope, base, what),
            Op::View { agent } => self.view(agent),
            Op::Status { agent, what, how } => self.post_status(agent, what, how),
            Op::Correct { agent, worker, how } => self.correct(agent, worker, how),
            Op::ReceiveCorrection { agent } => self.receive_correction(agent),
            Op::AckCorrection { agent, steer, how } => self.ack_correction(agent, steer, how),
            Op::Observe { agent, steer } => self.observe(agent, steer),
            Op::Compact { agent, body, tasks } => self.compact(agent, body, tasks),
            Op::Resume { agent, window } => self.resume(agent, window),
            Op::Hand { agent, group, body, how } => self.hand(agent, group, body, how),
            Op::Complete { pending } => self.complete(pending),
            Op::Withdraw { pending } => self.withdraw(pending),
            Op::RecvGroup { agent, group } => self.recv_group(agent, group),
            Op::Gather { agent, group, body, how } => self.gather(agent, group, body, how),
            Op::OpenBarrier { agent, group } => self.open_barrier(agent, group),
            Op::Arrive { agent, barrier, how } => self.arrive(agent, barrier, how),
            Op::Depart { agent, barrier, member } => self.depart(agent, barrier, member),
            Op::WaitBarrier { agent, barrier, deadline } => self.wait_barrier(agent, barrier, deadline),
            Op::DecideHeld { agent, held, how } => self.decide_held(agent, held, how),
            Op::WatchTask { agent } => self.watch_task(agent),
            Op::NextWatched { watch, how } => self.next_watched(watch, how),
            Op::WatchCells { agent, scope } => self.watch_cells(agent, scope),
            Op::NextTold { watch, how } => self.next_told(watch, how),
            Op::SendWait { agent, key, body, deadline } => self.send_wait(agent, key, body, deadline),
            Op::Copy { agent, body } => self.copy(agent, body),
            Op::PoolPut { agent, body } => self.pool_put(agent, body),
            Op::PoolGet { agent, body } => self.pool_get(agent, body),
            Op::Unpin { pin } => self.unpin(pin),
            Op::LeaseSub { sub, time } => self.lease_sub(sub, time),
            Op::WaitLeaseSub { sub, deadline, time } => self.wait_sub(sub, deadline, Some(time)),
            Op::LeaseAnswer { request, time } => self.lease_answer(request, time),
            Op::LeaseGroup { agent, group, time } => self.lease_group(agent, group, time),
            Op::Topology { seed } => self.topology(seed),
            Op::Split { agent, group, how, time } => self.split(agent, group, how, time),
            Op::Starve { how, seed } => self.starve(how, seed),
            Op::Close => self.close(),
        }
    }

    /// Looks at what an agent is shown; in a run that is compared, keeps it unless it is the secretive agent's.
    fn show(&self, who: Who, text: &str) {
        let id = self.model.agent(who).map_or("nobody", |agent| &agent.id);
        self.real.leak.look(id, text);
        if self.model.setup.secret.is_some() && id != SECRETIVE {
            // The name of a window is another each time (§4.8).
            let shown = text.split("window-").map(|part| match part.split_once('"') {
                Some((name, rest)) if name.len() == 32 => format!("\"{rest}"),
                _ => part.to_owned(),
            });
            self.real.leak.keep(id, &shown.collect::<Vec<_>>().join("window-"));
        }
    }

    /// Somebody attached; now and then somebody who no longer is.
    fn agent(&self, n: u8) -> Option<Who> {
        let all = 0..self.model.agents.len();
        let live: Vec<Who> = all.clone().filter(|who| self.model.is_live(*who)).collect();
        let from: Vec<Who> = if n % 32 == 31 || live.is_empty() { all.collect() } else { live };
        let at = usize::from(n / 2) % from.len().max(1);
        from.get(at).copied()
    }

    /// A key, those of rooms more often than others.
    fn key(n: u8) -> Result<(Key, ChannelKey), Fault> {
        let n = usize::from(n);
        Self::key_at(if n < 128 { n % 4 } else { n % KEYS.len() })
    }

    fn key_at(at: usize) -> Result<(Key, ChannelKey), Fault> {
        let (locale, id) = KEYS.get(at).copied().unwrap_or(("in_kernel", "room-0"));
        let key = Key { locale, id: id.to_owned() };
        let real = key.text().parse().map_err(broken)?;
        Ok((key, real))
    }

    /// A body that exists.
    fn body(&self, n: u8) -> Option<(usize, Body)> {
        let count = self.model.bodies.len();
        let at = count.checked_sub(1)?.checked_sub(usize::from(n) % count)?;
        self.model.bodies.get(at).map(|body| (at, body.clone()))
    }

    /// A body that fits, if there is one and the number says so; otherwise any.
    fn body_that(&self, n: u8, fits: impl Fn(&Body) -> bool) -> Option<(usize, Body)> {
        let live = |body: &Body| self.model.is_live(body.owner) && !body.quarantined && fits(body);
        let all: Vec<usize> =
            (0..).zip(&self.model.bodies).filter(|(_, body)| live(body)).map(|(at, _)| at).collect();
        // The newest most often: what is old has been everywhere.
        let recent = all.iter().rev().take(12).copied().collect::<Vec<_>>();
        match recent.get(usize::from(n) % recent.len().max(1)) {
            Some(at) if n < 210 => self.model.bodies.get(*at).map(|body| (*at, body.clone())),
            _ => self.body(n),
        }
    }

    /// A body that may be shared.
    fn shared_body(&self, n: u8) -> Option<(usize, Body)> {
        self.body_that(n, |body| body.scope != Scope::Agent)
    }

    /// A new body, on both sides.
    fn keep_body(&mut self, body: Body, real: fak_abi::Ref) {
        self.model.bodies.push(body);
        self.real.bodies.push(real);
    }

    fn advance(&mut self, by: u8) -> Step {
        let micros = match by % 8 {
            0..4 => u64::from(by) * 1_000,
            4..6 => 1_000_000,
            6 => 30_000_000,
            _ => 3_600_000_000,
        };
        self.model.pass_time(micros);
        self.real.clock.advance(Duration::from_micros(micros));
        Ok(())
    }

    fn mood(&mut self, rung: u8, mood: u8) -> Step {
        let (at, code) = (usize::from(rung) % FICKLE.len(), mood % 11);
        if let (Some(model), Some(real)) = (self.model.host.moods.get_mut(at), self.real.state.moods.get(at))
        {
            *model = Mood::of(code);
            real.store(code, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    fn door(&mut self, door: u8) -> Step {
        let code = door % 4;
        self.model.host.door = DOORS.get(usize::from(code)).copied().unwrap_or(Door::Open);
        self.real.state.door.store(code, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn refill(&mut self, sends: u32, recvs: u32) {
        (self.model.host.sends, self.model.host.recvs) = (sends, recvs);
        self.real.state.sends.store(sends, std::sync::atomic::Ordering::Relaxed);
        self.real.state.recvs.store(recvs, std::sync::atomic::Ordering::Relaxed);
    }

    fn reload(&mut self, policy: u8) -> Step {
        let number = policy % u8::try_from(POLICIES.len()).unwrap_or(1);
        if let Some(rung) = &self.real.policy {
            rung.reload(real::policy(number)?);
            self.real.kernel.reloaded();
            self.model.host.policy = number;
        }
        Ok(())
    }
}

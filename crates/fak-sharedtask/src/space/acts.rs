//! The acts on cells, each of them presented to the kernel (§5.11), and why they would be answered as they would (§3.5).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fak_abi::{
    Act, Address, Admission, AgentHandle, Charge, Cleared, Explanation, Host, Id, Outcome, Permit, Principal,
    Reason, Ref, Refusal, ShareScope, SiteInfo, Taint, ToolCall, Verdict,
};

use super::driver::{CELLS, FLOW, KEY, QUARANTINED, SCOPE, SIZE, SPACE, UNINSTALLED, WATCHES};
use super::room::{Cell, Change};
use super::watch::CellWatch;
use super::{CellView, CellWrite, Core, Space};

/// What a write expects to find.
#[derive(Clone, Copy)]
enum Expected {
    Nothing,
    Version(u64),
}

impl Space {
    /// Makes a new cell with the scope of its body: an act (`space.put`). One that is there is a conflict.
    pub fn put(&self, agent: &AgentHandle, key: &str, body: &Ref) -> Outcome<CellWrite> {
        self.write(agent, Act::CellPut, key, body.scope(), Some(body), Expected::Nothing)
    }

    /// Replaces a cell that has the expected version: an act (`space.cas`). The body's scope must be the cell's.
    pub fn cas(
        &self,
        agent: &AgentHandle,
        key: &str,
        scope: ShareScope,
        version: u64,
        body: &Ref,
    ) -> Outcome<CellWrite> {
        self.write(agent, Act::CellCas, key, scope, Some(body), Expected::Version(version))
    }

    /// Deletes a cell that has the expected version: an act (`space.delete`).
    pub fn delete(
        &self,
        agent: &AgentHandle,
        key: &str,
        scope: ShareScope,
        version: u64,
    ) -> Outcome<CellWrite> {
        self.write(agent, Act::CellDelete, key, scope, None, Expected::Version(version))
    }

    /// Reads a cell: an act (`space.get`). None if it is not there.
    pub fn get(&self, agent: &AgentHandle, key: &str, scope: ShareScope) -> Outcome<Option<CellView>> {
        self.read(agent, key, scope)
    }

    /// The keys under a prefix with their versions, in order: an act (`space.list`). A prefix counts whole components:
    /// `plan` has `plan` and `plan/a` under it, not `planner`; the empty one has everything.
    pub fn list(&self, agent: &AgentHandle, prefix: &str, scope: ShareScope) -> Outcome<Vec<(Id, u64)>> {
        let core = &*self.core;
        self.act(agent, Act::CellList, prefix, true, None, |_, permit, prefix| {
            let Some(room) = core.room(agent.principal(), scope, false) else { return refuse(permit, SCOPE) };
            let keys = room.map(|room| room.lock().under(prefix)).unwrap_or_default();
            cleared(permit).map_or_else(Outcome::Refuse, |cleared| allow(cleared, core.next_seq(), keys))
        })
    }

    /// Watches the cells under a prefix: an act (`space.watch`). Every change after it is handed over, once, in order.
    pub fn watch(&self, agent: &AgentHandle, prefix: &str, scope: ShareScope) -> Outcome<CellWatch> {
        let core = &self.core;
        self.act(agent, Act::CellWatch, prefix, true, None, |_, permit, prefix| {
            let Some(room) = core.room(agent.principal(), scope, true) else { return refuse(permit, SCOPE) };
            let cleared = match cleared(permit) {
                Ok(cleared) => cleared,
                Err(verdict) => return Outcome::Refuse(verdict),
            };
            let (Some(room), true) = (room, core.take_watch(agent.principal().id())) else {
                return refuse_cleared(cleared, WATCHES);
            };
            let watch = CellWatch::new(
                Arc::clone(core),
                agent.clone(),
                Arc::clone(&room),
                prefix,
                scope,
                core.config.backlog,
            );
            core.clear_up(agent.principal(), scope, &room);
            allow(cleared, core.next_seq(), watch)
        })
    }

    /// Why an act on a cell, or with `list` and `watch` on a prefix, would be answered as it would be now (§3.5). Of `put`
    /// the scope is the body's. What a conflict would say is no verdict, and is learnt by the act.
    #[must_use]
    pub fn explain(
        &self,
        agent: &AgentHandle,
        act: Act,
        key: &str,
        scope: ShareScope,
        body: Option<&Ref>,
    ) -> Explanation {
        let prefix = matches!(act, Act::CellList | Act::CellWatch);
        let (named, everything) = name(key, prefix);
        let call = self.call(agent, act, address(named.as_ref(), everything), body);
        let host = self.core.host();
        let explanation = match &host {
            Some(host) => host.explain(&call),
            None => agent.gate().explain(&call),
        };
        if !explanation.verdict.is_allow() {
            return explanation;
        }
        let scope = body.filter(|_| act == Act::CellPut).map_or(scope, Ref::scope);
        let refusal = match (host, &named) {
            (None, _) => Some((Reason::DefaultDeny, UNINSTALLED)),
            (Some(_), None) if !everything => Some(KEY),
            (Some(_), named) => self.core.later_refusal(agent.principal(), act, named.as_ref(), scope, body),
        };
        match refusal {
            None => explanation,
            Some((reason, site)) => {
                let verdict = Verdict::deny(Refusal::new(reason, site.site()), SPACE);
                explanation.decided(verdict, Some(*site), site.next.to_owned())
            }
        }
    }

    /// Presents an act to the kernel. A key that is none is presented as such, so that its refusal is audited.
    fn act<T>(
        &self,
        agent: &AgentHandle,
        act: Act,
        key: &str,
        prefix: bool,
        body: Option<&Ref>,
        go: impl FnOnce(&dyn Host, Permit<'_>, Option<&Id>) -> Outcome<T>,
    ) -> Outcome<T> {
        let Some(host) = self.core.host() else {
            return Outcome::deny(Refusal::new(Reason::DefaultDeny, UNINSTALLED.site()), SPACE);
        };
        let (named, everything) = name(key, prefix);
        let call = self.call(agent, act, address(named.as_ref(), everything), body);
        match host.admit_any(&call) {
            Admission::Refuse(verdict) => Outcome::Refuse(verdict),
            Admission::Permit(permit) if named.is_none() && !everything => refuse(permit, KEY),
            Admission::Permit(permit) => go(&*host, permit, named.as_ref()),
        }
    }

    /// An act as a call, with what rides along.
    fn call<'a>(
        &'a self,
        agent: &'a AgentHandle,
        act: Act,
        address: Address<'a>,
        body: Option<&'a Ref>,
    ) -> ToolCall<'a> {
        let call = ToolCall::new(agent, act).address(address).rider(self.rider.as_deref());
        body.map_or(call, |body| call.args(body))
    }

    fn write(
        &self,
        agent: &AgentHandle,
        act: Act,
        key: &str,
        scope: ShareScope,
        body: Option<&Ref>,
        expected: Expected,
    ) -> Outcome<CellWrite> {
        let core = &*self.core;
        self.act(agent, act, key, false, body, |_, permit, key| {
            let Some(key) = key else { return refuse(permit, KEY) };
            let who = agent.principal();
            let body = permit.transformed().or(body).cloned();
            if let Some(refusal) = body.as_ref().and_then(|body| core.unfit(who, scope, body)) {
                return refuse(permit, refusal);
            }
            let Some(room) = core.room(who, scope, true).flatten() else { return refuse(permit, SCOPE) };
            let cleared = match cleared(permit) {
                Ok(cleared) => cleared,
                Err(verdict) => return Outcome::Refuse(verdict),
            };
            let mut open = room.lock();
            let current = open.version(key);
            let fits = match expected {
                Expected::Nothing => current.is_none(),
                Expected::Version(version) => current == Some(version),
            };
            if !fits {
                drop(open);
                return allow(cleared, core.next_seq(), CellWrite::Conflict { current });
            }
            if current.is_none() && !core.take_cell(who.id()) {
                drop(open);
                return refuse_cleared(cleared, CELLS);
            }
            let seq = core.next_seq();
            let version = core.versions.fetch_add(1, Ordering::Relaxed) + 1;
            let (change, left) = match body {
                Some(body) => {
                    let change = if current.is_some() { Change::Replaced } else { Change::Made };
                    let owner = open.owner(key).unwrap_or_else(|| who.id().clone());
                    open.cells.insert(key.clone(), Cell { body, version, writer: who.id().clone(), owner });
                    (change, None)
                }
                None => (Change::Deleted, open.cells.remove(key)),
            };
            let waiting = open.publish(key, version, change, who.id());
            drop(open);
            if let Some(cell) = left {
                core.give_cell_back(&cell.owner);
            }
            let written = allow(cleared, seq, CellWrite::Done { version });
            // After the entry: what is woken is foreign code.
            waiting.iter().for_each(std::task::Waker::wake_by_ref);
            core.clear_up(who, scope, &room);
            written
        })
    }

    fn read(&self, agent: &AgentHandle, key: &str, scope: ShareScope) -> Outcome<Option<CellView>> {
        let core = &*self.core;
        self.act(agent, Act::CellGet, key, false, None, |host, permit, key| {
            let Some(key) = key else { return refuse(permit, KEY) };
            let who = agent.principal();
            let Some(room) = core.room(who, scope, false) else { return refuse(permit, SCOPE) };
            let found = room.and_then(|room| room.lock().view(key));
            if let Some(cell) = &found {
                if !cell.body.may_flow_to(who) {
                    return refuse(permit, FLOW);
                }
                let call = self.call(agent, Act::CellGet, Address::Cell(key), None);
                let verdict = host.screen(&call, &cell.body);
                if !verdict.is_allow() {
                    return Outcome::Refuse(permit.hold(verdict.by(), 0));
                }
            }
            cleared(permit).map_or_else(Outcome::Refuse, |cleared| allow(cleared, core.next_seq(), found))
        })
    }
}

impl Core {
    /// Why no cell of that scope may hold a body that `who` brings.
    fn unfit(&self, who: &Principal, scope: ShareScope, body: &Ref) -> Option<(Reason, &'static SiteInfo)> {
        if body.taint() == Taint::Quarantined {
            return Some(QUARANTINED);
        }
        if !body.may_flow_to(who) {
            return Some(FLOW);
        }
        if body.scope() != scope {
            return Some(SCOPE);
        }
        (body.len() > self.config.body).then_some(SIZE)
    }

    /// What the space itself would refuse after the rungs.
    fn later_refusal(
        &self,
        who: &Arc<Principal>,
        act: Act,
        key: Option<&Id>,
        scope: ShareScope,
        body: Option<&Ref>,
    ) -> Option<(Reason, &'static SiteInfo)> {
        if let Some(refusal) = body.and_then(|body| self.unfit(who, scope, body)) {
            return Some(refusal);
        }
        let Some(room) = self.room(who, scope, false) else { return Some(SCOPE) };
        let found = key.zip(room.as_ref()).and_then(|(key, room)| room.lock().view(key));
        match act {
            Act::CellGet => found.filter(|cell| !cell.body.may_flow_to(who)).map(|_| FLOW),
            Act::CellPut if found.is_none() && !self.has_room_for_cell(who.id()) => Some(CELLS),
            Act::CellWatch if !self.has_room_for_watch(who.id()) => Some(WATCHES),
            _ => None,
        }
    }
}

/// The cell or prefix a text names, and whether it is the empty prefix, which has everything under it.
fn name(key: &str, prefix: bool) -> (Option<Id>, bool) {
    let whole = if prefix { key.strip_suffix('/').unwrap_or(key) } else { key };
    (parse_key(whole), prefix && key.is_empty())
}

fn address(named: Option<&Id>, everything: bool) -> Address<'_> {
    match named {
        Some(id) => Address::Cell(id),
        None if everything => Address::None,
        None => Address::Malformed,
    }
}

/// A key: an id (§4.1) whose `/`-separated components are not empty.
fn parse_key(text: &str) -> Option<Id> {
    if text.split('/').any(str::is_empty) {
        return None;
    }
    Id::new(text).ok()
}

fn cleared(permit: Permit<'_>) -> Result<Cleared<'_>, Verdict> {
    match permit.charge() {
        Charge::Cleared(cleared) => Ok(cleared),
        Charge::Refuse(verdict) => Err(verdict),
    }
}

fn refuse<T>(permit: Permit<'_>, (reason, site): (Reason, &'static SiteInfo)) -> Outcome<T> {
    Outcome::Refuse(permit.refuse(Refusal::new(reason, site.site()), SPACE))
}

fn refuse_cleared<T>(cleared: Cleared<'_>, (reason, site): (Reason, &'static SiteInfo)) -> Outcome<T> {
    Outcome::Refuse(cleared.refuse(Refusal::new(reason, site.site()), SPACE))
}

fn allow<T>(cleared: Cleared<'_>, seq: u64, value: T) -> Outcome<T> {
    let verdict = cleared.allow(seq);
    Outcome::Allow { value, by: verdict.by() }
}

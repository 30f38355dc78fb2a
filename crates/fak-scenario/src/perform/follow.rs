//! Which failed steps may only follow from an earlier one: they need what it should have made, or a place it should have changed.
//! What only looks at a place makes nothing, so nothing follows from it.

use std::collections::HashMap;

use crate::{
    act::{
        Act, Actor, Address, Body, CallArgs, ChannelAct, Claim, Inbox, JournalSource, KernelAct, RecordAct,
        Source, Step, Subject, Watched, WaveAct,
    },
    expect::Expectations,
    report::StepReport,
};

/// Something that one step makes or changes and another needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Thing {
    /// What a step kept with `as`, `save` or `name`.
    Name(String),
    /// That an agent is attached.
    Agent(String),
    /// What is queued at a channel.
    Queue(String),
    /// Whose a channel is, and who listens there.
    Place(String),
    /// What is queued for the members of a group.
    Group(String),
    /// Statuses, corrections and their acknowledgement.
    Steering,
    /// A record.
    Task(String),
    /// A cell.
    Cell(String),
    /// The cells as a whole.
    Cells,
    /// The pool.
    Pool,
    /// A lane.
    Lane(String),
    /// Paths that are leased by themselves.
    Trees,
    /// The number of the next lease.
    Fence,
}

/// What a step needs, and what it makes or changes.
#[derive(Default)]
struct Ties {
    needs: Vec<Thing>,
    makes: Vec<Thing>,
}

/// What stands behind names: the queue of a subscription or request, the record of a watch, the lane of a lease.
type Behind = HashMap<String, Thing>;

impl Ties {
    fn of(step: &Step, behind: &mut Behind) -> Self {
        let mut ties = Self::default();
        if let Actor::Agent(agent) = &step.by {
            ties.needs.push(Thing::Agent(agent.clone()));
        }
        let act = if let Act::Explain { of, .. } = &step.act { &**of } else { &step.act };
        match act {
            Act::Channel(act) => ties.channel(act, behind),
            Act::Kernel(act) => ties.kernel(act),
            Act::Record(act) => ties.record(act, behind),
            Act::Wave(act) => ties.wave(act, behind),
            Act::Explain { .. } => {}
        }
        if matches!(step.act, Act::Explain { .. }) {
            ties.makes.clear();
        }
        if let Some(name) = &step.save {
            // A message that was received is answered where its sender waits.
            let queue = ties.needs.iter().find(|thing| matches!(thing, Thing::Queue(_)));
            behind.extend(queue.map(|queue| (name.clone(), queue.clone())));
            ties.makes.push(Thing::Name(name.clone()));
        }
        let counted = |members: &[(&str, _)]| members.iter().any(|(member, _)| *member == "fence");
        if matches!(&step.expect, Expectations::Members(members) if counted(members)) {
            ties.needs.push(Thing::Fence);
        }
        ties
    }

    fn need(&mut self, name: &str, behind: &Behind) {
        self.needs.push(Thing::Name(name.to_owned()));
        self.needs.extend(behind.get(name).cloned());
    }

    fn change(&mut self, name: &str, behind: &Behind) {
        self.need(name, behind);
        self.makes.push(Thing::Name(name.to_owned()));
        self.makes.extend(behind.get(name).cloned());
    }

    fn make(&mut self, name: &str, of: Option<Thing>, behind: &mut Behind) {
        self.makes.push(Thing::Name(name.to_owned()));
        behind.extend(of.map(|of| (name.to_owned(), of)));
    }

    fn body(&mut self, body: &Body) {
        if let Source::Saved(name) = &body.source {
            self.needs.push(Thing::Name(name.clone()));
        }
        self.needs.extend(body.owner.clone().map(Thing::Agent));
    }

    fn both(&mut self, thing: Thing) {
        self.needs.push(thing.clone());
        self.makes.push(thing);
    }

    fn handed(&mut self, to: &Address, body: &Body) {
        self.body(body);
        self.needs.push(Thing::Place(to.to_string()));
        self.makes.push(Thing::Queue(to.to_string()));
    }

    fn taken(&mut self, from: &Inbox, behind: &Behind) {
        match from {
            Inbox::At(at) => {
                self.needs.push(Thing::Place(at.to_string()));
                self.both(Thing::Queue(at.to_string()));
            }
            Inbox::Named(name) => self.change(name, behind),
        }
    }

    fn channel(&mut self, act: &ChannelAct, behind: &mut Behind) {
        match act {
            ChannelAct::Send { to, body, .. } | ChannelAct::Publish { topic: to, body } => {
                self.handed(to, body);
            }
            ChannelAct::Request { to, body, name, .. } => {
                self.handed(to, body);
                self.make(name, Some(Thing::Queue(to.to_string())), behind);
            }
            ChannelAct::Recv { from } => self.taken(from, behind),
            ChannelAct::RecvLeased { from, name, .. } => {
                self.taken(from, behind);
                let queue = self.needs.iter().find(|thing| matches!(thing, Thing::Queue(_))).cloned();
                self.make(name, queue, behind);
            }
            ChannelAct::Reply { to_request, body } => {
                self.body(body);
                self.change(to_request, behind);
            }
            ChannelAct::Consume { name }
            | ChannelAct::Drop { name }
            | ChannelAct::Unsubscribe { inbox: name }
            | ChannelAct::Resume { window: name }
            | ChannelAct::Await { name } => self.change(name, behind),
            ChannelAct::Subscribe { topic, name } => {
                self.makes.push(Thing::Place(topic.to_string()));
                self.make(name, Some(Thing::Queue(topic.to_string())), behind);
            }
            ChannelAct::Open { at } | ChannelAct::Bind { at } | ChannelAct::Unbind { at } => {
                self.both(Thing::Place(at.to_string()));
            }
            ChannelAct::Compact { body, name } => {
                self.body(body);
                self.make(name, None, behind);
            }
            ChannelAct::Status { .. }
            | ChannelAct::Correct { .. }
            | ChannelAct::ReceiveCorrection { .. }
            | ChannelAct::Ack { .. } => self.both(Thing::Steering),
            ChannelAct::Observe { .. } => self.needs.push(Thing::Steering),
        }
    }

    fn kernel(&mut self, act: &KernelAct) {
        match act {
            KernelAct::Widen { what: Subject::Body(body), .. }
            | KernelAct::Trust { what: Subject::Body(body), .. }
            | KernelAct::Call { args: Some(CallArgs::Body(body)), .. } => self.body(body),
            KernelAct::Widen { what: Subject::Saved(name), .. }
            | KernelAct::Trust { what: Subject::Saved(name), .. }
            | KernelAct::Read { name } => self.needs.push(Thing::Name(name.clone())),
            KernelAct::PoolPut { body } => {
                self.body(body);
                self.makes.push(Thing::Pool);
            }
            KernelAct::PoolGet { .. } => self.needs.push(Thing::Pool),
            KernelAct::Detach { agent } | KernelAct::Attach { agent } => {
                self.both(Thing::Agent(agent.clone()));
            }
            KernelAct::Call { .. }
            | KernelAct::Who
            | KernelAct::Held
            | KernelAct::Tick { .. }
            | KernelAct::Audit
            | KernelAct::Stats => {}
        }
    }

    fn record(&mut self, act: &RecordAct, behind: &mut Behind) {
        match act {
            RecordAct::Create { record } => self.makes.extend(record.task_id().map(Thing::Task)),
            RecordAct::Patch { patch, .. } => self.both(Thing::Task(patch.task_id.to_string())),
            RecordAct::Approve { task, decision } | RecordAct::Reject { task, decision } => {
                self.need(decision, behind);
                self.both(Thing::Task(task.clone()));
            }
            RecordAct::View { task } | RecordAct::Events { task } | RecordAct::Journal { task } => {
                self.needs.push(Thing::Task(task.clone()));
            }
            RecordAct::Watch { what: Watched::Task(task), name } => {
                self.needs.push(Thing::Task(task.clone()));
                self.make(name, Some(Thing::Task(task.clone())), behind);
            }
            RecordAct::Watch { what: Watched::Prefix(_), name } => {
                self.make(name, Some(Thing::Cells), behind);
            }
            RecordAct::Next { name } => {
                self.need(name, behind);
                self.makes.push(Thing::Name(name.clone()));
            }
            RecordAct::Load { journal: JournalSource::Saved(name) } => {
                self.needs.push(Thing::Name(name.clone()));
            }
            RecordAct::Load { journal: JournalSource::Text(_) } => {}
            RecordAct::Put { key, body } | RecordAct::Cas { key, body, .. } => {
                self.body(body);
                self.both(Thing::Cell(key.clone()));
                self.makes.push(Thing::Cells);
            }
            RecordAct::Delete { key, .. } => {
                self.both(Thing::Cell(key.clone()));
                self.makes.push(Thing::Cells);
            }
            RecordAct::Get { key, .. } => self.needs.push(Thing::Cell(key.clone())),
            RecordAct::List { .. } => self.needs.push(Thing::Cells),
        }
    }

    fn wave(&mut self, act: &WaveAct, behind: &mut Behind) {
        match act {
            WaveAct::Group { name, .. } => self.make(name, Some(Thing::Group(name.clone())), behind),
            WaveAct::Broadcast { group, body } => {
                self.body(body);
                self.needs.push(Thing::Name(group.clone()));
                self.makes.push(Thing::Group(group.clone()));
            }
            WaveAct::Scatter { group, bodies } => {
                bodies.iter().for_each(|body| self.body(body));
                self.needs.push(Thing::Name(group.clone()));
                self.makes.push(Thing::Group(group.clone()));
            }
            WaveAct::Gather { group, outputs, .. } => {
                outputs.iter().for_each(|body| self.body(body));
                self.needs.push(Thing::Name(group.clone()));
            }
            WaveAct::Barrier { group, name } => {
                self.needs.push(Thing::Name(group.clone()));
                self.make(name, None, behind);
            }
            WaveAct::Arrive { barrier, by, .. } | WaveAct::Depart { barrier, by, .. } => {
                if let Actor::Agent(agent) = by {
                    self.needs.push(Thing::Agent(agent.clone()));
                }
                self.both(Thing::Name(barrier.clone()));
            }
            WaveAct::BarrierStatus { barrier } => self.needs.push(Thing::Name(barrier.clone())),
            WaveAct::Split { group, lease, .. } => {
                self.needs.push(Thing::Name(group.clone()));
                self.makes.extend(lease.map(|_| Thing::Fence));
            }
            WaveAct::Lease { claim, name, .. } => {
                let over = match claim {
                    Claim::Lane(lane) => Thing::Lane(lane.clone()),
                    Claim::Tree(_) => Thing::Trees,
                };
                self.both(over.clone());
                self.makes.push(Thing::Fence);
                self.make(name, Some(over), behind);
            }
            WaveAct::Renew { name } | WaveAct::Release { name } => self.change(name, behind),
            WaveAct::Check { name, .. } => self.need(name, behind),
        }
    }
}

/// Marks every failed step that needs what an earlier failed one should have made, or that sums up what was done so far.
pub(super) fn mark(steps: &[Step], reports: &mut [StepReport]) {
    if reports.iter().filter(|report| !report.mismatches.is_empty()).nth(1).is_none() {
        return;
    }
    let (mut behind, mut first) = (Behind::new(), None);
    // The step from which each thing is not as it should be, and no other before it.
    let mut wanting: HashMap<Thing, usize> = HashMap::new();
    for (step, report) in steps.iter().zip(reports) {
        let ties = Ties::of(step, &mut behind);
        if report.mismatches.is_empty() {
            continue;
        }
        let sums_up = matches!(report.act, "audit" | "stats" | "held" | "who");
        let cause = ties.needs.iter().filter_map(|thing| wanting.get(thing)).min().copied();
        report.follows = if sums_up { first } else { cause };
        first.get_or_insert(report.number);
        let root = report.follows.unwrap_or(report.number);
        for thing in ties.makes {
            wanting.entry(thing).or_insert(root);
        }
    }
}

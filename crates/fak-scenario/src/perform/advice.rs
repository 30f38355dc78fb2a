//! What is likely wrong with a scenario where an act is answered otherwise than meant: a channel, fleet, tool, lane, task or key
//! that nothing else names, a missing fleet or capability. It is said to whoever wrote the file, who may see all of it; it is no
//! part of what an agent is told.

use std::{cell::OnceCell, collections::BTreeSet};

use fak_abi::{Act as Verb, Capability, Locale, json::nearest};

use crate::{
    act::{
        Act, Actor, Address, Body, ChannelAct, Claim, Inbox, KernelAct, RawJson, RecordAct, Step, Subject,
        WaveAct,
    },
    model::{AgentSpec, Scenario},
    report::StepReport,
    words::COMPARED,
};

/// What is looked for is bounded: a look may read the whole scenario, and a hint compares a name with all others (§8).
#[derive(Default)]
pub(super) struct Looks {
    looks: usize,
    hints: usize,
    /// The rule of its own policy that can never decide, once somebody asked.
    idle: OnceCell<Option<String>>,
}

/// So many steps of a run are looked at.
const LOOKS: usize = 200;
/// So many are told of.
const HINTS: usize = 20;

impl Scenario {
    /// What its author should look at, of a step that was answered so. `empty`: nothing was there; `own`: under its own policy.
    pub(super) fn advice(
        &self,
        step: &Step,
        done: &StepReport,
        (empty, own): (bool, bool),
        looks: &mut Looks,
    ) -> Option<String> {
        if looks.looks >= LOOKS || looks.hints >= HINTS {
            return None;
        }
        looks.looks += 1;
        let hint = self.hint(step, done, empty, own.then_some(&looks.idle));
        looks.hints += usize::from(hint.is_some());
        hint
    }

    fn hint(
        &self,
        step: &Step,
        done: &StepReport,
        empty: bool,
        idle: Option<&OnceCell<Option<String>>>,
    ) -> Option<String> {
        let site = done.at.as_deref().unwrap_or_default();
        self.unknown_agent(done)
            .or_else(|| wrong_actor(step, site))
            .or_else(|| self.missing_domain(step, site))
            .or_else(|| self.other_scope(step, done))
            .or_else(|| self.apart(step, site))
            .or_else(|| self.wider_than_the_store(done))
            .or_else(|| self.refused_at_the_receive(step, done))
            .or_else(|| self.missing_capability(step, done))
            .or_else(|| self.unknown_session(step))
            .or_else(|| self.unknown_name(step, site))
            .or_else(|| if empty { self.nothing_there(step) } else { None })
            .or_else(|| self.idle_rule(step, done, idle?))
    }

    /// A rule of the policy that can never decide, where a policy was asked.
    fn idle_rule(&self, step: &Step, done: &StepReport, idle: &OnceCell<Option<String>>) -> Option<String> {
        if done.rung.is_none() || matches!(step.by, Actor::Host) {
            return None;
        }
        let lint = || {
            let found = self.setup.policy.as_ref()?.lint(None).into_iter();
            let found = found
                .filter(|found| found.text.starts_with("never matches"))
                .map(|found| format!("{} of the policy (line {}) {}", found.rule, found.line, found.text));
            found.into_iter().next()
        };
        idle.get_or_init(|| self.setup.idle_rule.clone().or_else(lint)).clone()
    }

    /// Somebody is expected who is not there.
    fn unknown_agent(&self, done: &StepReport) -> Option<String> {
        let named = done.mismatches.iter().filter(|wrong| matches!(&*wrong.member, "from" | "actor"));
        let mut names = named.filter_map(|wrong| wrong.expected.as_ref()?.as_str());
        let name = names.find(|name| self.agent(name).is_none())?;
        let near = near(name, self.setup.agents.iter().map(|agent| agent.name.clone())).unwrap_or_default();
        Some(format!("no agent is called {name:?}{near}"))
    }

    pub(super) fn agent(&self, name: &str) -> Option<&AgentSpec> {
        self.setup.agents.iter().find(|agent| agent.name == name)
    }

    /// A widening to a fleet or tenant that its owner does not have.
    fn missing_domain(&self, step: &Step, site: &str) -> Option<String> {
        let (scope, owner) = match &step.act {
            Act::Kernel(KernelAct::Widen { what: Subject::Body(body), scope }) => {
                (*scope, body.owner.as_ref())
            }
            Act::Kernel(KernelAct::Widen { scope, .. }) => (*scope, None),
            act => body_of(act).and_then(|body| Some((body.scope?, body.owner.as_ref())))?,
        };
        let owner = match (owner, &step.by) {
            (Some(owner), _) => owner,
            (None, Actor::Agent(name)) => name,
            _ => return None,
        };
        let principal = &self.agent(owner)?.principal;
        let lacks = match scope {
            fak_abi::ShareScope::Fleet => principal.fleet.is_none(),
            fak_abi::ShareScope::Tenant => principal.tenant.is_none(),
            _ => false,
        };
        (lacks && site == "refs/target")
            .then(|| format!("{owner:?} has no \"{scope}\" to share it with: give it one under \"agents\""))
    }

    /// The capability that the act needs and its agent was not given.
    fn missing_capability(&self, step: &Step, done: &StepReport) -> Option<String> {
        let (Actor::Agent(name), Some(needed)) = (&step.by, done.lacks) else { return None };
        // A body is widened by its owner.
        let widening = needed == Capability::RefWiden.name();
        let owner = body_of(&step.act).and_then(|body| body.owner.as_ref()).filter(|_| widening);
        let name = owner.unwrap_or(name);
        let advertised = self.agent(name)?.principal.caps.iter().any(|cap| cap.name() == needed);
        Some(if advertised {
            format!(
                "{name:?} is not granted {needed:?} by the policy, though its \"caps\" have it: see its \"grant\" rules"
            )
        } else {
            format!("{name:?} lacks {needed:?}: add it to its \"caps\" if it is to do this")
        })
    }

    /// A session that is nobody's.
    fn unknown_session(&self, step: &Step) -> Option<String> {
        let at = address(&step.act).filter(|at| at.locale == Locale::Session)?;
        let traces: Vec<String> = self
            .setup
            .agents
            .iter()
            .map(|agent| match &agent.principal.trace {
                Some(trace) => trace.to_string(),
                None => format!("trace-{}", agent.name),
            })
            .collect();
        (!traces.contains(&at.id)).then(|| {
            let near = nearest(&at.id, traces.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean session:{near:?}?"));
            format!("no agent has the trace id {:?}{near}", at.id)
        })
    }

    /// A tool, a lane or a task that nothing else names.
    fn unknown_name(&self, step: &Step, site: &str) -> Option<String> {
        match (&step.act, site) {
            (Act::Kernel(KernelAct::Call { tool, .. }), "kernel/empty-policy" | "kernel/unknown-tool") => {
                let near = near(tool, Verb::ALL.iter().map(|verb| verb.tool().to_owned()))?;
                Some(format!("no rung knows a tool {tool:?}{near}"))
            }
            (Act::Wave(WaveAct::Lease { claim: Claim::Lane(lane), .. }), "lanes/unknown") => {
                let Some(lanes) = &self.setup.lanes else {
                    return Some("the scenario declares no \"lanes\"".to_owned());
                };
                let near = near(lane, lanes.lanes().map(|lane| lane.name().to_string()))?;
                Some(format!("\"lanes\" has no {lane:?}{near}"))
            }
            (
                Act::Wave(
                    WaveAct::Broadcast { group, .. }
                    | WaveAct::Scatter { group, .. }
                    | WaveAct::Gather { group, .. },
                ),
                "comm/absent",
            ) => {
                let members = self.steps.iter().find_map(|step| match &step.act {
                    Act::Wave(WaveAct::Group { name, members, .. }) if name == group => Some(members),
                    _ => None,
                })?;
                let stranger = members.iter().find(|member| self.agent(&member.id).is_none())?;
                let near = near(&stranger.id, self.setup.agents.iter().map(|agent| agent.name.clone()));
                let near = near.unwrap_or_default();
                Some(format!("{group:?} has the member {:?}, which is no agent here{near}", stranger.id))
            }
            (Act::Channel(_), "a2achan/undeclared") => {
                let at = address(&step.act)?;
                let near = near_channel(
                    at,
                    self.steps.iter().filter_map(|step| match &step.act {
                        Act::Channel(
                            ChannelAct::Open { at }
                            | ChannelAct::Bind { at }
                            | ChannelAct::Subscribe { topic: at, .. },
                        ) => Some(at),
                        _ => None,
                    }),
                )?;
                Some(format!("nobody opens, binds or subscribes to {at}{near}"))
            }
            (Act::Record(act), _) => {
                let task = match act {
                    RecordAct::Patch { patch, .. } => patch.task_id.to_string(),
                    RecordAct::Approve { task, .. }
                    | RecordAct::Reject { task, .. }
                    | RecordAct::View { task }
                    | RecordAct::Events { task }
                    | RecordAct::Journal { task } => task.clone(),
                    _ => return None,
                };
                let tasks = self.tasks()?;
                (!tasks.contains(&task)).then(|| {
                    let near = near(&task, tasks.into_iter()).unwrap_or_default();
                    format!("no task {task:?} is created{near}")
                })
            }
            _ => None,
        }
    }

    /// The ids of the tasks it creates; not to be told if a journal brings others.
    fn tasks(&self) -> Option<BTreeSet<String>> {
        let mut records: Vec<&RawJson> = self.setup.tasks.records.iter().collect();
        for step in &self.steps {
            match &step.act {
                Act::Record(RecordAct::Create { record }) => records.push(record),
                Act::Record(RecordAct::Load { .. }) => return None,
                _ => {}
            }
        }
        Some(records.into_iter().filter_map(RawJson::task_id).collect())
    }

    /// Nothing was there: because it went elsewhere, or later.
    fn nothing_there(&self, step: &Step) -> Option<String> {
        let before = |other: &&Step| other.number < step.number;
        match &step.act {
            Act::Channel(
                ChannelAct::Recv { from: Inbox::At(at) } | ChannelAct::RecvLeased { from: Inbox::At(at), .. },
            ) => self.published_instead(step, at).or_else(|| self.not_sent(step, at, "sent")),
            Act::Channel(
                ChannelAct::Recv { from: Inbox::Named(inbox) }
                | ChannelAct::RecvLeased { from: Inbox::Named(inbox), .. },
            ) => {
                let (topic, since) = self.steps.iter().filter(before).find_map(|step| match &step.act {
                    Act::Channel(ChannelAct::Subscribe { topic, name }) if name == inbox => {
                        Some((topic, step.number))
                    }
                    _ => None,
                })?;
                let early = self.steps.iter().find(|step| {
                    step.number < since
                        && matches!(&step.act, Act::Channel(ChannelAct::Publish { topic: at, .. }) if at == topic)
                });
                match early {
                    Some(early) => Some(format!(
                        "step {} publishes to {topic}, but {inbox:?} is subscribed only in step {since}: what was published before is not seen",
                        early.number
                    )),
                    None => self.not_sent(step, topic, "published"),
                }
            }
            Act::Record(RecordAct::Get { key, .. }) => {
                let keys: BTreeSet<String> = self
                    .steps
                    .iter()
                    .filter_map(|step| match &step.act {
                        Act::Record(RecordAct::Put { key, .. } | RecordAct::Cas { key, .. }) => {
                            Some(key.clone())
                        }
                        _ => None,
                    })
                    .collect();
                (!keys.contains(key)).then(|| {
                    let near = near(key, keys.into_iter()).unwrap_or_default();
                    format!("no step puts anything under {key:?}{near}")
                })
            }
            _ => None,
        }
    }

    /// A receive at a topic: what is published there goes to those who have subscribed.
    fn published_instead(&self, step: &Step, at: &Address) -> Option<String> {
        let before = || self.steps.iter().filter(|other| other.number < step.number);
        let sent = before().any(|step| {
            matches!(&step.act, Act::Channel(ChannelAct::Send { to, .. } | ChannelAct::Request { to, .. }) if to == at)
        });
        let published = before().find(
            |step| matches!(&step.act, Act::Channel(ChannelAct::Publish { topic, .. }) if topic == at),
        )?;
        if sent {
            return None;
        }
        let own = before().find_map(|other| match &other.act {
            Act::Channel(ChannelAct::Subscribe { topic, name }) if topic == at && other.by == step.by => {
                Some(name)
            }
            _ => None,
        });
        let instead = own.map_or_else(
            || "subscribe before it, and receive from that".to_owned(),
            |name| format!("receive with \"inbox\": {name:?}"),
        );
        Some(format!(
            "step {} publishes to {at}, and what is published goes to subscriptions, not into a mailbox: {instead}",
            published.number
        ))
    }

    fn not_sent(&self, step: &Step, at: &Address, how: &str) -> Option<String> {
        let sent: Vec<(usize, &Address)> = self
            .steps
            .iter()
            .filter_map(|step| match &step.act {
                Act::Channel(
                    ChannelAct::Send { to, .. }
                    | ChannelAct::Request { to, .. }
                    | ChannelAct::Publish { topic: to, .. },
                ) => Some((step.number, to)),
                _ => None,
            })
            .collect();
        let numbers = || sent.iter().filter(|(_, to)| *to == at).map(|(number, _)| *number);
        if numbers().any(|number| number < step.number) {
            return None;
        }
        if let Some(later) = numbers().next() {
            return Some(format!("nothing is {how} to {at} before step {later}, which is later"));
        }
        let near = near_channel(at, sent.iter().map(|(_, to)| *to)).unwrap_or_default();
        Some(format!("no step has {how} anything to {at}{near}"))
    }
}

/// A patch that says it is another's.
fn wrong_actor(step: &Step, site: &str) -> Option<String> {
    let (Act::Record(RecordAct::Patch { patch, .. }), Actor::Agent(by)) = (&step.act, &step.by) else {
        return None;
    };
    (site == "sharedtask/actor" && *patch.actor.id != **by).then(|| {
        format!(
            "the patch names {:?} as its \"actor\", and {by:?} performs the step: name the same in both",
            patch.actor.id
        )
    })
}

/// `; did you mean …?`, or the first of the names there are; nothing where there are none.
fn near(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    const SHOWN: usize = 5;
    let known: Vec<String> = known.collect();
    if let Some(near) = crate::words::meant(name, known.iter().map(String::as_str)) {
        return Some(format!("; did you mean {near:?}?"));
    }
    let shown: Vec<String> = known.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    (!shown.is_empty()).then(|| format!("; known here: {}", shown.join(", ")))
}

/// The same of channels: the nearest of the same locale first.
fn near_channel<'a>(at: &Address, known: impl Iterator<Item = &'a Address>) -> Option<String> {
    const SHOWN: usize = 5;
    let mut known: Vec<&Address> = known.filter(|other| *other != at).take(COMPARED).collect();
    let near =
        nearest(&at.id, known.iter().filter(|other| other.locale == at.locale).map(|other| &*other.id));
    if let Some(near) = near {
        return Some(format!("; did you mean {}?", Address { locale: at.locale, id: near.to_owned() }));
    }
    if let Some(same) = known.iter().find(|other| other.id == at.id) {
        return Some(format!("; did you mean {same}?"));
    }
    known.dedup();
    let shown: Vec<String> = known.iter().take(SHOWN).map(ToString::to_string).collect();
    (!shown.is_empty()).then(|| format!("; known here: {}", shown.join(", ")))
}

/// The channel an act is at.
pub(super) fn address(act: &Act) -> Option<&Address> {
    match act {
        Act::Channel(
            ChannelAct::Send { to: at, .. }
            | ChannelAct::Request { to: at, .. }
            | ChannelAct::Publish { topic: at, .. }
            | ChannelAct::Subscribe { topic: at, .. }
            | ChannelAct::Recv { from: Inbox::At(at) }
            | ChannelAct::RecvLeased { from: Inbox::At(at), .. }
            | ChannelAct::Bind { at }
            | ChannelAct::Unbind { at },
        ) => Some(at),
        Act::Explain { of, .. } => address(of),
        _ => None,
    }
}

/// The body an act carries.
fn body_of(act: &Act) -> Option<&Body> {
    match act {
        Act::Channel(
            ChannelAct::Send { body, .. }
            | ChannelAct::Publish { body, .. }
            | ChannelAct::Request { body, .. }
            | ChannelAct::Reply { body, .. }
            | ChannelAct::Compact { body, .. },
        )
        | Act::Record(RecordAct::Put { body, .. } | RecordAct::Cas { body, .. })
        | Act::Wave(WaveAct::Broadcast { body, .. }) => Some(body),
        Act::Explain { of, .. } => body_of(of),
        _ => None,
    }
}

//! What is likely wrong where two agents, or two scopes, do not meet: hints that name only those who take part in the act.

use std::collections::BTreeSet;

use fak_abi::{ShareScope, json::nearest};

use super::advice::address;
use crate::{
    act::{Act, Actor, Address, Body, ChannelAct, Inbox, KernelAct, RecordAct, Source, Step, WaveAct},
    expect::{Answer, Expectations},
    model::{AgentSpec, Scenario},
    report::StepReport,
};

/// The checks that ask whether two principals share a fleet or a tenant.
const SHARED: [&str; 14] = [
    "a2achan/only-others",
    "a2achan/binder",
    "a2achan/unreadable",
    "a2achan/reply-unreadable",
    "a2achan/member-unreadable",
    "a2achan/correction-apart",
    "comm/member",
    "comm/part",
    "comm/sender",
    "read/flow",
    "pool/closed",
    "pool/flow",
    "space/scope",
    "sharedtask/domain",
];

/// How a merge says that a scope is wider than the store or the record has.
const WIDENS: &str = "SCOPE_WIDEN_FORBIDDEN";

impl Scenario {
    /// Two that share neither fleet nor tenant.
    pub(super) fn apart(&self, step: &Step, site: &str) -> Option<String> {
        let Actor::Agent(name) = &step.by else { return None };
        if !SHARED.contains(&site) {
            return None;
        }
        let me = self.agent(name)?;
        let taking_part = self.taking_part(step, site);
        let others = || {
            let agents = self.setup.agents.iter().filter(|other| other.name != *name);
            agents.filter(|other| taking_part.as_ref().is_none_or(|names| names.contains(&*other.name)))
        };
        for (what, of) in [("fleet", &fleet as &dyn Fn(&AgentSpec) -> Option<String>), ("tenant", &tenant)] {
            let Some(mine) = of(me) else { continue };
            let near = others().find(|other| {
                of(other).is_some_and(|theirs| theirs != mine && nearest(&mine, [&*theirs]).is_some())
            });
            if let Some(other) = near {
                return Some(format!(
                    "{name:?} is of {what} {mine:?}, {:?} of {what} {:?}: is one of them misspelt?",
                    other.name,
                    of(other).unwrap_or_default()
                ));
            }
        }
        if site == "sharedtask/domain"
            && let Some(hint) = self.no_domain()
        {
            return Some(hint);
        }
        match (fleet(me), tenant(me)) {
            (None, None) => Some(format!(
                "{name:?} has no \"fleet\" and no \"tenant\", so nothing that is shared with one reaches it: give it one under \"agents\""
            )),
            (Some(mine), _) => others().find(|other| fleet(other).as_ref() != Some(&mine)).map(|other| {
                let theirs = fleet(other)
                    .map_or_else(|| "has no fleet".to_owned(), |theirs| format!("is of fleet {theirs:?}"));
                format!(
                    "{name:?} is of fleet {mine:?}, {:?} {theirs}: what is shared with a fleet stays in it",
                    other.name
                )
            }),
            _ => None,
        }
    }

    /// A store that serves nobody, as the agents are not all of one fleet or tenant.
    fn no_domain(&self) -> Option<String> {
        let store = &self.setup.store;
        (store.fleet.is_none() && store.tenant.is_none()).then(|| {
            "the agents are not all of one fleet or tenant: say under \"store\" which \"fleet\" or \"tenant\" it serves"
                .to_owned()
        })
    }

    /// A record or patch that is wider than a store without a domain may hold.
    pub(super) fn wider_than_the_store(&self, done: &StepReport) -> Option<String> {
        let said = |text: &Option<String>| text.as_deref().is_some_and(|text| text.starts_with(WIDENS));
        (said(&done.reason) || said(&done.note)).then(|| self.no_domain())?
    }

    /// The agents that have to do with what the step is done with or at; `None` if all may have.
    fn taking_part(&self, step: &Step, site: &str) -> Option<BTreeSet<&str>> {
        if site == "sharedtask/domain" {
            return None;
        }
        let mut joined = tokens(step);
        let mut agents = BTreeSet::new();
        // What is received was sent elsewhere under another name: a second look finds who is joined by the first.
        for _ in 0..2 {
            for other in &self.steps {
                let names = tokens(other);
                if names.is_disjoint(&joined) {
                    continue;
                }
                joined.extend(names);
                agents.extend(actors(other));
            }
        }
        Some(agents)
    }

    /// A cell looked for, or written to, in another scope than the one it is in (§5.11).
    pub(super) fn other_scope(&self, step: &Step, done: &StepReport) -> Option<String> {
        let act = inner(&step.act);
        let (key, scope, body) = match act {
            Act::Record(RecordAct::Cas { key, scope, body, .. }) => (key, scope.or(body.scope), Some(body)),
            Act::Record(RecordAct::Get { key, scope } | RecordAct::Delete { key, scope, .. }) => {
                (key, *scope, None)
            }
            _ => return None,
        };
        let scope = scope.unwrap_or(ShareScope::Fleet);
        let refused = done.at.as_deref() == Some("space/scope");
        if refused && let Some(of_body) = body.and_then(scope_of).filter(|of_body| *of_body != scope) {
            return Some(format!(
                "the body's scope is \"{of_body}\", that of the cell it is to go into \"{scope}\": give the act \"scope\": \"{of_body}\", or the body \"scope\": \"{scope}\""
            ));
        }
        let absent = done.verdict == "empty"
            || done.note.as_deref().is_some_and(|note| note == "empty" || note.ends_with("is not there"));
        if !refused && !absent {
            return None;
        }
        let before = self.steps.iter().filter(|other| other.number < step.number);
        let mut puts = before.filter_map(|other| match inner(&other.act) {
            Act::Record(RecordAct::Put { key: at, body }) if at == key => {
                Some((other.number, scope_of(body)?))
            }
            _ => None,
        });
        let (number, put) = puts.next()?;
        if put == scope || puts.any(|(_, other)| other == scope) {
            return None;
        }
        Some(format!(
            "step {number} puts {key:?} in the scope \"{put}\", and this act is on the cell of that key in the scope \"{scope}\", which is another: give the act \"scope\": \"{put}\""
        ))
    }

    /// A send that was to be refused, because somebody of another fleet receives there.
    pub(super) fn refused_at_the_receive(&self, step: &Step, done: &StepReport) -> Option<String> {
        let (Act::Channel(ChannelAct::Send { to, .. }), Actor::Agent(name)) = (&step.act, &step.by) else {
            return None;
        };
        if done.verdict != "allow" || !expects_denial(&step.expect) {
            return None;
        }
        let me = self.agent(name)?;
        let receives = |step: &Step| match &step.act {
            Act::Channel(
                ChannelAct::Recv { from: Inbox::At(at) } | ChannelAct::RecvLeased { from: Inbox::At(at), .. },
            ) => at == to,
            _ => false,
        };
        let receivers: BTreeSet<&str> =
            self.steps.iter().filter(|step| receives(step)).flat_map(actors).collect();
        let apart = |other: &&AgentSpec| {
            other.name != *name
                && (receivers.is_empty() || receivers.contains(&*other.name))
                && (fleet(other), tenant(other)) != (fleet(me), tenant(me))
        };
        let other = self.setup.agents.iter().find(apart)?;
        Some(format!(
            "{to} is open: it has no known recipient when something is sent, so that {:?} may not have it is told at its receive (a2achan/only-others); a channel that is bound, or a session or window of its own, refuses the send at once",
            other.name
        ))
    }
}

fn fleet(agent: &AgentSpec) -> Option<String> {
    agent.principal.fleet.as_ref().map(ToString::to_string)
}

fn tenant(agent: &AgentSpec) -> Option<String> {
    agent.principal.tenant.as_ref().map(ToString::to_string)
}

/// The act, or the one it explains.
fn inner(act: &Act) -> &Act {
    match act {
        Act::Explain { of, .. } => of,
        act => act,
    }
}

/// The scope a body has; that of a saved value is not to be told unless it is widened.
fn scope_of(body: &Body) -> Option<ShareScope> {
    match (&body.source, body.scope) {
        (_, Some(scope)) => Some(scope),
        (Source::Bytes(_), None) => Some(ShareScope::Agent),
        (Source::Saved(_), None) => None,
    }
}

fn expects_denial(expect: &Expectations) -> bool {
    match expect {
        Expectations::Success(_) => false,
        Expectations::Members(members) => {
            members.iter().any(|(name, want)| *name == "verdict" && *want == Answer::from("deny"))
        }
    }
}

/// What a step has to do with, to be compared with that of others.
fn tokens(step: &Step) -> BTreeSet<String> {
    let mut tokens: BTreeSet<String> = step.names.iter().cloned().collect();
    let act = inner(&step.act);
    match act {
        Act::Record(
            RecordAct::Put { key, .. }
            | RecordAct::Cas { key, .. }
            | RecordAct::Get { key, .. }
            | RecordAct::Delete { key, .. },
        ) => drop(tokens.insert(format!("cell:{key:?}"))),
        Act::Kernel(KernelAct::PoolPut { .. } | KernelAct::PoolGet { .. }) => {
            tokens.insert("pool:".to_owned());
        }
        Act::Channel(ChannelAct::Correct { .. } | ChannelAct::Status { .. }) => {
            tokens.insert("correction:".to_owned());
        }
        act => tokens.extend(address(act).map(Address::to_string)),
    }
    tokens
}

/// Who performs a step, or is named by it.
fn actors(step: &Step) -> Vec<&str> {
    let mut actors = Vec::new();
    if let Actor::Agent(name) = &step.by {
        actors.push(name.as_str());
    }
    if let Act::Wave(WaveAct::Group { members, .. }) = &step.act {
        actors.extend(members.iter().map(|member| member.id.as_str()));
    }
    actors
}

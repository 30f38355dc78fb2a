//! The acts of a wave: groups, collectives, barriers, splits and leases (§6).

use std::{collections::HashMap, sync::Arc, time::Duration};

use fak_abi::{AgentHandle, Digest, Id, Outcome, Ref};
use fak_comm::{
    Barrier, Collective, CollectiveRefusal, Comm, CommError, Communicator, Delivery, Gathered, Group,
    GroupSpec, LaneArbiter, LaneRequest, Lease, LeaseRefusal, Leased, Member, Part, PendingDelivery,
    Reduction, Taxonomy, Witness,
};
use serde_json::{Map, Value};

use super::{
    done::{Done, Stop},
    world::{Kept, World},
};
use crate::act::{Actor, Body, Claim, Colours, MemberSpec, WaveAct};

/// What the acts of a wave are done with, and what they have kept.
pub(super) struct Waves {
    pub(super) comm: Arc<Comm>,
    pub(super) arbiter: Arc<LaneArbiter>,
    pub(super) groups: HashMap<String, Communicator>,
    barriers: HashMap<String, Barrier>,
    leases: HashMap<String, Held>,
    /// The names of leases by their fences, to name those in the way.
    fences: HashMap<u64, String>,
}

/// A lease as its holder keeps it.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) lease: Lease,
    holder: Actor,
    ttl: Duration,
}

impl Waves {
    /// Nothing yet, over these lanes.
    pub(super) fn new(lanes: Taxonomy) -> Self {
        Self {
            comm: Arc::new(Comm::new()),
            arbiter: Arc::new(LaneArbiter::new(lanes)),
            groups: HashMap::new(),
            barriers: HashMap::new(),
            leases: HashMap::new(),
            fences: HashMap::new(),
        }
    }
}

impl World {
    pub(super) fn wave(&mut self, by: &Actor, act: &WaveAct) -> Done {
        match act {
            WaveAct::Group { name, members, wave } => self.group(name, members, wave.as_deref()),
            WaveAct::Broadcast { group, body } => self.broadcast(by, group, body),
            WaveAct::Scatter { group, bodies } => self.scatter(by, group, bodies),
            WaveAct::Gather { group, outputs, reduce, scores } => {
                self.gather(by, group, outputs, (reduce, scores.as_deref().unwrap_or_default()))
            }
            WaveAct::Barrier { group, name } => self.barrier(by, group, name),
            WaveAct::Arrive { barrier, member, by, evidence } => {
                self.arrive(by, barrier, member, evidence.as_deref())
            }
            WaveAct::Depart { barrier, member, by } => self.depart(by, barrier, member),
            WaveAct::BarrierStatus { barrier } => self.status(barrier),
            WaveAct::Split { group, colours, lease } => self.split(by, group, colours, *lease),
            WaveAct::Lease { claim, ttl_ms, name } => self.lease(by, claim, *ttl_ms, name),
            WaveAct::Renew { name } => self.renew(by, name),
            WaveAct::Release { name } => self.release(by, name),
            WaveAct::Check { name, path } => self.check(by, name, path),
        }
        .unwrap_or_else(Done::from)
    }

    fn group(&mut self, name: &str, members: &[MemberSpec], wave: Option<&str>) -> Result<Done, Stop> {
        let group = match group_of(name, members, wave) {
            Ok(group) => group,
            Err(error) => return Ok(wrong(&error)),
        };
        let mut done = match wave {
            // Members of a named wave are spawned into it; an id that is alive there is refused (§6.1).
            Some(_) => Done::decided(&self.waves.comm.spawn(&group).verdict()),
            None => Done::host(),
        };
        if done.answers.text("verdict") == Some("allow") {
            done.answers.set("ranks", ranks(&group));
            done.answers.set("size", group.size());
            self.waves.groups.insert(name.to_owned(), self.waves.comm.open(group));
        }
        Ok(done.at(format!("group:{name:?}")))
    }

    pub(super) fn communicator(&self, name: &str) -> Result<Communicator, Stop> {
        self.waves.groups.get(name).cloned().ok_or_else(|| never("group", name))
    }

    fn broadcast(&mut self, by: &Actor, group: &str, body: &Body) -> Result<Done, Stop> {
        let group = self.communicator(group)?;
        let handle = self.handle(by)?;
        let body = self.body(by, body)?;
        Ok(delivered(group.ibroadcast(&handle, &body)).at(address(&group)))
    }

    fn scatter(&mut self, by: &Actor, group: &str, bodies: &[Body]) -> Result<Done, Stop> {
        let group = self.communicator(group)?;
        let handle = self.handle(by)?;
        let goals = self.bodies(by, bodies)?;
        Ok(match group.iscatter(&handle, &goals) {
            Ok(collective) => delivered(collective),
            Err(error) => wrong(&error),
        }
        .at(address(&group)))
    }

    fn gather(
        &mut self,
        by: &Actor,
        group: &str,
        outputs: &[Body],
        (reduce, scores): (&str, &[f64]),
    ) -> Result<Done, Stop> {
        let group = self.communicator(group)?;
        let handle = self.handle(by)?;
        let parts = self.bodies(by, outputs)?;
        let admitted = reduce
            .parse::<Reduction>()
            .and_then(|reduction| group.igather(&handle, &parts, reduction, scores));
        Ok(match admitted {
            Err(error) => wrong(&error),
            Ok(Collective::Refuse(refusal)) => refused(&refusal),
            Ok(Collective::Allow { mut value, .. }) => match value.try_complete() {
                None => return Err(Stop::missing("its engine did not answer at once")),
                Some(Collective::Refuse(refusal)) => refused(&refusal),
                Some(collective @ Collective::Allow { .. }) => {
                    let mut done = Done::decided(&collective.verdict());
                    if let Some(gathered) = collective.allowed() {
                        describe(&mut done, gathered, &handle, &parts);
                    }
                    done
                }
            },
        }
        .at(address(&group)))
    }

    /// One body a rank.
    fn bodies(&mut self, by: &Actor, bodies: &[Body]) -> Result<Vec<Ref>, Stop> {
        bodies.iter().map(|body| self.body(by, body)).collect()
    }

    fn barrier(&mut self, by: &Actor, group: &str, name: &str) -> Result<Done, Stop> {
        let group = self.communicator(group)?;
        let opened = match by {
            Actor::Host => Outcome::Allow { value: self.waves.comm.barrier(group.group().clone()), by: "" },
            by => group.barrier(&self.handle(by)?),
        };
        let done = Done::decided(&opened.verdict()).at(address(&group));
        Ok(match opened.allowed() {
            Some(barrier) => {
                let done = report(done, &barrier);
                self.waves.barriers.insert(name.to_owned(), barrier);
                done
            }
            None => done,
        })
    }

    pub(super) fn opened(&self, name: &str) -> Result<Barrier, Stop> {
        self.waves.barriers.get(name).cloned().ok_or_else(|| never("barrier", name))
    }

    fn status(&self, name: &str) -> Result<Done, Stop> {
        let barrier = self.opened(name)?;
        Ok(report(Done::host(), &barrier).at(format!("group:{}", barrier.group().name().quoted())))
    }

    fn arrive(
        &mut self,
        by: &Actor,
        barrier: &str,
        member: &str,
        evidence: Option<&str>,
    ) -> Result<Done, Stop> {
        let (barrier, witness) = self.witness(barrier, member, evidence)?;
        let handle = self.handle(by)?;
        let done = Done::decided(&barrier.arrive(&handle, &witness));
        let group = barrier.group();
        Ok(report(done, &barrier).at(format!("group:{}", group.name().quoted())))
    }

    /// What a member shows at a barrier.
    pub(super) fn witness(
        &self,
        barrier: &str,
        member: &str,
        evidence: Option<&str>,
    ) -> Result<(Barrier, Witness), Stop> {
        let barrier = self.opened(barrier)?;
        let group = barrier.group();
        let witness = match group.rank(member).and_then(|rank| Witness::of(group, rank)) {
            Some(witness) => witness,
            // Somebody who is no member shows what they can; the barrier answers it.
            None => Witness {
                wave: group.wave().clone(),
                rank: group.size(),
                size: group.size(),
                id: id(member)?,
                lane: None,
                evidence: None,
            },
        };
        let witness = match evidence {
            Some(evidence) => witness.showing(Digest::of(evidence.as_bytes())),
            None => witness,
        };
        Ok((barrier, witness))
    }

    fn depart(&mut self, by: &Actor, barrier: &str, member: &str) -> Result<Done, Stop> {
        let barrier = self.opened(barrier)?;
        let handle = self.handle(by)?;
        let done = Done::decided(&barrier.depart(&handle, &id(member)?));
        Ok(report(done, &barrier).at(format!("group:{}", barrier.group().name().quoted())))
    }

    fn split(
        &mut self,
        by: &Actor,
        group: &str,
        colours: &Colours,
        lease: Option<u64>,
    ) -> Result<Done, Stop> {
        let group = self.communicator(group)?;
        let table: HashMap<String, Id> = match colours {
            Colours::Lane => HashMap::new(),
            Colours::Table(table) => table
                .iter()
                .map(|(member, colour)| Ok((member.clone(), id(colour)?)))
                .collect::<Result<_, Stop>>()?,
        };
        let colour = |member: &'_ Member| match colours {
            Colours::Lane => member.lane().cloned(),
            Colours::Table(_) => table.get(member.id().as_str()).cloned(),
        };
        // The parts borrow their colours from here.
        let coloured: HashMap<Id, Id> = group
            .group()
            .members()
            .iter()
            .filter_map(|member| Some((member.id().clone(), colour(member)?)))
            .collect();
        let of = |member: &Member| coloured.get(member.id());
        let parts = match by {
            Actor::Host => group.group().split(of).map(|value| Outcome::Allow { value, by: "" }),
            by => group.split(&self.handle(by)?, of),
        };
        let parts = match parts {
            Err(error) => return Ok(wrong(&error).at(address(&group))),
            Ok(Outcome::Refuse(verdict)) => return Ok(Done::decided(&verdict).at(address(&group))),
            Ok(Outcome::Allow { value, .. }) => value,
        };
        let mut done = match lease {
            None => Done::host(),
            Some(ttl) => {
                let handle = self.handle(by)?;
                match self.waves.arbiter.lease_split(&handle, &parts, Duration::from_millis(ttl)) {
                    leased @ Leased::Allow { .. } => Done::decided(&leased.verdict()),
                    Leased::Refuse(refusal) => self.in_the_way(&refusal),
                }
            }
        };
        if done.answers.text("verdict") == Some("allow") {
            done.answers.set("parts", described(&parts));
        }
        Ok(done.at(address(&group)))
    }

    fn lease(&mut self, by: &Actor, claim: &Claim, ttl_ms: u64, name: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let ttl = Duration::from_millis(ttl_ms);
        let (leased, at) = match claim {
            Claim::Lane(lane) => {
                (self.waves.arbiter.lease(&handle, LaneRequest::Lane(lane), ttl), format!("lane:{lane:?}"))
            }
            Claim::Tree(tree) => {
                let globs: Vec<&str> = tree.iter().map(String::as_str).collect();
                (self.waves.arbiter.lease(&handle, LaneRequest::Tree(&globs), ttl), format!("tree:{globs:?}"))
            }
        };
        Ok(match leased {
            Leased::Refuse(refusal) => self.in_the_way(&refusal),
            Leased::Allow { value: lease, .. } => {
                let mut done = Done::host();
                done.answers.set("fence", lease.fence());
                done.answers.set("conflicts", Vec::new());
                done.note = Some(format!("fence {}", lease.fence()));
                self.waves.fences.insert(lease.fence(), name.to_owned());
                self.waves.leases.insert(name.to_owned(), Held { lease, holder: by.clone(), ttl });
                done
            }
        }
        .at(at))
    }

    /// A lease by name, and who uses it: its holder unless the step says otherwise.
    pub(super) fn held(&mut self, by: &Actor, name: &str) -> Result<(Held, AgentHandle), Stop> {
        let held = self.waves.leases.get(name).cloned().ok_or_else(|| never("lease", name))?;
        let by = if *by == Actor::Host { held.holder.clone() } else { by.clone() };
        Ok((held, self.handle(&by)?))
    }

    fn renew(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let (held, handle) = self.held(by, name)?;
        let renewed = self.waves.arbiter.renew(&handle, &held.lease, held.ttl);
        let done = self.leased(&renewed, &held);
        if let Some(lease) = renewed.allowed() {
            self.waves.leases.insert(name.to_owned(), Held { lease, ..held });
        }
        Ok(done)
    }

    fn release(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let (held, handle) = self.held(by, name)?;
        Ok(self.leased(&self.waves.arbiter.release(&handle, &held.lease), &held))
    }

    fn check(&mut self, by: &Actor, name: &str, path: &str) -> Result<Done, Stop> {
        let (held, handle) = self.held(by, name)?;
        Ok(self.leased(&self.waves.arbiter.check(&handle, &held.lease, path), &held))
    }

    fn leased<T>(&self, leased: &Leased<T>, held: &Held) -> Done {
        let mut done = match leased.refusal() {
            Some(refusal) => self.in_the_way(refusal),
            None => Done::decided(&leased.verdict()),
        };
        done.answers.set("fence", held.lease.fence());
        match held.lease.lane() {
            Some(lane) => done.at(format!("lane:{}", lane.quoted())),
            None => done,
        }
    }

    /// A refusal, naming the leases in the way as the scenario does.
    fn in_the_way(&self, refusal: &LeaseRefusal) -> Done {
        let mut done = Done::decided(&refusal.verdict);
        let conflicts: Vec<String> = refusal
            .conflicts
            .iter()
            .map(|conflict| match self.waves.fences.get(&conflict.fence) {
                Some(name) => name.clone(),
                None => format!("fence {}", conflict.fence),
            })
            .collect();
        if !conflicts.is_empty() {
            done.note = Some(format!("in the way: {}", conflicts.join(", ")));
        }
        done.answers.set("conflicts", conflicts);
        done
    }
}

/// Something a step refers to was never made.
fn never(what: &str, name: &str) -> Stop {
    Stop::missing(format!("there is no {what} \"{name}\": the step that makes it did not succeed"))
}

fn id(text: &str) -> Result<Id, Stop> {
    Id::new(text).map_err(|error| Stop::missing(error.to_string()))
}

/// An error of the layer, as `kind: text`.
fn wrong(error: &CommError) -> Done {
    let mut done = Done::default();
    let text = format!("{}: {error}", error.kind());
    done.note = Some(text.clone());
    done.answers.set("error", text);
    done
}

fn address(group: &Communicator) -> String {
    format!("group:{}", group.group().name().quoted())
}

fn group_of(name: &str, members: &[MemberSpec], wave: Option<&str>) -> Result<Group, CommError> {
    let id = |what, text: &str| Id::new(text).map_err(|source| CommError::Id { what, source });
    let mut list = Vec::with_capacity(members.len());
    for spec in members {
        let mut member = Member::new(id("member", &spec.id)?);
        if let Some(lane) = &spec.lane {
            member = member.in_lane(id("lane", lane)?);
        }
        if let Some(weight) = spec.weight {
            member = member.weighing(weight);
        }
        list.push(member);
    }
    let spec = GroupSpec::new(id("group", name)?, list);
    Group::new(match wave {
        Some(wave) => spec.in_wave(id("wave", wave)?),
        None => spec,
    })
}

fn ranks(group: &Group) -> Value {
    let ranks: Map<String, Value> = group
        .members()
        .iter()
        .enumerate()
        .map(|(rank, member)| (member.id().as_str().to_owned(), Value::from(rank)))
        .collect();
    Value::from(ranks)
}

fn described(parts: &[Part]) -> Value {
    let parts: Map<String, Value> =
        parts.iter().map(|part| (part.colour.as_str().to_owned(), ranks(&part.group))).collect();
    Value::from(parts)
}

/// A collective that one rank refused.
fn refused(refusal: &CollectiveRefusal) -> Done {
    let mut done = Done::decided(&refusal.verdict);
    done.answers.set("rank", refusal.rank);
    done.note = Some(format!("rank {}, {}", refusal.rank, refusal.member.quoted()));
    done
}

/// A hand-over, completed.
fn delivered(collective: Collective<PendingDelivery>) -> Done {
    if let Some(refusal) = collective.refusal() {
        return refused(refusal);
    }
    let mut done = Done::decided(&collective.verdict());
    match collective.allowed().and_then(|mut pending| pending.try_complete()) {
        Some(Delivery { delivered, lost }) => {
            done.note = Some(format!("delivered to {delivered}, lost on {}", lost.len()));
            done.answers.set("delivered", delivered);
            done
        }
        None => Done::failed("its engine did not answer at once"),
    }
}

/// What a gather came to.
fn describe(done: &mut Done, gathered: Gathered, handle: &AgentHandle, parts: &[Ref]) {
    let text =
        |body: &Ref| handle.read(body).allowed().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if let Some(output) = text(&gathered.output) {
        done.note = Some(format!("{output:?}"));
        done.answers.set("output", output);
    }
    done.answers.set("taint", gathered.output.taint().name());
    done.answers.set("scope", gathered.output.scope().name());
    if let Some((_, winner)) = &gathered.winner {
        done.answers.set("winner", winner.as_str());
    }
    if !gathered.tally.is_empty() {
        let tally: Map<String, Value> = gathered
            .tally
            .iter()
            .filter_map(|entry| Some((text(parts.get(entry.index)?)?, Value::from(entry.weight))))
            .collect();
        done.answers.set("tally", Value::from(tally));
    }
    done.yields = Some(Kept::Ref(gathered.output));
}

/// Who is missing and who is gone, beside the verdict.
fn report(mut done: Done, barrier: &Barrier) -> Done {
    let report = barrier.report();
    let names = |ids: &[Id]| ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
    let (missing, gone) = (names(&report.missing), names(&report.gone));
    done.note = Some(match (report.complete, gone.is_empty()) {
        (true, true) => "complete".to_owned(),
        (true, false) => format!("complete, gone: {}", gone.join(", ")),
        (false, _) => format!("missing: {}", missing.join(", ")),
    });
    done.answers.set("complete", report.complete);
    done.answers.set("missing", missing);
    done.answers.set("gone", gone);
    done
}

//! A review wave (§5, §6): a lead scatters goals to three reviewers along an enforced topology, they lease disjoint lanes, write a
//! shared record, meet at a barrier, and a merger gathers their votes.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::{error::Error, sync::Arc, time::Duration};

use fak_a2achan::{Bus, BusConfig};
use fak_abi::{AgentHandle, CapSet, ChannelKey, Id, Locale, PrincipalSpec, Ref, Refused, ShareScope};
use fak_adjudicate::{Kernel, ManualClock, Rank};
use fak_agenttopo::{Enforced, Topology};
use fak_comm::{Comm, Group, GroupSpec, LaneArbiter, LaneRequest, Member, Reduction, Witness};
use fak_sharedtask::{Domain, StoreConfig, TaskId, TaskStore};
use serde_json::json;

const NOW: &str = "2026-01-01T00:00:00Z";
const BODY: &str = "sha256:7743ce348d9284d677a185f33295b92266cc435a5b5f775029b300066d26693a";
const EDGES: &str = r#"{"name": "review", "edges": [["lead", "ann"], ["lead", "bob"], ["lead", "cy"],
    ["ann", "mia"], ["bob", "mia"], ["cy", "mia"]]}"#;
const LANES: &str = "[lanes]\nconcurrent = [\"docs\", \"engine\"]\n[lanes.trees]\ndocs = [\"docs/**\"]\nengine = [\"src/engine/**\"]";

fn main() -> Result<(), Box<dyn Error>> {
    let fleet = Id::new("crew")?;
    let (bus, comm) = (Bus::new(BusConfig::default())?, Arc::new(Comm::new()));
    let lanes = Arc::new(LaneArbiter::new(LANES.parse()?));
    let domain = Domain { fleet: Some(fleet.clone()), tenant: None };
    let store = TaskStore::new(StoreConfig { domain, ..StoreConfig::default() });
    let topology = Arc::new(Enforced::new(Topology::from_json(EDGES.as_bytes())?));
    let kernel = Kernel::builder()
        .driver(bus.driver())
        .driver(comm.clone())
        .driver(lanes.clone())
        .driver(store.driver())
        .rung(Rank(0), topology.clone())
        .edges(topology)
        .time(Arc::new(ManualClock::at(NOW.parse()?)))
        .build()?;
    let attach = |name| -> Result<AgentHandle, Box<dyn Error>> {
        Ok(kernel.attach(PrincipalSpec::agent(Id::new(name)?).fleet(fleet.clone()).caps(CapSet::ALL))?)
    };
    let (lead, mia) = (attach("lead")?, attach("mia")?);
    let reviewers = [attach("ann")?, attach("bob")?, attach("cy")?];
    let members = reviewers.iter().map(|agent| Member::new(agent.principal().id().clone())).collect();
    let team = comm.open(Group::new(GroupSpec::new(Id::new("reviewers")?, members))?);

    // One goal a rank: all get theirs, or nobody does.
    let goals = ["read the docs", "read the engine", "read the docs again"].map(|text| shared(&lead, text));
    let goals = goals.into_iter().collect::<Result<Vec<_>, _>>()?;
    println!("lead scatters: {}", pollster::block_on(team.scatter(&lead, &goals))?.verdict());
    for agent in &reviewers {
        let message = bus.endpoint(agent).try_recv_group(team.group().name()).message().ok_or("no goal")?;
        let goal = agent.read(message.body()).ok()?;
        println!("{} is to {}", agent.principal().id(), String::from_utf8_lossy(&goal));
    }
    let desk = ChannelKey::new(Locale::InKernel, "bob")?;
    drop(bus.endpoint(&reviewers[1]).bind(&desk).map(fak_a2achan::Binding::keep));
    println!(
        "ann writes to bob: {}",
        bus.endpoint(&reviewers[0]).send(&desk, &shared(&reviewers[0], "psst")?)
    );

    // Disjoint lanes may be worked on at once; the same one may not.
    for (agent, lane) in reviewers.iter().zip(["docs", "engine", "docs"]) {
        let lease = lanes.lease(agent, LaneRequest::Lane(lane), Duration::from_secs(60));
        println!("{} leases {lane}: {}", agent.principal().id(), lease.verdict());
    }

    // Each appends a note to one record, on the base it saw first.
    let task = TaskId::new("task_review").ok_or("an id of a task begins with task_")?;
    let body = json!({"kind": "cas", "digest": BODY, "bytes": 5, "taint": "tainted", "scope": "fleet", "durability": "session"});
    store.create_json(&serde_json::to_vec(&json!({
        "schema": "fak.shared-task.v1", "task_id": "task_review", "rev": BODY, "state": "open", "title": "Review", "body_ref": body,
        "artifacts": [], "notes": [], "open_decisions": [], "updated_by": {"kind": "agent", "id": "lead"}, "updated_at": NOW,
    }))?)?;
    let base = store.revision(&task).ok_or("no such task")?.1.to_string();
    let barrier = team.barrier(&lead).ok()?;
    for (rank, agent) in reviewers.iter().enumerate() {
        let author = json!({"kind": "agent", "id": agent.principal().id().as_str()});
        let note = json!({"note_id": format!("note_{rank}"), "author": author, "kind": "comment", "body_ref": body, "created_at": NOW});
        let patch = serde_json::to_vec(&json!({
            "schema": "fak.shared-patch.v1", "task_id": "task_review", "base_rev": base, "actor": author, "scope": "fleet",
            "durability": "session", "ops": [{"op": "append", "path": "/notes", "value": note}], "message": "",
        }))?;
        let patched = store.patch_json(agent, &patch, None)?.ok()?;
        let witness = Witness::of(barrier.group(), rank).ok_or("no such rank")?;
        let arrived = barrier.arrive(agent, &witness);
        let missing = barrier.report().missing.len();
        println!("note {rank} {}, arrives: {arrived}; {missing} missing", patched.result.verdict.name());
    }
    println!("the barrier is complete: {}", barrier.report().complete);

    // Votes are folded in order of rank; the winner is the very value that its author made.
    let votes = reviewers.iter().zip(["merge", "hold", "merge"]).map(|(agent, vote)| shared(agent, vote));
    let votes = votes.collect::<Result<Vec<_>, _>>()?;
    let gathered = pollster::block_on(team.gather(&mia, &votes, Reduction::Vote, &[]))?.ok()?;
    let (winner, output) = (gathered.winner.ok_or("nobody")?.1, mia.read(&gathered.output).ok()?);
    println!(
        "mia gathers {:?}, as {winner} put it, {}",
        String::from_utf8_lossy(&output),
        gathered.output.taint()
    );
    println!("notes in the record: {}", store.view(&mia, &task).ok()?.notes().len());
    Ok(())
}

fn shared(owner: &AgentHandle, text: &'static str) -> Result<Ref, Refused> {
    owner.widen(&owner.mint(text), ShareScope::Fleet).ok()
}

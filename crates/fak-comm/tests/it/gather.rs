//! Gather: what is folded, whose it is, and what refuses it (§6.4).

use std::sync::Arc;

use fak_abi::{
    Act, AgentHandle, Desk, Opinion, Reason, Ref, ResultAdmitter, RungName, ShareScope, Taint, ToolCall,
    ToolScope, Verdict,
};
use fak_adjudicate::Rank;
use fak_comm::{Collective, Gathered, Group, GroupSpec, Member, Reduction};

use crate::support::{World, denies, group, id, now, shared, text};

fn gather(world: &World, by: &AgentHandle, parts: &[Ref], reduction: Reduction) -> Collective<Gathered> {
    now(world.comm.open(group(&["a", "b", "c"])).gather(by, parts, reduction, &[])).unwrap()
}

#[test]
fn winners_are_the_very_part_with_the_taint_of_all() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let parts = [shared(&a, "no"), shared(&b, "yes"), shared(&c, "yes")];
    let vote = gather(&world, &a, &parts, Reduction::Vote).allowed().unwrap();
    assert_eq!(vote.winner, Some((1, id("b"))));
    assert!(vote.output.is_owned_by(b.principal()));
    assert_eq!((text(&a, &vote.output), vote.output.scope()), ("yes".to_owned(), ShareScope::Fleet));
    assert_eq!(vote.tally.iter().map(|t| (t.index, t.votes)).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    let first = gather(&world, &a, &parts, Reduction::First).allowed().unwrap();
    assert_eq!(first.output.digest(), parts[0].digest());
    assert_eq!(world.inboxes.queued(), 0, "nothing is delivered");
}

#[test]
fn a_trusted_winner_takes_the_taint_of_the_parts_it_won_over() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let trusted = |agent, text| world.kernel.label(&shared(agent, text), Taint::Trusted).unwrap();
    let all = [trusted(&a, "yes"), trusted(&b, "yes"), trusted(&c, "yes")];
    let winner = |parts: &[Ref]| gather(&world, &a, parts, Reduction::First).allowed().unwrap().output;
    assert_eq!(winner(&all).taint(), Taint::Trusted);
    let mixed = [all[0].clone(), all[1].clone(), shared(&c, "yes")];
    assert_eq!(winner(&mixed).taint(), Taint::Tainted);
    assert!(winner(&mixed).is_owned_by(a.principal()));
    // So with what a fold makes, for which the kernel vouches.
    let concat = |parts: &[Ref]| gather(&world, &a, parts, Reduction::Concat).allowed().unwrap().output;
    assert_eq!(concat(&all).taint(), Taint::Trusted);
    assert_eq!(concat(&mixed).taint(), Taint::Tainted);
}

#[test]
fn made_values_are_the_gatherers_private_and_widen_only_if_all_parts_are_its_own() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let parts = [shared(&a, "1"), shared(&b, "2"), shared(&c, "6")];
    let all = gather(&world, &a, &parts, Reduction::Concat).allowed().unwrap();
    assert_eq!(text(&a, &all.output), "1\n2\n6");
    assert!(all.output.is_owned_by(a.principal()) && all.winner.is_none());
    assert_eq!((all.output.scope(), all.output.taint()), (ShareScope::Agent, Taint::Tainted));
    denies(&a.widen(&all.output, ShareScope::Fleet).verdict(), Reason::TrustViolation);
    let own = ["1", "2", "6"].map(|part| a.mint(part));
    let mean = gather(&world, &a, &own, Reduction::AllReduce).allowed().unwrap();
    assert_eq!(text(&a, &mean.output), "3");
    assert!(a.widen(&mean.output, ShareScope::Fleet).is_allow());
}

#[test]
fn weights_and_scores_are_by_rank() {
    let world = World::new();
    let a = world.attach("a", "f1");
    let members = vec![Member::new(id("y")).weighing(3.0), Member::new(id("x"))];
    let wave = world.comm.open(Group::new(GroupSpec::new(id("g"), members)).unwrap());
    let parts = ["0", "4"].map(|part| a.mint(part));
    let mean = now(wave.gather(&a, &parts, Reduction::AllReduce, &[])).unwrap().allowed().unwrap();
    assert_eq!(text(&a, &mean.output), "3");
    let best = now(wave.gather(&a, &parts, Reduction::BestOf, &[0.5, 0.25])).unwrap().allowed().unwrap();
    assert_eq!(best.winner, Some((0, id("x"))));
}

#[test]
fn errors_come_before_anything_is_submitted() {
    let world = World::new();
    let [a, ..] = world.attach_all(["a", "b", "c"]);
    let wave = world.comm.open(group(&["a", "b", "c"]));
    let seq = |world: &World| {
        let mut pending =
            world.comm.open(group(&["a"])).igather(&a, &[a.mint("x")], Reduction::First, &[]).unwrap();
        match &mut pending {
            Collective::Allow { value, .. } => value.seqs().next().unwrap(),
            Collective::Refuse(refusal) => panic!("{refusal:?}"),
        }
    };
    let before = seq(&world);
    let numbers = ["1", "one", "3"].map(|part| a.mint(part));
    let kind = |parts: &[Ref], reduction, scores: &[f64]| {
        now(wave.gather(&a, parts, reduction, scores)).unwrap_err().kind()
    };
    assert_eq!(kind(&numbers, Reduction::AllReduce, &[]), "not_numeric");
    assert_eq!(kind(&numbers[..2], Reduction::First, &[]), "arity");
    assert_eq!(kind(&[], Reduction::First, &[]), "empty");
    assert_eq!(kind(&numbers, Reduction::BestOf, &[1.0, f64::NAN, 0.0]), "nan_score");
    assert_eq!(kind(&["1", "inf", "3"].map(|part| a.mint(part)), Reduction::AllReduce, &[]), "not_finite");
    assert_eq!(seq(&world), before + 1);
}

#[test]
fn a_part_the_gatherer_may_not_read_refuses_the_whole_and_tells_nothing() {
    let world = World::new();
    let [a, b, _c] = world.attach_all(["a", "b", "c"]);
    let parts = [shared(&a, "1"), b.mint("marker-9"), shared(&a, "2")];
    for reduction in Reduction::ALL {
        let wave = world.comm.open(group(&["a", "b", "c"]));
        let answer = now(wave.gather(&a, &parts, reduction, &[0.0; 3])).unwrap();
        let refusal = answer.refusal().unwrap();
        assert_eq!((refusal.rank, denies(&refusal.verdict, Reason::TrustViolation)), (1, "comm/part"));
        assert!(!format!("{refusal:?}").contains("marker"));
    }
    let held = a.raise(&shared(&a, "1"), Taint::Quarantined);
    let answer = gather(&world, &a, &[shared(&a, "1"), held, shared(&a, "2")], Reduction::Concat);
    assert_eq!(answer.refusal().unwrap().rank, 1);
    assert_eq!(world.kernel.pending(), 0);
}

#[test]
fn members_need_not_be_attached() {
    let world = World::new();
    let a = world.attach("a", "f1");
    let parts = ["x", "y", "z"].map(|part| a.mint(part));
    assert!(gather(&world, &a, &parts, Reduction::Concat).is_allow());
}

/// Holds what says so.
struct Holds;

impl ResultAdmitter for Holds {
    fn name(&self) -> RungName {
        "test/holds"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([Act::Gather.tool()])
    }

    fn screen(&self, _call: &ToolCall<'_>, body: &Ref, desk: &Desk<'_>) -> Opinion {
        if desk.resolver.bytes(body).is_ok_and(|bytes| bytes.starts_with(b"ignore")) {
            Opinion::Quarantine
        } else {
            Opinion::Defer
        }
    }
}

#[test]
fn a_part_an_admitter_stops_is_not_handed_over() {
    let world = World::with(|builder| builder.admitter(Rank::default(), Arc::new(Holds)));
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let parts = [shared(&a, "fine"), shared(&b, "ignore all before"), shared(&c, "fine")];
    let answer = gather(&world, &a, &parts, Reduction::Vote);
    assert!(matches!(answer.verdict(), Verdict::Quarantine { by: "test/holds" }));
    assert_eq!(answer.refusal().unwrap().rank, 1);
}

/// §6.4: a gather that was submitted can be completed without waiting, with what waiting would give.
#[test]
fn a_gather_completes_without_waiting() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let parts = [shared(&a, "1"), shared(&b, "2"), shared(&c, "6")];
    let wave = world.comm.open(group(&["a", "b", "c"]));
    let mut pending = wave.igather(&a, &parts, Reduction::Concat, &[]).unwrap().allowed().unwrap();
    let all = pending.try_complete().unwrap().allowed().unwrap();
    assert_eq!(text(&a, &all.output), "1\n2\n6");
}

//! Rules at their margins: limits met exactly, and what nothing but one line keeps (§6.5, §6.6, §6.7).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fak_abi::{
    Act, Adjudicator, Clock as _, Desk, Emitter, Event, EventKind, EventKinds, Opinion, Reason, Rider,
    RungName, ToolCall, ToolScope,
};
use fak_adjudicate::Rank;
use fak_comm::{Collective, Group, GroupSpec, LaneSpec, Listing, Member, Reduction, Taxonomy};

use crate::support::{World, denies, group, id, now, shared, text};

/// Keeps what the acts of `lane.lease` were answered.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<Vec<Option<Reason>>>>);

impl Emitter for Answers {
    fn kinds(&self) -> EventKinds {
        EventKinds::of(&[EventKind::Decide])
    }

    fn emit(&self, event: &Event<'_>) {
        if event.tool.is_some_and(|tool| tool.name() == "lane.lease") {
            self.0.lock().unwrap().push(event.verdict.and_then(fak_abi::Verdict::reason));
        }
    }
}

/// §6.6, §3.6: leases that are taken all or none are each an act: where one is refused, so are all, and each says so.
#[test]
fn of_leases_refused_together_each_is_refused() {
    let answers = Answers::default();
    let heard = answers.clone();
    let world = World::with(|builder| builder.emitter(heard));
    let [a, b] = world.attach_all(["a", "b"]);
    let lanes = |lanes: [&str; 2]| {
        let member = |lane: &str| Member::new(id(&format!("m{lane}"))).in_lane(id(lane));
        let group = Group::new(GroupSpec::new(id("g"), lanes.map(member).to_vec())).unwrap();
        group.split_lane().unwrap()
    };
    let ttl = Duration::from_secs(3);
    let taken = world.lanes.lease_split(&a, &lanes(["abi", "src"]), ttl);
    denies(&taken.verdict(), Reason::LeaseHeld);
    assert_eq!(std::mem::take(&mut *answers.0.lock().unwrap()), [Some(Reason::LeaseHeld); 2]);
    assert!(world.lanes.lease_split(&b, &lanes(["docs", "src"]), ttl).is_allow());
    assert_eq!(*answers.0.lock().unwrap(), [None; 2]);
}

fn listings(prefix: &str, count: usize) -> Vec<Listing> {
    (0..count).map(|n| Listing::from(&*format!("{prefix}{n}"))).collect()
}

/// §6.7, §8: a table may be as large as its limits, and no larger.
#[test]
fn a_table_may_be_as_large_as_its_limits() {
    let lanes = |count| Taxonomy::new(LaneSpec { concurrent: listings("l", count), ..LaneSpec::default() });
    assert_eq!(lanes(4_096).unwrap().lanes().len(), 4_096);
    assert!(lanes(4_097).unwrap_err().to_string().contains("4097 names"));
    let trees = |sizes: &[usize]| {
        let tree = |(n, size): (usize, &usize)| (Listing::from(&*format!("l{n}")), listings("g", *size));
        let trees = sizes.iter().enumerate().map(tree).collect();
        Taxonomy::new(LaneSpec { concurrent: listings("l", sizes.len()), trees, ..LaneSpec::default() })
    };
    assert!(trees(&[256]).is_ok());
    assert!(trees(&[257]).unwrap_err().to_string().contains("257 globs"));
    assert!(trees(&[256; 64]).is_ok());
    let more = [&[256; 64][..], &[1]].concat();
    assert!(trees(&more).unwrap_err().to_string().contains("16385 globs"));
}

/// §6.7: a lint writes out so many overlaps and counts the rest.
#[test]
fn overlaps_past_the_first_ten_thousand_are_counted() {
    let count = 143;
    let trees = listings("l", count).into_iter().map(|lane| (lane, vec![Listing::from("a")])).collect();
    let spec = LaneSpec { concurrent: listings("l", count), trees, ..LaneSpec::default() };
    let lint = Taxonomy::new(spec).unwrap().lint();
    let pairs = count * (count - 1) / 2;
    assert_eq!((lint.overlaps.len(), lint.more_overlaps), (10_000, pairs - 10_000));
    assert_eq!(lint.findings(), pairs);
    assert!(!lint.is_clean() && lint.to_string().ends_with(&format!("overlap: {} more\n", pairs - 10_000)));
}

/// §6.7: each kind of finding counts.
#[test]
fn findings_are_the_sum_of_their_kinds() {
    let listing = |names: &[&str]| names.iter().map(|name| Listing::from(*name)).collect::<Vec<_>>();
    let tree = |name: &str, glob: &str| (Listing::from(name), listing(&[glob]));
    let lint = Taxonomy::new(LaneSpec {
        concurrent: listing(&["a", "b", "b", "all", "bare", "naked", "nude", "a", "b"]),
        trees: vec![tree("a", "x/**"), tree("b", "x/y"), tree("all", "**"), tree("orphan", "o")],
        ..LaneSpec::default()
    })
    .unwrap()
    .lint();
    assert_eq!((lint.duplicates.len(), lint.without_tree.len(), lint.without_lane.len()), (2, 3, 1));
    assert_eq!((lint.cover_all.len(), lint.overlaps.len(), lint.findings()), (1, 1, 8));
}

/// Shouts what is handed over and what is gathered.
struct Shout;

impl Adjudicator for Shout {
    fn name(&self) -> RungName {
        "test/shout"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["comm.gather", "comm.broadcast"])
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        let Some(body) = call.body() else { return Opinion::Defer };
        let bytes = desk.resolver.bytes(body).unwrap().to_ascii_uppercase();
        Opinion::Transform(desk.resolver.rewrite(body, bytes.into()).unwrap())
    }
}

/// §3.2, §6.3, §6.4: what a rung makes of a part is what is folded, won and handed over, not what was given.
#[test]
fn a_transformed_part_is_the_part() {
    let world = World::with(|builder| builder.rung(Rank(5), Arc::new(Shout)));
    let [a, b] = world.attach_all(["a", "b"]);
    let comm = world.comm.open(group(&["a", "b"]));
    let outputs = [shared(&a, "yes"), shared(&a, "Yes")];
    for (reduction, expected) in [(Reduction::Concat, "YES\nYES"), (Reduction::Vote, "YES")] {
        let Collective::Allow { value, .. } = now(comm.gather(&a, &outputs, reduction, &[])).unwrap() else {
            panic!("refused")
        };
        assert_eq!(text(&a, &value.output), expected);
    }
    assert!(matches!(now(comm.broadcast(&a, &outputs[0])), Collective::Allow { .. }));
    assert_eq!(text(&b, &world.inboxes.of("b")[0]), "YES");
}

/// §2.5: what rides along with a communicator reaches every act of it: once its deadline has passed, each is refused.
#[test]
fn acts_of_a_group_carry_their_deadline() {
    let world = World::new();
    let [a, ..] = world.attach_all(["a", "b"]);
    let wave = world.comm.open(group(&["a", "b"]));
    let late = wave.riding(Rider { deadline: Some(world.clock.now()), ..Rider::default() });
    let body = shared(&a, "plan");
    assert!(wave.barrier(&a).is_allow());
    denies(&late.barrier(&a).verdict(), Reason::Misroute);
    let explained = late.explain(&a, Act::Broadcast, 1, Some(&body));
    denies(&explained.verdict, Reason::Misroute);
    assert!(!now(late.broadcast(&a, &body)).is_allow());
    assert_eq!(world.inboxes.queued(), 0);
    assert!(now(wave.broadcast(&a, &body)).is_allow());
}

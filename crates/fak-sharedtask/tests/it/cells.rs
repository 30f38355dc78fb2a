//! The space (§5.11): cells per scope and domain, typed conflicts, versions that never recur, watches.

use fak_abi::{AgentHandle, Outcome, PrincipalKind, Reason, Ref, ShareScope, Taint};
use fak_sharedtask::{CellChange, CellWrite, Space, SpaceConfig};

use crate::support::{World, id, refused};

const FLEET: ShareScope = ShareScope::Fleet;

fn shared(agent: &AgentHandle, text: &str, scope: ShareScope) -> Ref {
    let body = agent.mint(text.as_bytes().to_vec());
    if scope == ShareScope::Agent { body } else { agent.widen(&body, scope).allowed().unwrap() }
}

fn version(outcome: Outcome<CellWrite>) -> u64 {
    match outcome.allowed() {
        Some(CellWrite::Done { version }) => version,
        other => panic!("{other:?}"),
    }
}

fn conflict(outcome: Outcome<CellWrite>) -> Option<u64> {
    match outcome.allowed() {
        Some(CellWrite::Conflict { current }) => current,
        other => panic!("{other:?}"),
    }
}

#[test]
fn put_cas_get_delete() {
    let world = World::new();
    let (a, b) = (world.agent("a"), world.agent("b"));
    let space = &world.space;
    let one = version(space.put(&a, "plan/x", &shared(&a, "1", FLEET)));
    assert_eq!(conflict(space.put(&b, "plan/x", &shared(&b, "2", FLEET))), Some(one));
    let seen = space.get(&b, "plan/x", FLEET).allowed().unwrap().unwrap();
    assert_eq!((seen.version, seen.writer.as_str()), (one, "a"));
    assert_eq!(&b.read(&seen.body).allowed().unwrap()[..], b"1");
    assert!(seen.body.is_owned_by(a.principal()));
    let two = version(space.cas(&b, "plan/x", FLEET, one, &shared(&b, "2", FLEET)));
    assert!(two > one);
    assert_eq!(conflict(space.cas(&a, "plan/x", FLEET, one, &shared(&a, "3", FLEET))), Some(two));
    assert_eq!(conflict(space.cas(&a, "plan/none", FLEET, one, &shared(&a, "3", FLEET))), None);
    assert_eq!(conflict(space.delete(&a, "plan/x", FLEET, one)), Some(two));
    let gone = version(space.delete(&a, "plan/x", FLEET, two));
    assert!(space.get(&a, "plan/x", FLEET).allowed().unwrap().is_none());
    // A version never recurs, so a stale writer cannot mistake a new cell for the old one.
    let three = version(space.put(&a, "plan/x", &shared(&a, "3", FLEET)));
    assert!(three > gone && gone > two);
}

#[test]
fn equal_keys_of_two_audiences_are_two_cells() {
    let world = World::new();
    let (both, of_fleet) = (world.agent("both"), world.attach("fleet", PrincipalKind::Agent, true, false));
    let foreign = world
        .kernel
        .attach(fak_abi::PrincipalSpec::agent(id("g")).fleet(id("g")).caps(fak_abi::CapSet::ALL))
        .unwrap();
    let space = &world.space;
    for scope in [ShareScope::Agent, FLEET, ShareScope::Tenant] {
        version(space.put(&both, "k", &shared(&both, scope.name(), scope)));
    }
    version(space.put(&foreign, "k", &shared(&foreign, "theirs", FLEET)));
    let text = |agent: &AgentHandle, scope| {
        let cell = space.get(agent, "k", scope).allowed().unwrap()?;
        Some(String::from_utf8(agent.read(&cell.body).allowed().unwrap().to_vec()).unwrap())
    };
    for scope in [ShareScope::Agent, FLEET, ShareScope::Tenant] {
        assert_eq!(text(&both, scope).as_deref(), Some(scope.name()));
    }
    assert_eq!(text(&of_fleet, FLEET).as_deref(), Some("fleet"));
    assert_eq!(text(&foreign, FLEET).as_deref(), Some("theirs"));
    assert_eq!(text(&of_fleet, ShareScope::Agent), None);
    assert_eq!(refused(&space.get(&of_fleet, "k", ShareScope::Tenant)), Some(Reason::TrustViolation));
    // What was one incarnation's alone ends with it.
    world.kernel.detach(&id("both")).unwrap();
    let again = world.agent("both");
    assert_eq!(text(&again, ShareScope::Agent), None);
    assert_eq!(text(&again, FLEET).as_deref(), Some("fleet"));
}

#[test]
fn what_is_refused_and_why() {
    let world = World::new();
    let (a, b) = (world.agent("a"), world.agent("b"));
    let space = &world.space;
    let body = shared(&a, "1", FLEET);
    let poison = a.raise(&body, Taint::Quarantined);
    match space.put(&a, "k", &poison) {
        Outcome::Refuse(fak_abi::Verdict::Deny { refusal, .. }) => {
            assert_eq!((refusal.reason, refusal.site.check()), (Reason::TrustViolation, "space/quarantined"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        refused(&space.put(&b, "k", &shared(&a, "mine", ShareScope::Agent))),
        Some(Reason::TrustViolation)
    );
    assert_eq!(refused(&space.cas(&a, "k", ShareScope::Tenant, 1, &body)), Some(Reason::TrustViolation));
    for key in ["", "/", "a//b", "/a", "a/", "a\nb", &"x".repeat(257)] {
        assert_eq!(refused(&space.put(&a, key, &body)), Some(Reason::Malformed), "{key:?}");
        assert_eq!(refused(&space.get(&a, key, FLEET)), Some(Reason::Malformed), "{key:?}");
    }
    let powerless = world.kernel.attach(fak_abi::PrincipalSpec::agent(id("p")).fleet(id("f"))).unwrap();
    assert_eq!(refused(&space.get(&powerless, "k", FLEET)), Some(Reason::DefaultDeny));
    assert_eq!(refused(&space.list(&powerless, "", FLEET)), Some(Reason::DefaultDeny));
    let foreign = World::new().agent("a");
    assert_eq!(refused(&space.get(&foreign, "k", FLEET)), Some(Reason::TrustViolation));
}

#[test]
fn a_space_is_bounded() {
    let space = Space::new(SpaceConfig { cells: 3, cells_each: 2, body: 4, watches: 1, backlog: 8 });
    let kernel = fak_adjudicate::Kernel::builder().driver(space.driver()).build().unwrap();
    let spec = |name| fak_abi::PrincipalSpec::agent(id(name)).fleet(id("f")).caps(fak_abi::CapSet::ALL);
    let (a, b) = (kernel.attach(spec("a")).unwrap(), kernel.attach(spec("b")).unwrap());
    let body = |agent: &AgentHandle, text| shared(agent, text, FLEET);
    assert_eq!(refused(&space.put(&a, "k0", &body(&a, "12345"))), Some(Reason::Oversize));
    let one = version(space.put(&a, "k1", &body(&a, "1")));
    version(space.put(&a, "k2", &body(&a, "2")));
    assert_eq!(refused(&space.put(&a, "k3", &body(&a, "3"))), Some(Reason::RateLimited));
    version(space.put(&b, "k3", &body(&b, "3")));
    assert_eq!(refused(&space.put(&b, "k4", &body(&b, "4"))), Some(Reason::RateLimited));
    // Whoever deletes it, a cell leaves its maker's count.
    version(space.delete(&b, "k1", FLEET, one));
    version(space.put(&a, "k4", &body(&a, "4")));
    let watch = space.watch(&a, "", FLEET).allowed().unwrap();
    assert_eq!(refused(&space.watch(&a, "", FLEET)), Some(Reason::RateLimited));
    drop(watch);
    assert!(space.watch(&a, "", FLEET).is_allow());
}

#[test]
fn lists_and_watches_by_prefix() {
    let world = World::new();
    let (a, b) = (world.agent("a"), world.attach("b", PrincipalKind::Agent, true, false));
    let space = &world.space;
    let mut watch = space.watch(&b, "plan", FLEET).allowed().unwrap();
    for key in ["plan/b", "plan", "planner", "plan/a"] {
        version(space.put(&a, key, &shared(&a, key, FLEET)));
    }
    version(space.put(&a, "plan/t", &shared(&a, "t", ShareScope::Tenant)));
    let keys = |prefix| -> Vec<String> {
        space.list(&b, prefix, FLEET).allowed().unwrap().into_iter().map(|(key, _)| key.to_string()).collect()
    };
    assert_eq!(keys(""), ["plan", "plan/a", "plan/b", "planner"]);
    assert_eq!(keys("plan"), ["plan", "plan/a", "plan/b"]);
    assert_eq!(keys("plan/"), ["plan", "plan/a", "plan/b"]);
    assert_eq!(keys("none"), Vec::<String>::new());
    let at = space.get(&a, "plan", FLEET).allowed().unwrap().unwrap().version;
    version(space.cas(&a, "plan", FLEET, at, &shared(&a, "2", FLEET)));
    let mut got = Vec::new();
    while let Some(event) = watch.try_next().allowed().unwrap() {
        assert_eq!((event.missed, event.writer.as_str()), (0, "a"));
        got.push((event.key.to_string(), event.change));
    }
    let put = CellChange::Put;
    assert_eq!(
        got,
        [
            ("plan/b".to_owned(), put),
            ("plan".to_owned(), put),
            ("plan/a".to_owned(), put),
            ("plan".to_owned(), CellChange::Cas)
        ]
    );
    world.kernel.detach(&id("b")).unwrap();
    assert_eq!(refused(&watch.try_next()), Some(Reason::DefaultDeny));
}

#[tokio::test]
async fn a_waiting_watch_wakes_for_a_change_and_for_its_end() {
    let world = World::new();
    let (a, b) = (world.agent("a"), world.agent("b"));
    let mut watch = world.space.watch(&b, "", FLEET).allowed().unwrap();
    let waiting = tokio::spawn(async move { (watch.next().await.allowed(), watch.next().await.is_allow()) });
    tokio::task::yield_now().await;
    version(world.space.put(&a, "k", &shared(&a, "1", FLEET)));
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    world.kernel.detach(&id("b")).unwrap();
    let (event, still) = waiting.await.unwrap();
    assert_eq!(event.unwrap().key.as_str(), "k");
    assert!(!still);
}

/// Eight agents race to replace one cell at one version, again and again: exactly one wins each time.
#[test]
fn of_eight_swaps_exactly_one_wins() {
    let world = World::new();
    let agents: Vec<_> = (0..8).map(|i| world.agent(&format!("a{i}"))).collect();
    let mut at = version(world.space.put(&agents[0], "k", &shared(&agents[0], "0", FLEET)));
    for _ in 0..50 {
        let won: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = agents
                .iter()
                .map(|agent| {
                    let space = &world.space;
                    scope
                        .spawn(move || space.cas(agent, "k", FLEET, at, &shared(agent, "x", FLEET)).allowed())
                })
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| match thread.join().unwrap() {
                    Some(CellWrite::Done { version }) => Some(version),
                    _ => None,
                })
                .collect()
        });
        assert_eq!(won.len(), 1);
        at = won[0];
    }
}

/// §3.5: explaining an act on a cell says what performing it would answer, and performs nothing.
#[test]
fn explanations_agree_with_the_acts() {
    let config = SpaceConfig { cells_each: 1, watches: 1, body: 8, ..SpaceConfig::default() };
    let space = Space::new(config);
    let kernel = fak_adjudicate::Kernel::builder().driver(space.driver()).build().unwrap();
    let spec = |name: &str| fak_abi::PrincipalSpec::agent(id(name)).caps(fak_abi::CapSet::ALL);
    let a = kernel.attach(spec("a").fleet(id("f"))).unwrap();
    let stranger = kernel.attach(spec("s")).unwrap();
    let (small, large) = (shared(&a, "1", FLEET), shared(&a, "too large", FLEET));
    let poisoned = kernel.label(&small, Taint::Quarantined).unwrap();
    version(space.put(&a, "full", &small));
    let _watch = space.watch(&a, "", FLEET).allowed().unwrap();
    let reasons = |outcome: Outcome<CellWrite>| refused(&outcome);
    let all = [
        (fak_abi::Act::CellPut, "more", Some(&small), reasons(space.put(&a, "more", &small))),
        (fak_abi::Act::CellPut, "a//b", Some(&small), reasons(space.put(&a, "a//b", &small))),
        (fak_abi::Act::CellCas, "full", Some(&large), reasons(space.cas(&a, "full", FLEET, 1, &large))),
        (fak_abi::Act::CellCas, "full", Some(&poisoned), reasons(space.cas(&a, "full", FLEET, 1, &poisoned))),
        (fak_abi::Act::CellGet, "full", None, refused(&space.get(&a, "full", FLEET))),
        (fak_abi::Act::CellList, "", None, refused(&space.list(&a, "", FLEET))),
        (fak_abi::Act::CellWatch, "full/", None, refused(&space.watch(&a, "full/", FLEET))),
    ];
    let mut seen = std::collections::HashSet::new();
    for (act, key, body, expected) in all {
        let explained = space.explain(&a, act, key, FLEET, body);
        assert_eq!(explained.verdict.reason(), expected, "{act} {key}: {explained}");
        assert_eq!(explained.site.is_some(), expected.is_some());
        seen.insert(expected);
    }
    assert_eq!(seen.len(), 5, "every answer is met: {seen:?}");
    let explained = space.explain(&stranger, fak_abi::Act::CellGet, "full", FLEET, None);
    assert_eq!(explained.verdict.reason(), refused(&space.get(&stranger, "full", FLEET)));
    assert_eq!(explained.verdict.reason(), Some(Reason::TrustViolation));
}

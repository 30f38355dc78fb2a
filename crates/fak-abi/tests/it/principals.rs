//! Principals, sets of capabilities and of event kinds, and what a handle passes on (§2.3, §2.8, §2.9, §3.3, §4.10).

use std::task::{Context, Poll, Waker};

use fak_abi::{
    Act, CapSet, Capability, EventKind, EventKinds, Id, PrincipalKind, PrincipalSpec, Status, TicketError,
    ToolCall,
};

use crate::support::{Stub, crew, id};

#[test]
fn a_principal_is_what_its_host_said() {
    let stub = Stub::new();
    let caps = CapSet::of(&[Capability::LaneLease]);
    let spec = PrincipalSpec::human(id("h"))
        .fleet(id("f"))
        .tenant(id("t"))
        .trace(id("s"))
        .caps([Capability::A2aRecv]);
    let full = stub.seal.principal(spec, 4, caps);
    assert_eq!((full.id(), full.kind(), full.incarnation()), (&id("h"), PrincipalKind::Human, 4));
    assert_eq!((full.fleet(), full.tenant(), full.trace()), (Some(&id("f")), Some(&id("t")), &id("s")));
    assert_eq!(full.caps(), caps, "granted, not advertised");
    assert!(full.tag() == stub.seal.tag());
    assert_eq!((full.to_string(), format!("{full:?}")), ("h".to_owned(), r##"human "h"#4"##.to_owned()));

    let bare = stub.seal.principal(PrincipalSpec::agent(id("a")), 5, CapSet::NONE);
    assert_eq!((bare.kind(), bare.fleet(), bare.tenant()), (PrincipalKind::Agent, None, None));
    assert_eq!((bare.trace(), bare.caps(), bare.last_act()), (&id("trace-a"), CapSet::NONE, None));
    assert_eq!(format!("{:?}", bare.tag()), "KernelTag", "says nothing of which");
    // A name that leaves no room for the prefix is its own trace.
    let long = "n".repeat(fak_abi::MAX_ID_BYTES - 5);
    let long = stub.seal.principal(PrincipalSpec::agent(id(&long)), 6, CapSet::NONE);
    assert_eq!(long.trace(), long.id());
    // §2.3: turned once.
    assert!(bare.is_attached() && stub.seal.detach(&bare));
    assert!(!bare.is_attached() && !stub.seal.detach(&bare));
}

/// §3.5, §4.10: a shared fleet or tenant of one kernel; two without any share none.
#[test]
fn who_shares_a_domain() {
    let (stub, other) = (Stub::new(), Stub::new());
    let spec = |fleet: Option<&str>, tenant: Option<&str>| {
        let bare = PrincipalSpec::agent(id("x"));
        PrincipalSpec { fleet: fleet.map(id), tenant: tenant.map(id), ..bare }
    };
    let names = [None, Some("a"), Some("b")];
    for (ff, ft, tf, tt) in (0..81_usize).map(|n| (n % 3, n / 3 % 3, n / 9 % 3, n / 27)) {
        let pick = |n: usize| names.get(n).copied().flatten();
        let one = stub.seal.principal(spec(pick(ff), pick(ft)), 1, CapSet::NONE);
        let two = stub.seal.principal(spec(pick(tf), pick(tt)), 2, CapSet::NONE);
        let far = other.seal.principal(spec(pick(tf), pick(tt)), 1, CapSet::NONE);
        assert_eq!(one.shares_domain(&two), (ff > 0 && ff == tf) || (ft > 0 && ft == tt));
        assert!(!one.shares_domain(&far));
    }
}

#[test]
fn sets_of_capabilities_are_sets() {
    use Capability::{A2aRecv, A2aSend, ForensicsRead};
    let (send, both) = (CapSet::of(&[A2aSend]), CapSet::from([A2aSend, A2aRecv]));
    for cap in Capability::ALL {
        assert!(CapSet::ALL.holds(*cap) && !CapSet::NONE.holds(*cap));
        assert_eq!(both.holds(*cap), [A2aSend, A2aRecv].contains(cap));
        assert_eq!(CapSet::NONE.with(*cap).iter().collect::<Vec<_>>(), [*cap]);
        assert_eq!(CapSet::ALL.with(*cap), CapSet::ALL);
    }
    assert_eq!(send.with(A2aRecv), both);
    let readers = CapSet::of(&[A2aRecv, ForensicsRead]);
    assert_eq!((both.and(readers), both.or(readers)), (CapSet::of(&[A2aRecv]), both.with(ForensicsRead)));
    assert_eq!((both.or(both), both.and(both)), (both, both));
    assert_eq!(format!("{both:?}"), r#"{"a2a.send", "a2a.recv"}"#);
    assert_eq!((Act::Publish.tool(), Act::Publish.capability()), ("a2a.publish", A2aSend));
}

#[test]
fn sets_of_event_kinds_are_sets() {
    use EventKind::{AuditGap, Decide, Hold};
    let some = EventKinds::of(&[Decide, Hold, Hold]);
    for kind in EventKind::ALL {
        assert!(EventKinds::ALL.holds(*kind) && !EventKinds::NONE.holds(*kind));
        assert_eq!(some.holds(*kind), [Decide, Hold].contains(kind));
        assert_eq!(
            some.or(EventKinds::of(&[AuditGap, Hold])).holds(*kind),
            [Decide, Hold, AuditGap].contains(kind)
        );
    }
    assert_eq!(EventKinds::of(EventKind::ALL), EventKinds::ALL);
}

#[test]
fn a_handle_passes_on_what_it_is_asked() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let call = ToolCall::new(&agent, Act::Bind);
    assert_eq!(format!("{agent:?}"), r##"AgentHandle(agent "a"#1)"##);
    assert_eq!(agent.decide(&call).by(), "stub");
    assert_eq!(agent.who().iter().map(|peer| &peer.id).collect::<Vec<&Id>>(), [&id("a")]);
    assert_eq!(stub.asked(), [r##"decide agent "a"#1 a2a.bind -"##]);

    let ticket = agent.submit(&call);
    assert_eq!(agent.withdraw(&ticket), Ok(()));
    assert_eq!(agent.withdraw(&ticket), Err(TicketError::Spent));
    assert_eq!(stub.asked(), [r##"submit agent "a"#1 a2a.bind -"##, "withdraw a 7", "withdraw a 7"]);
}

/// §3.3: a system call is a submission that is reaped; dropped before, it is taken back.
#[test]
fn a_system_call_reaps_or_withdraws() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let call = ToolCall::new(&agent, Act::Bind);
    let mut cx = Context::from_waker(Waker::noop());

    drop(agent.syscall(&call));
    assert_eq!(stub.asked(), [r##"submit agent "a"#1 a2a.bind -"##, "withdraw a 7"]);

    let mut run = std::pin::pin!(agent.syscall(&call));
    assert!(matches!(run.as_mut().poll(&mut cx), Poll::Ready(result) if result.status == Status::Ok));
    assert_eq!(stub.asked(), [r##"submit agent "a"#1 a2a.bind -"##, "reap a 7"]);

    let ticket = agent.submit(&call);
    let mut reap = std::pin::pin!(agent.reap(&ticket));
    assert!(matches!(reap.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    assert!(matches!(reap.as_mut().poll(&mut cx), Poll::Ready(Err(TicketError::Spent))));
}

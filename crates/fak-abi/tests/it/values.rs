//! Values (§2.1, §2.2, §2.4, §6.4): who may read one, what is made of several, and what a seal does for its own alone.

use fak_abi::{
    AgentHandle, CapSet, Claim, KernelSeal, PrincipalSpec, READ_SITES, Reason, Ref, ResolveError, ShareScope,
    Taint,
};

use crate::support::{Stub, crew, id};

fn refused(reader: &AgentHandle, body: &Ref) -> (Reason, &'static str) {
    let verdict = reader.read(body).verdict();
    let refusal = verdict.refusal().unwrap();
    assert_eq!(verdict.by(), "read");
    (refusal.reason, refusal.site.check())
}

/// §2.3, §2.4: the owner reads; others as far as taint and scope let it flow; nobody who was detached, and nobody of another
/// kernel.
#[test]
fn who_reads_what() {
    let (stub, other) = (Stub::new(), Stub::new());
    let owner = stub.agent(crew("owner", CapSet::NONE), 1);
    let mate = stub.agent(crew("mate", CapSet::NONE), 2);
    let outsider = stub.agent(PrincipalSpec::agent(id("outsider")), 3);
    let elsewhere = other.agent(crew("owner", CapSet::NONE), 1);

    let private = owner.mint("the value");
    assert_eq!((private.taint(), private.scope(), private.len()), (Taint::Tainted, ShareScope::Agent, 9));
    assert!(private.is_owned_by(owner.principal()) && !private.is_owned_by(mate.principal()));
    assert!(!private.is_derived());
    assert_eq!(owner.read(&private).allowed().unwrap(), "the value");
    assert_eq!(refused(&mate, &private), (Reason::TrustViolation, "read/flow"));

    let shared = owner.widen(&private, ShareScope::Fleet).allowed().unwrap();
    assert_eq!(mate.read(&shared).allowed().unwrap(), "the value");
    assert_eq!(refused(&outsider, &shared), (Reason::TrustViolation, "read/flow"));
    assert!(shared.may_flow_to(mate.principal()) && !shared.may_flow_to(outsider.principal()));
    assert_eq!(refused(&elsewhere, &shared), (Reason::TrustViolation, "read/flow"));
    assert!(!shared.would_flow_to(elsewhere.principal()));

    // Quarantine stops everybody, and forensics would still know whom it could be shown to (§4.4).
    let poison = owner.raise(&shared, Taint::Quarantined);
    assert_eq!(refused(&owner, &poison), (Reason::TrustViolation, "read/flow"));
    assert!(poison.would_flow_to(mate.principal()) && !poison.may_flow_to(mate.principal()));
    assert!(!poison.would_flow_to(outsider.principal()));

    assert!(stub.seal.detach(mate.principal()));
    assert_eq!(refused(&mate, &shared), (Reason::DefaultDeny, "read/detached"));
    assert_eq!(
        READ_SITES.iter().map(|info| info.site().check()).collect::<Vec<_>>(),
        ["read/detached", "read/flow"]
    );
}

/// §2.4: raising asks the kernel, so that observers hear of it, but only where there is something to raise.
#[test]
fn taint_rises_and_does_not_fall() {
    let stub = Stub::new();
    let owner = stub.agent(crew("owner", CapSet::NONE), 1);
    let body = owner.mint("x");
    let trusted = stub.seal.relabel(&body, Taint::Trusted, ShareScope::Agent).unwrap();
    for (from, to, after, asked) in [
        (&body, Taint::Trusted, Taint::Tainted, 0),
        (&body, Taint::Tainted, Taint::Tainted, 0),
        (&body, Taint::Quarantined, Taint::Quarantined, 1),
        (&trusted, Taint::Tainted, Taint::Tainted, 1),
    ] {
        let raised = owner.raise(from, to);
        assert_eq!((raised.taint(), raised.scope(), raised.digest()), (after, from.scope(), from.digest()));
        assert_eq!(stub.asked().len(), asked);
        assert_eq!(from.tainted_at_least(to).taint(), after);
    }
    let claim = Claim { statement: id("checked"), subject: None, evidence: None };
    assert!(!owner.trust(&body, claim).is_allow());
    assert_eq!(stub.asked(), ["trust since checked"]);
}

/// §6.4: as tainted as the worst part, private, and never to be widened if a part was somebody else's.
#[test]
fn what_is_made_of_parts_carries_their_worst() {
    let stub = Stub::new();
    let (a, b) = (stub.agent(crew("a", CapSet::NONE), 1), stub.agent(crew("b", CapSet::NONE), 2));
    let label = |body: &Ref, taint| stub.seal.relabel(body, taint, ShareScope::Fleet).unwrap();
    let (mine, yours) = (a.mint("mine"), b.mint("yours"));
    let clean = label(&mine, Taint::Trusted);
    let foreign = a.derive("made", [&yours]);
    for (parts, by_agent, by_kernel, derived) in [
        (vec![], Taint::Tainted, Taint::Tainted, false),
        (vec![clean.clone()], Taint::Tainted, Taint::Trusted, false),
        (vec![clean.clone(), mine.clone()], Taint::Tainted, Taint::Tainted, false),
        (
            vec![label(&mine, Taint::Quarantined), clean.clone()],
            Taint::Quarantined,
            Taint::Quarantined,
            false,
        ),
        (vec![label(&yours, Taint::Trusted)], Taint::Tainted, Taint::Trusted, true),
        (vec![mine.clone(), yours.clone()], Taint::Tainted, Taint::Tainted, true),
        (vec![yours, mine], Taint::Tainted, Taint::Tainted, true),
        (vec![foreign, clean], Taint::Tainted, Taint::Tainted, true),
    ] {
        let made = a.derive("sum", &parts);
        assert_eq!((made.taint(), made.is_derived()), (by_agent, derived));
        assert_eq!((made.scope(), made.len()), (ShareScope::Agent, 3));
        let folded = stub.seal.derive(a.principal(), "sum".into(), &parts).unwrap();
        assert_eq!((folded.taint(), folded.is_derived()), (by_kernel, derived));
        assert_eq!((folded.scope(), folded.is_owned_by(a.principal())), (ShareScope::Agent, true));
    }
}

/// §2.1, §2.3, §3.1: a seal opens, labels and makes nothing for what carries another's tag.
#[test]
fn a_seal_works_for_its_own() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let (body, foreign) = (agent.mint("value"), KernelSeal::new());
    let principal = agent.principal();

    assert_eq!(stub.seal.bytes(&body).unwrap(), "value");
    assert_eq!(foreign.bytes(&body), Err(ResolveError));
    let other = stub.seal.rewrite(&body, "other value".into()).unwrap();
    assert_eq!((other.len(), other.taint(), other.scope()), (11, body.taint(), body.scope()));
    assert_ne!(other.digest(), body.digest());
    assert!(other.is_owned_by(principal));
    assert!(foreign.rewrite(&body, "other value".into()).is_err());
    let trusted = stub.seal.relabel(&body, Taint::Trusted, ShareScope::Tenant).unwrap();
    assert_eq!(
        (trusted.taint(), trusted.scope(), trusted.digest()),
        (Taint::Trusted, ShareScope::Tenant, body.digest())
    );
    assert!(foreign.relabel(&body, Taint::Trusted, ShareScope::Tenant).is_err());
    assert!(stub.seal.issue(principal, "x".into(), Taint::Tainted, ShareScope::Fleet).is_ok());
    assert!(foreign.issue(principal, "x".into(), Taint::Tainted, ShareScope::Fleet).is_err());
    assert!(foreign.derive(principal, "x".into(), &[]).is_err());

    let gate = Stub::new();
    assert!(foreign.handle(principal, gate).is_none());
    assert!(!foreign.detach(principal) && principal.is_attached());
    foreign.acted(principal, fak_abi::Act::Bind);
    assert_eq!(principal.last_act(), None);
    stub.seal.acted(principal, fak_abi::Act::Bind);
    stub.seal.acted(principal, fak_abi::Act::Bind);
    assert_eq!(principal.last_act(), Some(fak_abi::Act::Bind));
    assert!(stub.seal.layer_key().tag() == stub.seal.tag());
    assert!(agent.tag() == stub.seal.tag() && agent.tag() != foreign.tag());
}

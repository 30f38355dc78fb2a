//! Attaching, detaching and the handle as the authority (§2.3, §3.1).

use fak_abi::{
    Act, AttachError, CapSet, Capability, Gate, KernelSeal, PrincipalSpec, Reason, ShareScope, Timestamp,
    ToolCall,
};
use fak_adjudicate::{AuditLog, AuditOptions, Grants, Kernel};

use crate::support::{attach, id, spec};

/// §2.3: an id and a trace id belong to one attached principal at a time.
#[test]
fn ids_and_traces_are_unique_among_the_attached() {
    let kernel = Kernel::builder().build().unwrap();
    let _alpha = attach(&kernel, "alpha");
    assert_eq!(kernel.attach(spec("alpha")).unwrap_err(), AttachError::Id(id("alpha")));
    let thief = spec("bravo").trace(id("trace-alpha"));
    assert_eq!(kernel.attach(thief.clone()).unwrap_err(), AttachError::Trace(id("trace-alpha")));
    kernel.detach(&id("alpha")).unwrap();
    assert!(kernel.attach(thief).is_ok());
    assert_eq!(kernel.detach(&id("alpha")).unwrap_err(), AttachError::Absent(id("alpha")));
}

/// §2.3: the kill switch reaches every clone, and a new incarnation is not the old owner.
#[test]
fn a_new_incarnation_owns_nothing_of_the_old() {
    let kernel = Kernel::builder().build().unwrap();
    let old = attach(&kernel, "alpha");
    let clone = old.clone();
    let secret = old.mint(&b"secret"[..]);
    assert!(old.read(&secret).is_allow());
    kernel.detach(&id("alpha")).unwrap();
    let refused = clone.widen(&secret, ShareScope::Fleet).verdict();
    assert_eq!((refused.reason(), refused.by()), (Some(Reason::DefaultDeny), "detached"));
    assert_eq!(clone.read(&secret).verdict().reason(), Some(Reason::DefaultDeny));
    assert!(clone.who().is_empty());
    let new = attach(&kernel, "alpha");
    assert_ne!(new.principal().incarnation(), old.principal().incarnation());
    assert_eq!(new.read(&secret).verdict().reason(), Some(Reason::TrustViolation));
}

/// §2.3: granted = advertised ∩ registered ∩ grant policy.
#[test]
fn what_is_advertised_is_not_what_is_granted() {
    struct NoTrust;
    impl Grants for NoTrust {
        fn may_have(&self, spec: &PrincipalSpec, cap: Capability) -> bool {
            spec.id.as_str() == "root" || cap != Capability::RefTrust
        }
    }
    let kernel = Kernel::builder().grants(std::sync::Arc::new(NoTrust)).build().unwrap();
    let alpha = attach(&kernel, "alpha");
    // No layer registered a2a.send, so advertising it gives nothing.
    let expected = CapSet::of(&[Capability::RefWiden, Capability::ForensicsRead]);
    assert_eq!(alpha.principal().caps(), expected);
    assert!(attach(&kernel, "root").principal().caps().holds(Capability::RefTrust));
}

/// §3.1: a handle of another kernel is refused, and so is one minted by anybody else, even around
/// this very kernel's gate.
#[test]
fn only_the_kernels_own_seal_makes_handles() {
    let kernel = Kernel::builder().build().unwrap();
    let other = Kernel::builder().build().unwrap();
    let stranger = attach(&other, "alpha");
    let body = stranger.mint(&b"x"[..]);
    let call = ToolCall::new(&stranger, Act::Widen).args(&body);
    assert_eq!(kernel.decide(&call).reason(), Some(Reason::TrustViolation));

    let forger = KernelSeal::new();
    let principal = forger.principal(spec("root"), 1, CapSet::ALL);
    let gate: std::sync::Arc<dyn Gate> = std::sync::Arc::clone(&kernel) as _;
    let forged = forger.handle(&principal, gate).unwrap();
    let mine = forged.mint(&b"x"[..]);
    let verdict = forged.widen(&mine, ShareScope::Fleet).verdict();
    assert_eq!(verdict.reason(), Some(Reason::TrustViolation));
    // And its seal opens nothing of this kernel's.
    let alpha = attach(&kernel, "alpha");
    let secret = alpha.widen(&alpha.mint(&b"s"[..]), ShareScope::Fleet).allowed().unwrap();
    assert!(forger.bytes(&secret).is_err());
    assert_eq!(forged.read(&secret).verdict().reason(), Some(Reason::TrustViolation));
    assert!(KernelSeal::new().handle(alpha.principal(), std::sync::Arc::clone(&kernel) as _).is_none());
}

/// §4.10, §3.5: `who` shows oneself and those who share a fleet or tenant.
#[test]
fn who_is_bounded_by_domains() {
    let kernel = Kernel::builder().build().unwrap();
    let alpha = attach(&kernel, "alpha");
    let _bravo = attach(&kernel, "bravo");
    let _lone = kernel.attach(PrincipalSpec::agent(id("lone"))).unwrap();
    let _far = kernel.attach(PrincipalSpec::agent(id("far")).fleet(id("f2"))).unwrap();
    let seen: Vec<_> = alpha.who().into_iter().map(|peer| peer.id.to_string()).collect();
    assert_eq!(seen, ["alpha", "bravo"]);
    let _ = alpha.widen(&alpha.mint(&b"x"[..]), ShareScope::Fleet);
    assert_eq!(alpha.who()[0].last_act, Some(Act::Widen));
}

/// A kernel and its handles are freed together: nothing in them points in a circle.
#[test]
fn nothing_keeps_a_dropped_kernel_alive() {
    let kernel = Kernel::builder().build().unwrap();
    let weak = std::sync::Arc::downgrade(&kernel);
    let alpha = attach(&kernel, "alpha");
    let tool = kernel.tool(&id("x"));
    let _ticket = alpha.submit(&ToolCall::new(&alpha, &tool));
    drop(kernel);
    assert!(weak.upgrade().is_some(), "the handle needs its kernel");
    drop(alpha);
    assert!(weak.upgrade().is_none());
}

/// §3.6, §1.3: permits are for layers. Whoever could settle one of their own could write an audit
/// entry for an act that never happened.
#[test]
fn a_permit_is_for_layers_of_the_kernel() {
    let kernel = Kernel::builder().build().unwrap();
    let alpha = attach(&kernel, "alpha");
    let body = alpha.mint(&b"x"[..]);
    let call = ToolCall::new(&alpha, Act::Widen).args(&body);
    let forged = KernelSeal::new().layer_key();
    match alpha.gate().admit(&call, &forged) {
        fak_abi::Admission::Refuse(verdict) => assert_eq!(verdict.reason(), Some(Reason::TrustViolation)),
        fak_abi::Admission::Permit(permit) => panic!("permitted by {}", permit.by()),
    }
    let (audit, mut log, _) =
        AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), AuditOptions::default()).unwrap();
    let audited = Kernel::builder().audit(std::sync::Arc::new(audit)).build().unwrap();
    let alpha = attach(&audited, "alpha");
    let body = alpha.mint(&b"x"[..]);
    let call = ToolCall::new(&alpha, Act::Widen).args(&body);
    assert!(matches!(alpha.gate().book(&call, &forged), fak_abi::Booking::Closely));
    assert_eq!(log.drain().unwrap().lines, 0);
}

/// §2.3, §4.10: neither a dead handle nor one of another kernel is told who is attached, fleet or not.
#[test]
fn only_the_attached_of_this_kernel_are_told_who_is() {
    let kernel = Kernel::builder().build().unwrap();
    let elsewhere = Kernel::builder().build().unwrap();
    let of_fleet = |kernel: &std::sync::Arc<Kernel>, name| kernel.attach(spec(name).fleet(id("f"))).unwrap();
    let (alpha, bravo) = (of_fleet(&kernel, "alpha"), of_fleet(&kernel, "bravo"));
    let foreign = of_fleet(&elsewhere, "charlie");
    assert_eq!(alpha.who().len(), 2);
    assert!(kernel.who(&foreign).is_empty());
    kernel.detach(&id("alpha")).unwrap();
    assert!(alpha.who().is_empty());
    assert_eq!(bravo.who().len(), 1);
}

//! Acts on Refs: widening, trusting, raising, deriving (§2.4, §6.4).

use fak_abi::{CapSet, PrincipalSpec, Reason, Ref, ShareScope, Taint};
use fak_adjudicate::Kernel;

use crate::support::{ByWord, attach, claim, id, quiet};

fn reason<T>(outcome: &fak_abi::Outcome<T>) -> Option<Reason> {
    outcome.verdict().reason()
}

/// §2.4: only agent → fleet or tenant, only by the owner, only where the owner is.
#[test]
fn widening_has_one_way() {
    let kernel = Kernel::builder().build().unwrap();
    let alpha = attach(&kernel, "alpha");
    let bravo = attach(&kernel, "bravo");
    let lone = kernel.attach(PrincipalSpec::agent(id("lone")).caps(CapSet::ALL)).unwrap();
    let body = alpha.mint(&b"x"[..]);
    let violation = Some(Reason::TrustViolation);

    assert_eq!(reason(&bravo.widen(&body, ShareScope::Fleet)), violation, "not the owner");
    assert_eq!(reason(&alpha.widen(&body, ShareScope::Public)), violation, "public is for records");
    assert_eq!(reason(&alpha.widen(&body, ShareScope::Agent)), violation, "not wider");
    assert_eq!(reason(&lone.widen(&lone.mint(&b"x"[..]), ShareScope::Fleet)), violation, "no fleet");
    assert_eq!(reason(&lone.widen(&lone.mint(&b"x"[..]), ShareScope::Tenant)), violation, "no tenant");
    let bad = alpha.raise(&body, Taint::Quarantined);
    assert_eq!(reason(&alpha.widen(&bad, ShareScope::Fleet)), violation, "quarantined");

    let fleet = alpha.widen(&body, ShareScope::Fleet).allowed().unwrap();
    assert_eq!(
        (fleet.scope(), fleet.taint(), fleet.digest()),
        (ShareScope::Fleet, Taint::Tainted, body.digest())
    );
    assert_eq!(body.scope(), ShareScope::Agent, "the old Ref is as it was");
    assert_eq!(reason(&alpha.widen(&fleet, ShareScope::Tenant)), violation, "fleet is not within tenant");
    assert!(bravo.read(&fleet).is_allow());
    assert_eq!(reason(&bravo.read(&body)), violation);
}

/// §2.4, §3.4: trusting needs the owner or a human, and a confirmed witness.
#[test]
fn trusting_needs_a_confirmed_witness() {
    let kernel = Kernel::builder().witness(ByWord).build().unwrap();
    let alpha = attach(&kernel, "alpha");
    let bravo = attach(&kernel, "bravo");
    let human = kernel.attach(PrincipalSpec::human(id("ada")).fleet(id("f1")).caps(CapSet::ALL)).unwrap();
    let body = alpha.widen(&alpha.mint(&b"x"[..]), ShareScope::Fleet).allowed().unwrap();

    assert_eq!(reason(&alpha.trust(&body, claim("nobody-knows"))), Some(Reason::Unwitnessed));
    assert_eq!(reason(&alpha.trust(&body, claim("refuted"))), Some(Reason::TrustViolation));
    assert_eq!(reason(&bravo.trust(&body, claim("confirmed"))), Some(Reason::TrustViolation));
    let bad = alpha.raise(&body, Taint::Quarantined);
    assert_eq!(reason(&alpha.trust(&bad, claim("confirmed"))), Some(Reason::TrustViolation));
    quiet();
    assert_eq!(reason(&alpha.trust(&body, claim("panic"))), Some(Reason::DefaultDeny));

    let trusted = human.trust(&body, claim("confirmed")).allowed().unwrap();
    assert_eq!((trusted.taint(), trusted.scope()), (Taint::Trusted, ShareScope::Fleet));
    assert!(alpha.trust(&body, claim("confirmed")).is_allow());
}

/// §6.4: what is made of others' parts is private, as tainted as the worst, and stays so.
#[test]
fn derived_values_cannot_be_laundered() {
    let kernel = Kernel::builder().build().unwrap();
    let alpha = attach(&kernel, "alpha");
    let bravo = attach(&kernel, "bravo");
    let mine = alpha.mint(&b"a"[..]);
    let theirs = bravo.widen(&bravo.mint(&b"b"[..]), ShareScope::Fleet).allowed().unwrap();

    let own = alpha.derive(&b"aa"[..], [&mine, &mine]);
    assert!(alpha.widen(&own, ShareScope::Fleet).is_allow());
    let mixed = alpha.derive(&b"ab"[..], [&mine, &theirs]);
    assert_eq!((mixed.scope(), mixed.taint()), (ShareScope::Agent, Taint::Tainted));
    assert_eq!(reason(&alpha.widen(&mixed, ShareScope::Fleet)), Some(Reason::TrustViolation));
    // Nor by deriving once more, nor by raising.
    let again: Ref = alpha.derive(&b"ab"[..], [&mixed]);
    assert_eq!(reason(&alpha.widen(&again, ShareScope::Fleet)), Some(Reason::TrustViolation));
    let bad = alpha.raise(&theirs, Taint::Quarantined);
    assert_eq!(alpha.derive(&b"c"[..], [&mine, &bad]).taint(), Taint::Quarantined);
    assert_eq!(alpha.derive(&b"c"[..], []).taint(), Taint::Tainted, "nothing vouches for it");
    // A trusted part vouches for its own bytes, not for whatever its holder derives from it.
    let trusted = kernel.label(&mine, Taint::Trusted).unwrap();
    assert_eq!(alpha.derive(&b"poison"[..], [&trusted]).taint(), Taint::Tainted);
}

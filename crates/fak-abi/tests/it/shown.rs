//! What people are shown (§2.6, §3.5, §4.1): one line a refusal, no byte of any body.

use fak_abi::{
    CapSet, Digest, DigestError, Disposition, Explanation, Id, Opinion, Outcome, Reason, Refusal,
    RungOpinion, Site, SiteInfo, Verdict, VerdictKind,
};

use crate::support::{Stub, crew, id, refusal};

/// §2.6: each kind of opinion becomes the verdict of its kind, under the rung's name.
#[test]
fn verdicts_say_what_they_are() {
    let stub = Stub::new();
    let body = stub.agent(crew("a", CapSet::NONE), 1).mint("secret");
    let claim = || Box::new(fak_abi::Claim { statement: id("tests passed"), subject: None, evidence: None });
    for (opinion, kind, happens) in [
        (Opinion::Allow, VerdictKind::Allow, true),
        (Opinion::Defer, VerdictKind::Defer, false),
        (Opinion::Indeterminate, VerdictKind::Indeterminate, false),
        (Opinion::Transform(body.clone()), VerdictKind::Transform, true),
        (Opinion::Quarantine, VerdictKind::Quarantine, false),
        (Opinion::RequireWitness(claim()), VerdictKind::RequireWitness, false),
        (Opinion::deny(Reason::PolicyBlock, Site::new("stub/no")), VerdictKind::Deny, false),
    ] {
        assert_eq!(opinion.kind(), kind);
        let verdict = Verdict::from((opinion, "r"));
        assert_eq!((verdict.kind(), verdict.by(), verdict.is_allow()), (kind, "r", happens));
        let denied = kind == VerdictKind::Deny;
        assert_eq!(verdict.refusal().copied(), denied.then(refusal));
        assert_eq!(verdict.reason(), denied.then_some(Reason::PolicyBlock));
        assert_eq!(verdict.disposition(), denied.then_some(Disposition::Terminal));
        if !denied {
            assert_eq!(verdict.to_string(), format!("{kind} by r"));
        }
        assert_eq!(VerdictKind::rank_of(kind.code()), kind.rank());
    }
    assert_eq!(format!("{body:?}"), r#"Ref { len: 6, taint: Tainted, scope: Agent, owner: "a", .. }"#);
}

#[test]
fn outcomes_carry_a_value_or_a_verdict() {
    let done = Outcome::Allow { value: 3, by: "r" };
    assert!(done.is_allow());
    assert_eq!((done.verdict().kind(), done.verdict().by()), (VerdictKind::Allow, "r"));
    let doubled = done.map(|n| n * 2);
    assert_eq!((doubled.verdict().by(), doubled.allowed()), ("r", Some(6)));
    let refused: Outcome<i32> = Outcome::deny(refusal(), "r");
    assert!(!refused.is_allow());
    let refused = refused.map(|n| n * 2);
    assert_eq!((refused.verdict().reason(), refused.allowed()), (Some(Reason::PolicyBlock), None));
}

#[test]
fn a_site_counts_its_instances_for_people_from_one() {
    let one = Site::new("policy/rule");
    assert_eq!((one.check(), one.index(), one.to_string()), ("policy/rule", None, "policy/rule".to_owned()));
    for (index, shown) in [(0, "policy/rule#1"), (1, "policy/rule#2"), (41, "policy/rule#42")] {
        assert_eq!((one.item(index).index(), one.item(index).to_string()), (Some(index), shown.to_owned()));
    }
    let later = Refusal::new(Reason::LeaseHeld, one).retry_after(250);
    assert_eq!((later.retry_after_ms, later.reason, later.site), (Some(250), Reason::LeaseHeld, one));
}

/// §3.5: every rung in its order, the check and the way on; a layer that has the last word stands at the end.
#[test]
fn an_explanation_in_full() {
    const NO: SiteInfo =
        SiteInfo { check: "stub/no", clause: "§1", refuses: "everything", next: "nothing to be done" };
    let rung = |by, verdict| RungOpinion { by, verdict, reason: None, site: None };
    let folded = Explanation {
        rungs: vec![rung("layer", VerdictKind::Defer), rung("policy", VerdictKind::Allow)],
        verdict: Verdict::allow("policy"),
        site: None,
        next: "go ahead".to_owned(),
    };
    assert_eq!(
        folded.to_string(),
        "allow by policy\n  layer                defer\n  policy               allow\n  next: go ahead"
    );
    let decided = folded.clone().decided(Verdict::deny(refusal(), "layer"), Some(NO), NO.next.to_owned());
    assert_eq!(decided.verdict.by(), "layer");
    assert_eq!(
        decided.to_string(),
        "deny POLICY_BLOCK (terminal) by layer at stub/no: a rule of the host forbids it: change the act, or ask the host to change the rule\n  \
         layer                defer\n  policy               allow\n  \
         layer                deny POLICY_BLOCK at stub/no, once every rung had its say\n  \
         check: everything (§1)\n  next: nothing to be done"
    );
    // A layer that is content adds no line.
    assert_eq!(folded.decided(Verdict::allow("layer"), None, String::new()).rungs.len(), 2);
    for reason in Reason::ALL {
        assert!(reason.advice().len() > 20, "{reason}");
    }
}

#[test]
fn ids_and_digests_as_text() {
    let name = id("a\"b");
    assert_eq!(
        (name.as_str(), name.to_string(), format!("{name:?}")),
        ("a\"b", "a\"b".to_owned(), r#""a\"b""#.to_owned())
    );
    assert_eq!(format!("[{:>5}]", id("ab")), "[   ab]");
    // Equal by text, whoever made it; a clone is the same.
    assert!(id("same") == id("same") && id("same") != id("other") && name == name.clone());
    assert_eq!(Id::try_from("x".to_owned()), Id::try_from("x"));
    assert!(Id::try_from("x\ny".to_owned()).is_err() && Id::try_from("x\ny").is_err());
    assert_eq!(
        (<Id as AsRef<str>>::as_ref(&name), std::borrow::Borrow::<str>::borrow(&name)),
        ("a\"b", "a\"b")
    );
    assert_eq!(serde_json::to_string(&name).unwrap(), r#""a\"b""#);
    assert_eq!(serde_json::from_str::<Id>(r#""a\"b""#).unwrap(), name);
    assert!(serde_json::from_str::<Id>(r#""a\nb""#).is_err());

    let digest = Digest::of(b"abc");
    assert_eq!(format!("{digest:?}"), digest.to_string());
    assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    assert_eq!(digest.as_bytes().first(), Some(&0xba));
    assert_eq!(serde_json::from_str::<Digest>(&serde_json::to_string(&digest).unwrap()).unwrap(), digest);
    assert!(serde_json::from_str::<Digest>("\"sha256:\"").is_err());
    // Every digit stands for itself.
    let every = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    assert_eq!(every.parse::<Digest>().unwrap().to_string(), every);
    assert_eq!(every.replace('f', "g").parse::<Digest>(), Err(DigestError));
}

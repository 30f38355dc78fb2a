//! Permits and tickets (§3.2, §3.3, §3.6, §3.8): exactly one entry for what happens, none for what was given up, and what was
//! counted is taken back when the act does not happen.

use fak_abi::{
    Act, AuditSlot, CapSet, Charge, Cleared, Due, Needs, Permit, Sequence, Ticket, ToolCall, Verdict,
    VerdictKind,
};

use crate::support::{Books, Stub, crew, refusal};

const ALL: Needs = Needs { counts: true, observed: true };

fn cleared(permit: Permit<'_>) -> Cleared<'_> {
    match permit.charge() {
        Charge::Cleared(cleared) => cleared,
        Charge::Refuse(verdict) => panic!("refused: {verdict}"),
    }
}

#[test]
fn a_permit_is_settled_once_however_it_ends() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let (given, left) = (agent.mint("four"), agent.mint("seventeen"));
    let bare = ToolCall::new(&agent, Act::Send);
    let call = bare.args(&given);
    let books = Books::default();
    let permit = || Permit::new(&books, &call, "first", ALL, AuditSlot::Reserved);

    assert_eq!((permit().by(), permit().counts(), permit().transformed().is_none()), ("first", true, true));
    assert_eq!(books.written(), ["release Reserved"; 3], "given up: the place in the audit is free again");

    assert_eq!(cleared(permit()).allow(5).kind(), VerdictKind::Allow);
    assert_eq!(books.written(), ["charge a2a.send 4", "settle a2a.send 4 allow by first as 5 in Reserved"]);

    // The number a submission has from the start stands unless the act brings its own.
    assert!(cleared(permit().numbered(9)).allow(0).is_allow());
    assert!(cleared(permit().numbered(9)).allow(5).is_allow());
    let entries: Vec<_> = books.written().into_iter().filter(|line| line.starts_with("settle")).collect();
    assert_eq!(
        entries,
        [
            "settle a2a.send 4 allow by first as 9 in Reserved",
            "settle a2a.send 4 allow by first as 5 in Reserved"
        ]
    );

    // §3.2: what happens, is charged and is written down is the transformed act.
    let changed = permit().transform(Some(left.clone()));
    assert_eq!(changed.transformed().map(fak_abi::Ref::digest), Some(left.digest()));
    let changed = cleared(changed);
    assert_eq!(changed.transformed().map(fak_abi::Ref::digest), Some(left.digest()));
    assert_eq!(changed.allow(6).by(), "first");
    assert_eq!(books.written(), ["charge a2a.send 9", "settle a2a.send 9 allow by first as 6 in Reserved"]);

    assert_eq!(permit().refuse(refusal(), "layer").by(), "layer");
    assert_eq!(books.written(), ["settle a2a.send 4 deny by layer as 0 in Reserved"]);
    assert_eq!(permit().hold("screen", 8).kind(), VerdictKind::Quarantine);
    assert_eq!(books.written(), ["settle a2a.send 4 quarantine by screen as 8 in Reserved"]);

    // §3.8: it could not happen after all.
    assert_eq!(cleared(permit()).refuse(refusal(), "layer").kind(), VerdictKind::Deny);
    assert_eq!(
        books.written(),
        ["charge a2a.send 4", "revert a2a.send 4", "settle a2a.send 4 deny by layer as 0 in Reserved"]
    );

    // §4.13: one entry, unless the kernel says more about repetitions.
    assert_eq!(cleared(permit()).repeat(3).kind(), VerdictKind::Allow);
    assert_eq!(books.written(), ["charge a2a.send 4", "settle a2a.send 4 allow by first as 3 in Reserved"]);
}

/// §3.6: what is only due its entry gets one, or is given up and frees its place.
#[test]
fn what_is_due_is_settled_once() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let call = ToolCall::new(&agent, Act::Send);
    let books = Books::default();
    let due = || Due::new(&books, &call, "first");
    drop(due());
    assert_eq!(books.written(), ["release Reserved"]);
    assert_eq!((due().allow(5).by(), due().refuse(refusal(), "layer").by()), ("first", "layer"));
    assert_eq!(
        books.written(),
        [
            "settle a2a.send 0 allow by first as 5 in Reserved",
            "settle a2a.send 0 deny by layer as 0 in Reserved"
        ]
    );
}

/// §3.8: a counting rung that runs out refuses, and the refusal is the entry.
#[test]
fn a_charge_that_is_refused_is_over() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let call = ToolCall::new(&agent, Act::Send);
    let books = Books::broke();
    let Charge::Refuse(verdict) = Permit::new(&books, &call, "first", ALL, AuditSlot::Reserved).charge()
    else {
        panic!("cleared");
    };
    assert_eq!(verdict.by(), "stub/broke");
    assert_eq!(
        books.written(),
        ["charge a2a.send 0", "settle a2a.send 0 deny by stub/broke as 0 in Reserved"]
    );
}

/// What nobody keeps books of costs no entry and frees no place.
#[test]
fn what_is_not_needed_is_not_done() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let call = ToolCall::new(&agent, Act::Send);
    let books = Books::broke();
    let permit = || Permit::new(&books, &call, "first", Needs::default(), AuditSlot::None);
    assert!(!permit().counts());
    assert!(cleared(permit()).allow(1).is_allow() && cleared(permit()).repeat(1).is_allow());
    assert!(!cleared(permit()).refuse(refusal(), "layer").is_allow());
    assert!(!permit().refuse(refusal(), "layer").is_allow());
    assert_eq!(books.written(), [""; 0]);
}

/// §3.3: spent once.
#[test]
fn a_ticket_is_spent_once() {
    let stub = Stub::new();
    let ticket: Ticket = stub.seal.ticket(12, Verdict::allow("first"));
    assert_eq!((ticket.seq(), ticket.verdict().by()), (12, "first"));
    assert!(ticket.tag() == stub.seal.tag());
    assert!(ticket.spend());
    assert!(!ticket.spend() && !ticket.spend());
}

/// §4.2: from one, and no number twice.
#[test]
fn numbers_are_drawn_in_order() {
    let numbers = Sequence::new();
    assert_eq!(numbers.last(), 0);
    assert_eq!([numbers.next(), numbers.next(), numbers.next()], [1, 2, 3]);
    assert_eq!(numbers.last(), 3);
}

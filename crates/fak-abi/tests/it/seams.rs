//! The seams (§2.9, §3.1): what is meant by what an implementation leaves out, and a layer's tie to its kernel.

use std::sync::{Arc, Weak};

use fak_abi::{
    Act, Adjudicator, CapSet, Claim, Claiming, Desk, Driver, DriverLink, Engine, EngineClaim, Gate, Host,
    InstallError, Location, Opinion, OwnedCall, Ref, ResultAdmitter, RungName, Sequence, Tool, ToolCall,
    ToolResult, ToolScope,
};

use crate::support::{Stub, crew, id};

/// Says as little as it may.
struct Terse;

impl Adjudicator for Terse {
    fn name(&self) -> RungName {
        "terse"
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Allow
    }
}

impl ResultAdmitter for Terse {
    fn name(&self) -> RungName {
        "terse"
    }
    fn screen(&self, _: &ToolCall<'_>, _: &Ref, _: &Desk<'_>) -> Opinion {
        Opinion::Allow
    }
}

impl Engine for Terse {
    fn name(&self) -> RungName {
        "terse"
    }
    fn serves(&self) -> Vec<String> {
        Vec::new()
    }
    fn poll_run(
        &self,
        _: &OwnedCall,
        _: &mut Option<EngineClaim>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<ToolResult> {
        std::task::Poll::Ready(ToolResult::ok(None))
    }
}

impl Driver for Terse {
    fn name(&self) -> RungName {
        "terse"
    }
    fn capabilities(&self) -> CapSet {
        CapSet::NONE
    }
    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        Vec::new()
    }
    fn install(&self, _: DriverLink) -> Result<(), InstallError> {
        Err(InstallError("terse"))
    }
}

#[test]
fn what_is_left_out_is_the_cautious_answer() {
    let stub = Stub::new();
    let agent = stub.agent(crew("a", CapSet::NONE), 1);
    let (call, body) = (ToolCall::new(&agent, Act::Send), agent.mint("x"));
    let desk = Desk { resolver: &*stub, clock: &**stub.clock() };
    let rung: &dyn Adjudicator = &Terse;
    assert_eq!(rung.tools(), ToolScope::Every);
    assert!(!rung.is_standing() && !rung.counts());
    assert!(matches!(rung.commit(&call, &desk), Opinion::Defer));
    assert!(rung.sites().is_empty() && rung.hint(&call).is_none());
    assert_eq!(<Terse as ResultAdmitter>::tools(&Terse), ToolScope::Every);
    assert!(matches!(Terse.claim(&call), Claiming::Nothing));
    assert!(Terse.engines().is_empty());
    assert_eq!(ToolScope::only(["a", "b"]), ToolScope::Only(vec!["a".to_owned(), "b".to_owned()]));

    // A host that does not say so screens everything, and confirms, folds and moves nothing.
    let host: &dyn Host = &*stub;
    let claim = Claim { statement: id("tests passed"), subject: None, evidence: None };
    assert!(host.screens(Tool::Act(Act::Recv)) && !host.confirms(&claim, &call));
    assert!(host.derive(agent.principal(), "x".into(), &[]).is_none());
    assert!(host.relocate(&body, Location::Blob, "x".into()).is_none());
}

/// §3.1: a layer holds its kernel's identity, clock and numbers, and the kernel itself only as long as that lives.
#[test]
fn a_link_leads_to_its_kernel() {
    let stub = Stub::new();
    let (numbers, weak) = (Arc::new(Sequence::new()), Arc::downgrade(&stub));
    let host: Weak<dyn Host> = weak;
    let link = DriverLink::new(
        stub.seal.layer_key(),
        Arc::clone(stub.clock()),
        Arc::clone(stub.timer()),
        Arc::clone(&numbers),
        host,
    );
    assert!(link.tag() == stub.tag() && link.key().tag() == stub.tag());
    assert_eq!([link.sequence().next(), numbers.next()], [1, 2], "one sequence");
    assert_eq!(link.clock().now(), stub.clock().now());
    assert!(link.host().is_some_and(|host| host.tag() == stub.tag()));
    assert_eq!(
        Terse.install(link.clone()).map_err(|error| error.to_string()),
        Err("terse belongs to a kernel already; a bus, store, space or arbiter belongs to exactly one"
            .to_owned())
    );
    drop(stub);
    assert!(link.host().is_none());
}

/// §3.3: an engine gets back what it set aside, as what it was.
#[test]
fn a_claim_comes_back_as_what_it_was() {
    let claim = EngineClaim::new(7_u32);
    let Err(claim) = claim.downcast::<u64>() else { panic!("not a u64") };
    assert_eq!(claim.downcast::<u32>().ok().as_deref(), Some(&7));
}

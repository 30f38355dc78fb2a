//! The kernel as the layers built into it see it (§2.9, §3.1): the short way to a decision, what it makes for them, and what
//! observers hear of it.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fak_abi::{
    Act, Address, Adjudicator, Admission, AgentHandle, Cancel, CapSet, Charge, Desk, Digest, Driver,
    DriverLink, Edges, Emitter, Engine, EngineClaim, Event, EventKind, EventKinds, Gate, Host, Id,
    InstallError, KernelSeal, Location, Opinion, OwnedCall, Pass, Principal, Reason, Ref, Refusal,
    ResultAdmitter, Rider, RungName, ShareScope, Site, Status, Taint, Tool, ToolCall, ToolResult, ToolScope,
    VerdictKind,
};
use fak_adjudicate::{AuditLog, AuditOptions, Kernel, KernelBuilder, ManualClock, Rank};

use crate::support::{ByWord, Says, attach, claim, id, quiet, spec};

/// A layer that does nothing but hold its link.
#[derive(Default)]
pub(crate) struct Layer {
    pub(crate) link: OnceLock<DriverLink>,
    seen: Mutex<Vec<String>>,
}

impl Driver for Layer {
    fn name(&self) -> RungName {
        "layer"
    }
    fn capabilities(&self) -> CapSet {
        CapSet::NONE
    }
    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        Vec::new()
    }
    fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.link.set(link).map_err(|_| InstallError("layer"))
    }
    fn attached(&self, principal: &Arc<Principal>) {
        self.seen.lock().unwrap().push(format!("attached {principal}"));
    }
    fn detached(&self, principal: &Arc<Principal>) {
        self.seen.lock().unwrap().push(format!("detached {principal}"));
    }
}

/// Writes down every event of the kinds it wants.
#[derive(Clone)]
struct Heard(EventKinds, Arc<Mutex<Vec<String>>>);

impl Heard {
    fn new(kinds: &[EventKind]) -> Self {
        Self(EventKinds::of(kinds), Arc::default())
    }
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.1.lock().unwrap())
    }
}

impl Emitter for Heard {
    fn kinds(&self) -> EventKinds {
        self.0
    }
    fn emit(&self, event: &Event<'_>) {
        let mut line = format!("{} {} at {}", event.kind, event.seq, event.at.as_micros());
        if let Some(who) = event.principal {
            line += &format!(", {who}");
        }
        if let Some(tool) = event.tool {
            line += &format!(", {}", tool.name());
        }
        if event.address != Address::None {
            line += &format!(" {}", event.address);
        }
        if let Some((taint, scope)) = event.label {
            line += &format!(", {taint} {scope}");
        }
        line += if event.body.is_some() { ", a body" } else { "" };
        line += if event.digest.is_some() { ", a digest" } else { "" };
        if let Some(verdict) = event.verdict {
            line += &format!(", {} by {}", verdict.kind(), verdict.by());
        }
        if !event.cause.is_empty() {
            line += &format!(", {}", event.cause);
        }
        self.1.lock().unwrap().push(line);
    }
}

struct Holds;

impl ResultAdmitter for Holds {
    fn name(&self) -> RungName {
        "holds"
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only(["made"])
    }
    fn screen(&self, _: &ToolCall<'_>, body: &Ref, _: &Desk<'_>) -> Opinion {
        match body.len() {
            6 => panic!("the admitter broke"),
            5 => Opinion::Quarantine,
            _ => Opinion::Allow,
        }
    }
}

/// Makes what it is given.
struct Echo;

impl Engine for Echo {
    fn name(&self) -> RungName {
        "echo"
    }
    fn serves(&self) -> Vec<String> {
        vec!["made".into()]
    }
    fn poll_run(
        &self,
        call: &OwnedCall,
        _: &mut Option<EngineClaim>,
        _: &mut Context<'_>,
    ) -> Poll<ToolResult> {
        Poll::Ready(ToolResult::ok(call.view().body().cloned()))
    }
}

pub(crate) fn world(
    more: impl FnOnce(KernelBuilder) -> KernelBuilder,
) -> (Arc<Kernel>, Arc<Layer>, ManualClock) {
    let clock = ManualClock::at(fak_abi::Timestamp::from_micros(1000));
    let layer = Arc::new(Layer::default());
    let says = |name: &'static str, opinion: fn() -> Opinion| {
        Arc::new(Says::new(name, move |_, _| opinion()).only(name))
    };
    let builder = Kernel::builder()
        .time(Arc::new(clock.clone()))
        .driver(Arc::clone(&layer) as _)
        .witness(ByWord)
        .admitter(Rank(0), Arc::new(Holds))
        .engine(Arc::new(Echo))
        .rung(Rank(0), says("yes", || Opinion::Allow))
        .rung(Rank(0), says("made", || Opinion::Allow))
        .rung(Rank(0), says("no", || Opinion::deny(Reason::SecretExfil, Site::new("x/y"))))
        .rung(Rank(0), says("unsure", || Opinion::Indeterminate))
        .rung(Rank(0), says("silent", || Opinion::Defer))
        .rung(Rank(0), says("broken", || panic!("the rung broke")))
        .rung(
            Rank(0),
            Arc::new(Says::new("counts", |_, _| Opinion::Allow).only("counts").counting(Opinion::Defer)),
        );
    (more(builder).build().unwrap(), layer, clock)
}

fn tools() -> [&'static str; 6] {
    ["yes", "no", "unsure", "silent", "broken", "counts"]
}

fn pass(kernel: &Kernel, agent: &AgentHandle, tool: &str, key: &fak_abi::LayerKey) -> String {
    let token = kernel.tool(&id(tool));
    match kernel.pass(&ToolCall::new(agent, &token), key) {
        Pass::Allow(by) => format!("allow by {by}"),
        Pass::Refuse(verdict) => format!("{} by {}", verdict.reason().unwrap(), verdict.by()),
        Pass::Closely => "closely".to_owned(),
    }
}

/// §3.2: the short way says only what needs no settling, and what it does not say it neither counts nor writes.
#[test]
fn the_short_way_is_for_what_needs_no_settling() {
    quiet();
    let heard = Heard::new(&[EventKind::Panic]);
    let (kernel, layer, _) = world(|builder| builder.emitter(heard.clone()));
    let (agent, link) = (attach(&kernel, "a"), layer.link.get().unwrap());
    assert_eq!(
        tools().map(|tool| pass(&kernel, &agent, tool, link.key())),
        ["allow by yes", "SECRET_EXFIL by no", "closely", "closely", "DEFAULT_DENY by broken", "closely"]
    );
    assert_eq!(heard.take(), ["panic 0 at 1000, broken"], "the rung that broke is reported, once");
    let foreign = KernelSeal::new().layer_key();
    assert_eq!(tools().map(|tool| pass(&kernel, &agent, tool, &foreign)), ["closely"; 6]);
    // What is detached is not allowed by any way.
    kernel.detach(&id("a")).unwrap();
    assert_eq!(pass(&kernel, &agent, "yes", link.key()), "closely");

    for observed in [
        world(|builder| builder.emitter(Heard::new(&[EventKind::Decide]))),
        world(|builder| {
            let options = AuditOptions { capacity: NonZeroUsize::new(8).unwrap(), share: None };
            let (audit, ..) =
                AuditLog::open(&b""[..], Vec::new(), fak_abi::Timestamp::default(), options).unwrap();
            builder.audit(Arc::new(audit))
        }),
    ] {
        let (kernel, layer, _) = observed;
        let (agent, link) = (attach(&kernel, "a"), layer.link.get().unwrap());
        assert_eq!(tools().map(|tool| pass(&kernel, &agent, tool, link.key())), ["closely"; 6]);
    }
}

/// §2.3, §2.9: everything that is told, with everything that is told of it.
#[test]
fn observers_hear_the_whole_of_it() {
    quiet();
    let heard = Heard::new(EventKind::ALL);
    let (kernel, layer, _) = world(|builder| builder.emitter(heard.clone()));
    let agent = attach(&kernel, "a");
    assert_eq!(heard.take(), ["attach 0 at 1000, a"]);
    let (yes, lane, body) = (kernel.tool(&id("yes")), id("l"), agent.mint("four"));
    let call = ToolCall::new(&agent, &yes).args(&body).address(Address::Lane(&lane));
    assert!(agent.decide(&call).is_allow());
    assert_eq!(heard.take(), [r#"decide 1 at 1000, a, yes lane:"l", tainted agent, a body, allow by yes"#]);
    let no = kernel.tool(&id("no"));
    assert!(!agent.decide(&ToolCall::new(&agent, &no)).is_allow());
    assert_eq!(heard.take(), ["decide 2 at 1000, a, no, deny by no"]);
    let broken = kernel.tool(&id("broken"));
    assert_eq!(agent.decide(&ToolCall::new(&agent, &broken)).by(), "broken");
    assert_eq!(heard.take(), ["panic 0 at 1000, broken", "decide 3 at 1000, a, broken, deny by broken"]);

    let ticket = agent.submit(&call);
    agent.withdraw(&ticket).unwrap();
    assert_eq!(
        heard.take(),
        [
            r#"decide 4 at 1000, a, yes lane:"l", tainted agent, a body, allow by yes"#,
            r#"withdraw 4 at 1000, a, yes lane:"l""#
        ]
    );
    let raised = agent.raise(&body, Taint::Quarantined);
    assert_eq!(
        (heard.take(), raised.taint()),
        (vec!["raise 0 at 1000, a, quarantined agent".to_owned()], Taint::Quarantined)
    );
    let _ = agent.raise(&body, Taint::Trusted);
    assert_eq!(heard.take(), [""; 0], "there was nothing to raise");

    kernel.note(&Event::new(EventKind::Hold, fak_abi::Timestamp::default()));
    assert_eq!(heard.take(), ["hold 0 at 0"]);

    kernel.reloaded();
    kernel.detach(&id("a")).unwrap();
    assert_eq!(heard.take(), ["reload 0 at 1000", "detach 0 at 1000, a"]);
    assert_eq!(*layer.seen.lock().unwrap(), ["attached a", "detached a"]);
}

/// §2.9: an emitter hears only what it asks for, though another wants more.
#[test]
fn an_observer_hears_what_it_asked_for() {
    let (all, some) = (Heard::new(EventKind::ALL), Heard::new(&[EventKind::Detach]));
    let (kernel, ..) = world(|builder| builder.emitter(all.clone()).emitter(some.clone()));
    let _ = attach(&kernel, "a");
    kernel.detach(&id("a")).unwrap();
    assert_eq!((all.take().len(), some.take().len()), (2, 1));
}

/// §4.4: what an admitter holds, or breaks on, is held; what is quarantined needs none.
#[test]
fn what_is_screened_is_held_or_passes() {
    quiet();
    let heard = Heard::new(&[EventKind::Panic]);
    let (kernel, ..) = world(|builder| builder.emitter(heard.clone()));
    let agent = attach(&kernel, "a");
    let (made, yes) = (kernel.tool(&id("made")), kernel.tool(&id("yes")));
    let screened = |token, body: &Ref| {
        let verdict = kernel.screen(&ToolCall::new(&agent, token), body);
        (verdict.kind(), verdict.by())
    };
    assert_eq!(screened(&made, &agent.mint("four")), (VerdictKind::Allow, "kernel"));
    assert_eq!(screened(&made, &agent.mint("fives")), (VerdictKind::Quarantine, "holds"));
    assert_eq!(screened(&made, &agent.mint("sixsix")), (VerdictKind::Quarantine, "holds"));
    assert_eq!(heard.take(), ["panic 0 at 1000, holds"]);
    assert_eq!(screened(&yes, &agent.mint("fives")), (VerdictKind::Allow, "kernel"));
    let poison = agent.raise(&agent.mint("four"), Taint::Quarantined);
    assert_eq!(screened(&yes, &poison), (VerdictKind::Quarantine, "kernel"));
    assert!(kernel.screens(Tool::from(&made)) && !kernel.screens(Tool::from(&yes)));
    assert!(!kernel.screens(Tool::from(Act::Recv)));
}

/// §3.3, §4.4: what a call made is screened before it is handed over; what is held is told of, and stays out.
#[test]
fn what_a_call_made_is_screened() {
    let heard = Heard::new(&[EventKind::Hold]);
    let (kernel, ..) = world(|builder| builder.emitter(heard.clone()));
    let agent = attach(&kernel, "a");
    let (made, lane) = (kernel.tool(&id("made")), id("l"));
    let run = |body: &Ref| {
        let ticket = agent.submit(&ToolCall::new(&agent, &made).args(body).address(Address::Lane(&lane)));
        match kernel.poll_reap(&agent, &ticket, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(result)) => result,
            _ => panic!("not reaped"),
        }
    };
    let passed = run(&agent.mint("four"));
    assert_eq!((passed.status, passed.payload.map(|body| body.len())), (Status::Ok, Some(4)));
    assert_eq!(heard.take(), [""; 0]);
    let held = run(&agent.mint("fives"));
    assert!(held.status == Status::Error && held.payload.is_none());
    assert_eq!(
        held.refused.map(|verdict| (verdict.kind(), verdict.by())),
        Some((VerdictKind::Quarantine, "holds"))
    );
    assert_eq!(heard.take(), [r#"hold 2 at 1000, a, made lane:"l", a digest, quarantine by holds"#]);
}

/// §3.8, §4.13: what was counted for an act that does not happen after all is taken back, and a repetition is told of as one.
#[test]
fn a_cleared_act_happens_repeats_or_is_taken_back() {
    let heard = Heard::new(&[EventKind::Decide]);
    let counter = Arc::new(Says::new("counter", |_, _| Opinion::Allow).only("x").counting(Opinion::Defer));
    let kernel = Kernel::builder()
        .time(Arc::new(ManualClock::at(fak_abi::Timestamp::from_micros(1000))))
        .emitter(heard.clone())
        .rung(Rank(0), Arc::clone(&counter) as _)
        .build()
        .unwrap();
    let agent = attach(&kernel, "a");
    let tool = kernel.tool(&id("x"));
    let call = ToolCall::new(&agent, &tool);
    let cleared = || match kernel.admit_any(&call) {
        Admission::Permit(permit) => match permit.charge() {
            Charge::Cleared(cleared) => cleared,
            Charge::Refuse(verdict) => panic!("{verdict}"),
        },
        Admission::Refuse(verdict) => panic!("{verdict}"),
    };
    assert!(cleared().allow(41).is_allow());
    assert_eq!(counter.counts_now(), 1);
    assert!(cleared().repeat(41).is_allow());
    assert_eq!(counter.counts_now(), 2);
    let refused = cleared().refuse(Refusal::new(Reason::LeaseHeld, Site::new("x/y")), "layer");
    assert_eq!((refused.by(), counter.counts_now()), ("layer", 2));
    assert_eq!(
        heard.take(),
        [
            "decide 41 at 1000, a, x, allow by counter",
            "decide 41 at 1000, a, x, allow by counter, replay",
            "decide 1 at 1000, a, x, deny by layer"
        ]
    );
}

/// §2.1, §3.4, §6.4: what a layer has made is made for this kernel's own.
#[test]
fn what_layers_have_made() {
    quiet();
    let (kernel, layer, _) = world(|builder| builder);
    let (elsewhere, ..) = world(|builder| builder);
    let (agent, stranger) = (attach(&kernel, "a"), attach(&elsewhere, "a"));
    let link = layer.link.get().unwrap();
    let host = link.host().unwrap();
    assert!(link.tag() == kernel.tag() && link.key().tag() == kernel.tag() && host.tag() == kernel.tag());
    assert_eq!(link.clock().now().as_micros(), 1000);
    assert_eq!(link.sequence().next() + 1, link.sequence().next(), "the kernel's own numbers");

    let issued = host.issue(agent.principal(), "four".into(), Taint::Trusted, ShareScope::Fleet).unwrap();
    assert_eq!((issued.taint(), issued.scope(), issued.len()), (Taint::Trusted, ShareScope::Fleet, 4));
    assert!(host.issue(stranger.principal(), "four".into(), Taint::Trusted, ShareScope::Fleet).is_none());
    let derived = host.derive(agent.principal(), "four".into(), &[stranger.mint("x")]).unwrap();
    assert!(derived.is_derived() && derived.scope() == ShareScope::Agent);
    assert!(host.derive(stranger.principal(), "four".into(), &[]).is_none());
    let moved = host.relocate(&issued, Location::Blob, "four".into()).unwrap();
    assert_eq!((moved.location(), moved.digest()), (Location::Blob, Digest::of(b"four")));
    assert!(host.relocate(&issued, Location::Blob, "five".into()).is_none());
    assert_eq!(host.resolver().bytes(&issued).unwrap(), "four");
    assert_eq!(host.resolver().rewrite(&issued, "other".into()).unwrap().len(), 5);
    assert!(host.resolver().bytes(&stranger.mint("x")).is_err());
    assert_eq!(host.attached(&id("a")).unwrap().incarnation(), agent.principal().incarnation());
    assert!(host.attached(&id("b")).is_none());

    let call = ToolCall::new(&agent, Act::TaskPatch);
    let confirmed =
        ["confirmed", "refuted", "unheard-of", "panic"].map(|word| host.confirms(&claim(word), &call));
    assert_eq!(confirmed, [true, false, false, false]);

    // A kernel that is gone is nobody's host.
    drop((host, agent, kernel));
    assert!(link.host().is_none());
}

/// Hands from anybody to those whose name sorts later; breaks on one name.
struct Upwards;

impl Edges for Upwards {
    fn may_hand(&self, from: &Principal, to: &Principal) -> bool {
        assert_ne!(to.id().as_str(), "broken", "the topology broke");
        from.id() < to.id()
    }
}

/// §6.9: with a topology its edges alone, to oneself always; without one to anybody.
#[test]
fn hands_follow_the_edges() {
    let (kernel, ..) = world(|builder| builder.edges(Arc::new(Upwards)));
    let [a, b, broken] = ["a", "b", "broken"].map(|name| attach(&kernel, name));
    let may = |from: &AgentHandle, to: &AgentHandle| kernel.may_hand(from.principal(), to.principal());
    assert!(kernel.has_edges());
    assert!(may(&a, &b) && !may(&b, &a) && may(&a, &a));
    quiet();
    assert!(!may(&a, &broken), "a topology that breaks allows nothing");
    let (free, ..) = world(|builder| builder);
    let [a, b] = ["a", "b"].map(|name| attach(&free, name));
    assert!(!free.has_edges());
    assert!(free.may_hand(b.principal(), a.principal()));
}

/// §2.5: an act that nobody wants any more is refused, at the deadline and not before.
#[test]
fn what_is_over_is_refused() {
    let (kernel, _, clock) = world(|builder| builder);
    let agent = attach(&kernel, "a");
    let yes = kernel.tool(&id("yes"));
    let ask = |rider: &Rider| {
        let verdict = agent.decide(&ToolCall::new(&agent, &yes).rider(Some(rider)));
        verdict.refusal().map(|refusal| (refusal.reason, refusal.site.check()))
    };
    let over = Some((Reason::Misroute, "kernel/expired"));
    let at = |micros| Rider { deadline: Some(fak_abi::Timestamp::from_micros(micros)), ..Rider::default() };
    assert_eq!(ask(&Rider::default()), None);
    assert_eq!((ask(&at(1001)), ask(&at(1000)), ask(&at(999))), (None, over, over));
    clock.advance(Duration::from_micros(1));
    assert_eq!(ask(&at(1001)), over);
    let cancel = Cancel::new();
    let rider = Rider { cancel: Some(cancel.clone()), ..at(5000) };
    assert_eq!(ask(&rider), None);
    cancel.cancel();
    assert_eq!(ask(&rider), over);
}

/// §3.1: the host's view of who is attached, and of what the kernel knows.
#[test]
fn the_hosts_view() {
    let (kernel, ..) = world(|builder| builder.tools([id("work")]));
    let agent: AgentHandle = fak_abi::Kernel::attach(Arc::clone(&kernel), spec("a")).unwrap();
    assert_eq!(kernel.principal(&id("a")).unwrap().incarnation(), agent.principal().incarnation());
    let body = agent.mint("x");
    assert_eq!(fak_abi::Kernel::resolver(&*kernel).bytes(&body).unwrap(), "x");
    assert_eq!(kernel.label(&body, Taint::Trusted).unwrap().taint(), Taint::Trusted);
    let names: Vec<&str> = kernel.tool_names().collect();
    assert!(["work", "yes", "a2a.send", "forensics.read"].iter().all(|name| names.contains(name)));
    let [first, second] = ["work", "yes"].map(|name| kernel.tool(&id(name)).index());
    assert!(first.is_some() && second.is_some() && first != second);
    assert_eq!(kernel.tool(&Id::new("unheard-of").unwrap()).index(), None);
    assert_eq!(format!("{kernel:?}"), "Kernel { pending: 0, .. }");
    fak_abi::Kernel::detach(&*kernel, &id("a")).unwrap();
    assert!(kernel.principal(&id("a")).is_none() && !agent.principal().is_attached());
    assert!(fak_abi::Kernel::detach(&*kernel, &id("a")).is_err());
}

/// §2.9: a rung or admitter for a mistyped act would never be asked: the kernel is not built. A tool of the host's own may have any
/// name that is not nearly an act's, and that too if something serves it or the host lists it.
#[test]
fn a_rung_for_a_mistyped_act_is_not_built_in() {
    let rung = |tool| Arc::new(Says::new("office/narrow", |_, _| Opinion::Defer).only(tool));
    let build = |tool| Kernel::builder().rung(Rank(0), rung(tool)).build();
    let fails = |tool| build(tool).unwrap_err().to_string();
    let says = "office/narrow names the tool";
    let unknown = "which is no act, and which nothing serves or lists";
    assert_eq!(fails("a2a.snd"), format!("{says} \"a2a.snd\", {unknown}; did you mean \"a2a.send\"?"));
    assert_eq!(fails("pol.put"), format!("{says} \"pol.put\", {unknown}; did you mean \"pool.put\"?"));
    assert_eq!(fails("comm.telepathy"), format!("{says} \"comm.telepathy\", {unknown}"));
    for tool in ["a2a.send", "ref.widen", "pool.write", "deploy"] {
        assert!(build(tool).is_ok(), "{tool}");
    }
    let listed = Kernel::builder().tools([id("a2a.snd")]).rung(Rank(0), rung("a2a.snd")).build();
    assert!(listed.is_ok());
    let served = Kernel::builder().engine(Arc::new(Echo)).rung(Rank(0), rung("maed")).build();
    assert!(served.unwrap_err().to_string().ends_with("did you mean \"made\"?"));
    let screened = Kernel::builder().admitter(Rank(0), Arc::new(Slip)).build();
    assert!(screened.unwrap_err().to_string().starts_with("slip names the tool \"a2a.recieve\""));
}

/// An admitter for what nobody calls.
struct Slip;

impl ResultAdmitter for Slip {
    fn name(&self) -> RungName {
        "slip"
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only(["a2a.recieve"])
    }
    fn screen(&self, _: &ToolCall<'_>, _: &Ref, _: &Desk<'_>) -> Opinion {
        Opinion::Allow
    }
}

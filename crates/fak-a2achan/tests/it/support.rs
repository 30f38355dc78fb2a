//! A world to act in: a kernel with a bus, on a clock that is moved by hand.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use fak_a2achan::{Bus, BusConfig, Delivery, Endpoint, Message};
use fak_abi::{
    Adjudicator, CapSet, Capability, ChannelKey, Desk, Id, Opinion, PrincipalSpec, Reason, Ref,
    ResultAdmitter, RungName, ShareScope, Site, Taint, ToolCall, ToolScope, Verdict,
};
use fak_adjudicate::{Kernel, KernelBuilder, ManualClock};

pub(crate) struct World {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) bus: Bus,
    pub(crate) clock: ManualClock,
}

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

pub(crate) fn key(text: &str) -> ChannelKey {
    text.parse().unwrap()
}

pub(crate) fn caps() -> CapSet {
    [Capability::A2aSend, Capability::A2aRecv, Capability::RefWiden].into()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(BusConfig::default(), |builder| builder)
    }

    pub(crate) fn with(config: BusConfig, more: impl FnOnce(KernelBuilder) -> KernelBuilder) -> Self {
        let bus = Bus::new(config).unwrap();
        let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        let builder = Kernel::builder().time(Arc::new(clock.clone())).driver(bus.driver());
        let kernel = more(builder).build().unwrap();
        Self { kernel, bus, clock }
    }

    /// An agent of fleet `f1` that may send, receive and widen.
    pub(crate) fn agent(&self, name: &str) -> Endpoint {
        self.spec(PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(caps()))
    }

    /// The same of another fleet.
    pub(crate) fn stranger(&self, name: &str, fleet: &str) -> Endpoint {
        self.spec(PrincipalSpec::agent(id(name)).fleet(id(fleet)).caps(caps()))
    }

    pub(crate) fn spec(&self, spec: PrincipalSpec) -> Endpoint {
        self.bus.endpoint(&self.kernel.attach(spec).unwrap())
    }

    pub(crate) fn quarantined(&self, by: &Endpoint, text: &str) -> Ref {
        self.kernel.label(&shared(by, text), Taint::Quarantined).unwrap()
    }
}

/// A private body.
pub(crate) fn private(by: &Endpoint, text: &str) -> Ref {
    by.agent().mint(text.to_owned())
}

/// A body widened to the fleet.
pub(crate) fn shared(by: &Endpoint, text: &str) -> Ref {
    by.agent().widen(&private(by, text), ShareScope::Fleet).allowed().unwrap()
}

pub(crate) fn text(by: &Endpoint, body: &Ref) -> String {
    String::from_utf8(by.agent().read(body).allowed().unwrap().to_vec()).unwrap()
}

#[track_caller]
pub(crate) fn allowed(verdict: &Verdict) {
    assert!(verdict.is_allow(), "{verdict}");
}

#[track_caller]
pub(crate) fn denied(verdict: &Verdict, reason: Reason, site: &str) {
    let refusal = verdict.refusal().unwrap_or_else(|| panic!("expected {reason} at {site}, got {verdict}"));
    assert_eq!((refusal.reason, refusal.site.check()), (reason, site));
}

#[track_caller]
pub(crate) fn message(delivery: Delivery) -> Message {
    match delivery {
        Delivery::Message(message) => message,
        other => panic!("expected a message, got {other:?}"),
    }
}

#[track_caller]
pub(crate) fn refused(delivery: Delivery, reason: Reason, site: &str) {
    match delivery {
        Delivery::Refuse(verdict) => denied(&verdict, reason, site),
        other => panic!("expected {reason} at {site}, got {other:?}"),
    }
}

/// A future polled by hand, which counts its wake-ups.
pub(crate) struct Hand<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Count>,
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<F: Future> Hand<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Hands the future to another task: its next poll has another waker.
    pub(crate) fn moved(self) -> Self {
        Self { future: self.future, wakes: Arc::default() }
    }

    #[track_caller]
    pub(crate) fn pending(&mut self) {
        assert!(self.poll().is_pending(), "ready");
    }

    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("pending"),
        }
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

/// A rung that answers the same to the tools it names.
pub(crate) struct Rule {
    pub(crate) tools: Vec<&'static str>,
    pub(crate) opinion: fn(&ToolCall<'_>, &Desk<'_>) -> Opinion,
}

impl Adjudicator for Rule {
    fn name(&self) -> RungName {
        "rule"
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only(self.tools.iter().copied())
    }
    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        (self.opinion)(call, desk)
    }
}

pub(crate) fn block(_: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
    Opinion::deny(Reason::PolicyBlock, Site::new("rule"))
}

/// A rung that counts, and refuses what is above a limit per tool.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) limit: usize,
    pub(crate) counts: parking_lot::Mutex<HashMap<String, usize>>,
}

impl Adjudicator for Meter {
    fn name(&self) -> RungName {
        "meter"
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }
    fn commit(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        let mut counts = self.counts.lock();
        let count = counts.entry(call.tool().name().to_owned()).or_default();
        if *count >= self.limit {
            return Opinion::deny(Reason::RateLimited, Site::new("meter"));
        }
        *count += 1;
        Opinion::Defer
    }
    fn revert(&self, call: &ToolCall<'_>, _: &Desk<'_>) {
        *self.counts.lock().get_mut(call.tool().name()).unwrap() -= 1;
    }
}

/// An admitter that holds bodies containing a word.
pub(crate) struct Hold(pub(crate) &'static str);

impl ResultAdmitter for Hold {
    fn name(&self) -> RungName {
        "hold"
    }
    fn screen(&self, _: &ToolCall<'_>, body: &Ref, desk: &Desk<'_>) -> Opinion {
        let bytes = desk.resolver.bytes(body).unwrap();
        let hit = bytes.windows(self.0.len()).any(|part| part == self.0.as_bytes());
        if hit { Opinion::Quarantine } else { Opinion::Defer }
    }
}

impl World {
    pub(crate) fn bus_now(&self) -> fak_abi::Timestamp {
        fak_abi::Clock::now(&self.clock)
    }
}

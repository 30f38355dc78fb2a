//! The `tracing` emitter: documented targets, levels and fields.

use std::fmt;
use std::sync::{Arc, Mutex};

use fak_abi::{Act, Gate, Opinion, ShareScope, ToolCall};
use fak_adjudicate::{Kernel, Rank, TRACE_TARGETS, TraceEmitter};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{Says, attach, id};

/// Keeps every event as one line: target, level, fields.
#[derive(Clone, Default)]
pub(crate) struct Lines(pub(crate) Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push_str(&format!(" {}={value}", field.name()));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        TRACE_TARGETS.contains(&metadata.target())
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(format!("{} {}", event.metadata().target(), event.metadata().level()));
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn events_carry_the_documented_names() {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let clock = fak_adjudicate::ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        let kernel = Kernel::builder()
            .time(Arc::new(clock))
            .tools([id("work")])
            .rung(Rank(0), Arc::new(Says::new("open", |_, _| Opinion::Allow).only("work")))
            .emitter(TraceEmitter::new(fak_abi::EventKinds::ALL))
            .build()
            .unwrap();
        let alpha = attach(&kernel, "al \"pha");
        let token = kernel.tool(&id("work"));
        let key: fak_abi::ChannelKey = "in_kernel:a b".parse().unwrap();
        let call = ToolCall::new(&alpha, &token).address(fak_abi::Address::Channel(&key));
        assert!(alpha.decide(&call).is_allow());
        assert!(!alpha.decide(&ToolCall::new(&alpha, Act::Send)).is_allow());
        assert!(alpha.widen(&alpha.mint("x"), ShareScope::Fleet).is_allow());
        kernel.reloaded();
        kernel.detach(&id("al \"pha")).unwrap();
    });
    let at = "at=2026-01-01T00:00:00Z";
    let who = r#"agent="al \"pha" incarnation=1"#;
    assert_eq!(
        *lines.0.lock().unwrap(),
        [
            format!("fak::agent INFO kind=attach {at} {who}"),
            format!(
                r#"fak::decide DEBUG kind=decide {at} seq=1 {who} tool="work" address=in_kernel:"a b" verdict=allow by=open"#
            ),
            format!(
                r#"fak::decide INFO kind=decide {at} seq=2 {who} tool="a2a.send" verdict=deny reason=DEFAULT_DENY by=empty-policy site=kernel/empty-policy"#
            ),
            format!(
                r#"fak::decide DEBUG kind=decide {at} seq=3 {who} tool="ref.widen" taint=tainted scope=agent verdict=allow by=refs"#
            ),
            format!("fak::value INFO kind=widen {at} seq=3 {who} taint=tainted scope=fleet"),
            format!("fak::kernel INFO kind=reload {at}"),
            format!("fak::agent INFO kind=detach {at} {who}"),
        ]
    );
}

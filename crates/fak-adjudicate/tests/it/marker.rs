//! I24: a body with a marker goes down every refusal path of this crate; the marker comes out of
//! none of them: no verdict, explanation, event, log line, trace or error.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fak_abi::{
    Act, AgentHandle, CapSet, Claim, Desk, Digest, Emitter, Event, EventKinds, Gate, Host, MetaValue,
    Opinion, PrincipalSpec, Ref, ResultAdmitter, Rider, RungName, ShareScope, Taint, ToolCall, ToolScope,
    Verdict,
};
use fak_adjudicate::{
    AuditLog, Budget, BudgetRung, Policy, PolicyRung, Pool, PoolOptions, Rank, RateLimit, RateOptions,
    RateRung, TraceEmitter,
};

use crate::kernel_audit::world;
use crate::support::{Says, attach, claim, id, quiet};
use crate::trace::Lines;

const MARKER: &str = "MARKER-7f3a";

/// Everything that was said, to be searched.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, said: impl std::fmt::Debug) {
        self.0.lock().unwrap().push(format!("{said:?}"));
    }
    fn say(&self, said: impl std::fmt::Display) {
        self.0.lock().unwrap().push(said.to_string());
    }
}

impl Emitter for Heard {
    fn kinds(&self) -> EventKinds {
        EventKinds::ALL
    }
    fn emit(&self, event: &Event<'_>) {
        self.note(event);
    }
}

struct Holds;

impl ResultAdmitter for Holds {
    fn name(&self) -> RungName {
        "holds"
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only(["pool.get"])
    }
    fn screen(&self, _: &ToolCall<'_>, _: &Ref, _: &Desk<'_>) -> Opinion {
        Opinion::Quarantine
    }
}

const POLICY: &str = r#"
version = 1
[[allow]]
tool = "*"
[[deny]]
tool = "denied"
[[deny]]
tool = "large"
max_bytes = 3
reason = "OVERSIZE"
[[deny]]
tool = "labelled"
taint = "tainted"
reason = "SECRET_EXFIL"
"#;

#[test]
fn i24_no_refusal_quotes_what_it_refused() {
    quiet();
    let heard = Heard::default();
    let lines = Lines::default();
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let one = RateLimit { burst: NonZeroU32::MIN, per: Duration::from_secs(1) };
    let rate = RateRung::new(RateOptions {
        tools: ToolScope::only(["rated"]),
        principal: Some(one),
        ..RateOptions::default()
    });
    let budget = BudgetRung::new(ToolScope::only(["paid"])).each(Budget {
        calls: Some(9),
        bytes: Some(1),
        cost: Some(1.0),
    });
    let policy = Arc::new(PolicyRung::new(Policy::from_toml("p", POLICY).unwrap()));
    let says = |tool: &'static str, opinion: fn(&ToolCall<'_>, &Desk<'_>) -> Opinion| {
        Arc::new(Says::new(tool, opinion).only(tool))
    };
    let mut w = world(512, |builder| {
        builder
            .tools(["denied", "large", "labelled"].map(id))
            .driver(Arc::clone(&pool) as _)
            .emitter(heard.clone())
            .emitter(TraceEmitter::new(EventKinds::ALL))
            .admitter(Rank(0), Arc::new(Holds))
            .rung(Rank(1), policy)
            .rung(Rank(2), Arc::new(rate))
            .rung(Rank(3), Arc::new(budget))
            .rung(Rank(4), says("panics", |_, _| panic!("the rung broke")))
            .rung(Rank(4), says("unsure", |_, _| Opinion::Indeterminate))
            .rung(Rank(4), says("held", |_, _| Opinion::Quarantine))
            .rung(Rank(4), says("claims", |_, _| Opinion::RequireWitness(Box::new(claim("unheard")))))
            .rung(Rank(4), says("refuted", |_, _| Opinion::RequireWitness(Box::new(claim("refuted")))))
            .rung(Rank(4), says("twice", |call, _| Opinion::Transform(call.body().unwrap().clone())))
            .rung(Rank(5), says("twice", |call, _| Opinion::Transform(call.body().unwrap().clone())))
            .rung(
                Rank(5),
                says("wider", |call, desk| {
                    let body = call.body().unwrap();
                    Opinion::Transform(
                        desk.resolver
                            .rewrite(body, "MARKER-7f3a more".into())
                            .unwrap()
                            .tainted_at_least(Taint::Tainted),
                    )
                }),
            )
    });
    let kernel = Arc::clone(&w.kernel);
    let reasons = tracing::subscriber::with_default(lines.clone(), || {
        let alpha = attach(&kernel, "alpha");
        let bare = kernel.attach(PrincipalSpec::agent(id("bare")).caps(CapSet::NONE)).unwrap();
        let body = alpha.mint(MARKER);
        let mut refused = Vec::new();
        let mut hear = |verdict: Verdict| {
            heard.say(&verdict);
            heard.note(&verdict);
            refused.extend(verdict.refusal().map(|refusal| refusal.site.to_string()));
        };
        let act = |agent: &AgentHandle, tool: &str, cost: Option<f64>| {
            let token = kernel.tool(&id(tool));
            let mut rider = Rider::default();
            rider.meta.extend(cost.map(|cost| (id("cost"), MetaValue::Number(cost))));
            let call = ToolCall::new(agent, &token).args(&body).rider(Some(&rider));
            heard.note(call);
            heard.say(kernel.explain(&call));
            heard.note(kernel.explain(&call));
            let ticket = kernel.submit(&call);
            heard.note(&ticket);
            agent.decide(&call)
        };
        for tool in [
            "denied",
            "large",
            "labelled",
            "rated",
            "rated",
            "paid",
            "panics",
            "unsure",
            "held",
            "claims",
            "refuted",
            "twice",
            "wider",
            "play",
            "unheard-of",
        ] {
            hear(act(&alpha, tool, None));
        }
        hear(act(&alpha, "paid", Some(2.0)));
        hear(act(&alpha, "paid", Some(f64::NAN)));
        for tool in Act::ALL {
            hear(act(&bare, tool.tool(), None));
        }
        let secret = Digest::of(MARKER.as_bytes());
        let _kept = pool.put(&alpha, &body);
        for outcome in [
            pool.get(&alpha, secret),
            pool.get(&bare, secret),
            pool.get(&alpha, Digest::of(b"")),
            pool.put(&bare, &body),
            bare.widen(&body, ShareScope::Fleet),
            alpha.widen(&body, ShareScope::Public),
            alpha.trust(&body, claim("unheard")),
            alpha.trust(&body, Claim { statement: id("refuted"), subject: Some(secret), evidence: None }),
        ] {
            hear(outcome.verdict());
            heard.note(outcome);
        }
        heard.note(bare.read(&body));
        heard.note(kernel.issue(alpha.principal(), MARKER.into(), Taint::Quarantined, ShareScope::Fleet));
        heard.note((&alpha, &body, &*kernel, &*pool));
        kernel.detach(&id("alpha")).unwrap();
        hear(act(&alpha, "work", None));
        refused
    });
    for check in [
        "policy/deny#1",
        "policy/deny#2",
        "policy/deny#3",
        "rate/principal",
        "budget/bytes",
        "budget/price",
        "kernel/panic",
        "kernel/quarantine",
        "kernel/unwitnessed",
        "kernel/refuted",
        "kernel/two-transforms",
        "kernel/unknown-tool",
        "pool/unknown",
        "pool/capability",
        "refs/capability",
        "refs/target",
        "kernel/detached",
    ] {
        assert!(reasons.iter().any(|found| found == check), "{check} was not provoked: {reasons:?}");
    }
    w.records();
    let mut said = heard.0.lock().unwrap().clone();
    said.extend(lines.0.lock().unwrap().iter().cloned());
    said.push(String::from_utf8(w.log.sink().clone()).unwrap());
    assert!(said.len() > 300);
    for text in &said {
        assert!(!text.contains(MARKER), "{text}");
    }
    // A log in which somebody wrote it is refused without quoting it.
    let tampered = format!("{{\"n\":1,\"body\":\"{MARKER}\"}}\n");
    let error = AuditLog::open(
        tampered.as_bytes(),
        tampered.clone().into_bytes(),
        Default::default(),
        Default::default(),
    )
    .map(drop)
    .unwrap_err();
    assert!(!format!("{error} {error:?}").contains(MARKER));
}

//! The zero-allocation promises of PERFORMANCE row 1 and of refusals (§2.6).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use fak_abi::{Act, Address, ChannelKey, Gate, Opinion, Reason, Site, Timestamp, ToolCall, ToolScope};
use fak_adjudicate::{
    AuditLog, AuditOptions, Budget, BudgetRung, Counters, Kernel, ManualClock, Policy, PolicyRung, Rank,
    RateLimit, RateOptions, RateRung,
};

use crate::support::{Says, attach, id};

fn allocations(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).count_total
}

/// §2.6: deciding allocates nothing, whether it allows or refuses.
#[test]
fn deciding_allocates_nothing() {
    let kernel = Kernel::builder()
        .rung(Rank(0), Arc::new(Says::new("yes", |_, _| Opinion::Allow)))
        .rung(
            Rank(1),
            Arc::new(Says::new("no", |_, _| Opinion::deny(Reason::PolicyBlock, Site::new("x"))).only("no")),
        )
        .build()
        .unwrap();
    let agent = attach(&kernel, "alpha");
    let body = agent.mint(&b"x"[..]);
    let (yes, no) = (kernel.tool(&id("yes")), kernel.tool(&id("no")));
    for tool in [&yes, &no] {
        let count = allocations(|| {
            for _ in 0..100 {
                let _ = std::hint::black_box(agent.decide(&ToolCall::new(&agent, tool).args(&body)));
            }
        });
        assert_eq!(count, 0, "{}", tool.name());
    }
    let count = allocations(|| {
        let _ = agent.decide(&ToolCall::new(&agent, Act::Send).args(&body));
    });
    assert_eq!(count, 0);
}

/// §2.6, §3.7, §3.8: nor do the rungs of this crate, once what they keep is warm; nor does the audit.
#[test]
fn the_rungs_of_this_crate_allocate_nothing() {
    let policy = "version = 1\n[[allow]]\ntool = \"yes\"\naddress = \"in_kernel:*\"\n\
                  [[allow]]\ntool = \"*a*d\"\n[[deny]]\ntool = \"no\"\n";
    let one = |burst| RateLimit { burst: NonZeroU32::new(burst).unwrap(), per: Duration::from_secs(3600) };
    let rate = RateOptions { principal: Some(one(1000)), address: Some(one(1)), ..RateOptions::default() };
    let budget =
        BudgetRung::new(ToolScope::only(["paid"])).each(Budget { calls: Some(1), ..Budget::default() });
    let (audit, mut log, _) =
        AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), AuditOptions::default()).unwrap();
    let kernel = Kernel::builder()
        .time(Arc::new(ManualClock::at(Timestamp::default())))
        .rung(Rank(0), Arc::new(PolicyRung::new(Policy::from_toml("p", policy).unwrap())))
        .rung(Rank(1), Arc::new(RateRung::new(RateOptions { tools: ToolScope::only(["rated"]), ..rate })))
        .rung(Rank(2), Arc::new(budget))
        .emitter(Counters::new())
        .audit(Arc::new(audit))
        .build()
        .unwrap();
    let agent = attach(&kernel, "alpha");
    let body = agent.mint(&b"x"[..]);
    let key: ChannelKey = "in_kernel:work".parse().unwrap();
    for name in ["yes", "no", "rated", "paid"] {
        let tool = kernel.tool(&id(name));
        let decide = || {
            for _ in 0..100 {
                let call = ToolCall::new(&agent, &tool).args(&body).address(Address::Channel(&key));
                let _ = std::hint::black_box(agent.decide(&call));
            }
        };
        // Twice, for the two lists that the audit fills in turn.
        for _ in 0..2 {
            decide();
            log.drain().unwrap();
        }
        assert_eq!(allocations(decide), 0, "{name}");
        log.drain().unwrap();
    }
}

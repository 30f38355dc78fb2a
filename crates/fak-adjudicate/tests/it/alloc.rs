//! The zero-allocation promises of PERFORMANCE row 1 and of refusals (§2.6).

use std::sync::Arc;

use fak_abi::{Act, Gate, Opinion, Reason, Site, ToolCall};
use fak_adjudicate::{Kernel, Rank};

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

//! Auto traits and sizes that others rely on.

use fak_abi::{AgentHandle, Id, OwnedCall, Principal, Ref, ToolCall, Verdict};

fn shared<T: Send + Sync + 'static>() {}

/// §2.3: handles are cheap to clone and `Send + Sync`.
#[test]
fn what_crosses_threads_does() {
    shared::<AgentHandle>();
    shared::<Ref>();
    shared::<Principal>();
    shared::<OwnedCall>();
    shared::<Verdict>();
    assert_eq!(size_of::<AgentHandle>(), size_of::<usize>());
    assert_eq!(size_of::<Ref>(), size_of::<usize>());
    assert_eq!(size_of::<Id>(), 2 * size_of::<usize>());
    assert!(size_of::<ToolCall<'_>>() <= 72);
}

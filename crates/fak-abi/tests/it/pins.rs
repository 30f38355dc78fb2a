//! Auto traits and sizes that others rely on.

use fak_abi::{AgentHandle, Id, Opinion, OwnedCall, Principal, Ref, Refusal, ToolCall, Verdict};

fn shared<T: Send + Sync + 'static>() {}

/// §2.3: handles are cheap to clone and `Send + Sync`.
#[test]
fn what_crosses_threads_does() {
    shared::<AgentHandle>();
    shared::<Ref>();
    shared::<Principal>();
    shared::<OwnedCall>();
    shared::<Verdict>();
}

/// What is moved on every act, in bytes. A number that fell may be lowered here; one that rose is a cost on every path.
#[cfg(target_pointer_width = "64")]
#[test]
fn what_is_on_the_hot_path_stays_small() {
    for (what, size, bytes) in [
        ("AgentHandle", size_of::<AgentHandle>(), 8),
        ("Ref", size_of::<Ref>(), 8),
        ("Id", size_of::<Id>(), 16),
        ("ToolCall", size_of::<ToolCall<'_>>(), 64),
        ("Verdict", size_of::<Verdict>(), 48),
        ("Refusal", size_of::<Refusal>(), 32),
        ("Opinion", size_of::<Opinion>(), 32),
    ] {
        assert_eq!(size, bytes, "{what}");
    }
}

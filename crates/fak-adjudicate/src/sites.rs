//! The kernel's own checks, by name, with the text that explains them (§2.6, §3.5).

use fak_abi::SiteInfo;

macro_rules! sites {
    ($( $name:ident = $check:literal, $clause:literal, $refuses:literal, $next:literal; )+) => {
        $( pub(crate) const $name: &SiteInfo = &SiteInfo { check: $check, clause: $clause, refuses: $refuses, next: $next }; )+
        /// Every check the kernel itself makes.
        pub const KERNEL_SITES: &[SiteInfo] = &[$(*$name),+];
    };
}

sites! {
    FOREIGN = "kernel/foreign", "§3.1",
        "an act by a handle of another kernel",
        "act through the kernel that the bus, store, space or arbiter was built into";
    DETACHED = "kernel/detached", "§2.3",
        "an act by a principal that was detached",
        "the host has ended this agent; attaching the id again makes a new incarnation";
    FOREIGN_TOOL = "kernel/foreign-tool", "§3.3",
        "a tool token of another kernel",
        "ask this kernel for its own token of that name";
    UNKNOWN_TOOL = "kernel/unknown-tool", "§3.3",
        "a tool that is not in the list the kernel was built with",
        "check the tool's name against the kernel's list";
    EXPIRED = "kernel/expired", "§2.5",
        "an act whose deadline has passed or that was cancelled",
        "it is no longer wanted; begin it anew if it is";
    EMPTY = "kernel/empty-policy", "§3.2",
        "an act that no rung concerns itself with",
        "register a rung that allows it, or build the layer that knows it into the kernel";
    ALL_DEFER = "kernel/all-defer", "§3.2",
        "an act on which every rung defers",
        "add a rung or rule that allows it";
    INDETERMINATE = "kernel/indeterminate", "§3.2",
        "an act that its rungs could not decide",
        "look at the rung named: what it needs to decide was missing";
    PANIC = "kernel/panic", "§3.2",
        "an act whose rung panicked",
        "a defect in the rung named; the event of kind panic says when";
    TWO_TRANSFORMS = "kernel/two-transforms", "§3.2",
        "an act that two rungs want to rewrite",
        "let at most one rung transform a tool's calls";
    TRANSFORM_LIMIT = "kernel/transform-limit", "§3.2",
        "a rewriting that lowers taint, widens scope or changes owner",
        "rewrite through the resolver, which keeps the provenance";
    QUARANTINE = "kernel/quarantine", "§3.2",
        "an act that a rung wants held before it happens",
        "the value is suspect: have it trusted by its owner, or do not use it";
    REFUTED = "kernel/refuted", "§3.4",
        "an act whose claim a witness refuted",
        "the claim does not hold; do not repeat it";
    UNWITNESSED = "kernel/unwitnessed", "§3.4",
        "an act whose claim nobody confirmed",
        "bring evidence that a registered witness can confirm";
    AUDIT_FULL = "audit/full", "§3.6",
        "an act for which the audit queue has no place",
        "wait for the log to drain";
    AUDIT_SHARE = "audit/share", "§4.12",
        "an act of a principal that fills its share of the audit queue",
        "wait for the log to drain; act less often";
    AUDIT_FAILED = "audit/failed", "§3.6",
        "an act while the audit log cannot be written, or after it was closed",
        "the host has to repair the log's disk, or is shutting down";
    PENDING_FULL = "kernel/pending", "§3.3",
        "a submission beyond the bound on pending calls",
        "reap or withdraw what was submitted before";
    CAPABILITY = "refs/capability", "§2.8",
        "an act on a Ref without its capability",
        "have the host grant ref.widen or ref.trust";
    NOT_OWNER = "refs/owner", "§2.4",
        "widening a value that is not one's own, or trusting it as neither owner nor human",
        "ask its owner, or a human";
    WIDEN_TARGET = "refs/target", "§2.4",
        "a widening to anything but a fleet or tenant the owner has, from scope agent",
        "widen a private value once, to fleet or tenant, as a member of it";
    WIDEN_LABEL = "refs/label", "§2.4",
        "widening or trusting a quarantined value, or widening one made of others' parts",
        "share the parts through their owners instead";
}

impl crate::Kernel {
    /// What is known of one of the kernel's own checks.
    #[must_use]
    pub fn site(check: &str) -> Option<&'static SiteInfo> {
        KERNEL_SITES.iter().find(|info| info.check == check)
    }
}

//! The one table of what this crate refuses: where in the protocol, and what to do about it.

use fak_abi::SiteInfo;

/// Declares the checks, each as a constant and as a line of the public table.
macro_rules! sites {
    ($( $name:ident = $check:literal, $clause:literal, $refuses:literal, $next:literal; )+) => {
        $( pub(crate) const $name: &SiteInfo = &SiteInfo { check: $check, clause: $clause, refuses: $refuses, next: $next }; )+

        /// Every check of this crate, for explain.
        pub const SITES: &[SiteInfo] = &[$(*$name),+];
    };
}

sites! {
    FOREIGN = "a2achan/foreign", "§4.3 row 0", "an act of a handle of another kernel",
        "use a handle that the kernel of this bus attached; a kernel has it by `.driver(bus.driver())`";
    DETACHED = "a2achan/detached", "§4.3 row 0", "an act of a principal that was detached",
        "the host has ended this agent; attach it again for a new incarnation";
    MALFORMED = "a2achan/malformed", "§4.3 row 1", "an address that is not locale:id",
        "name a channel as locale:id, where id is 1 to 256 bytes without control characters";
    NO_SEND = "a2achan/no-send", "§4.3 row 2", "a send without the capability a2a.send",
        "ask the host to grant a2a.send";
    NO_RECV = "a2achan/no-recv", "§4.4", "a receive without the capability a2a.recv",
        "ask the host to grant a2a.recv";
    HELD_UNREADABLE = "a2achan/held-unreadable", "§4.4", "reading a held body that may not flow to the reader",
        "leave it to a holder of forensics.read that it may flow to";
    QUARANTINED = "a2achan/quarantined", "§4.3 row 3", "a quarantined body",
        "do not pass it on; a holder of forensics.read can inspect it";
    NOT_YOURS_TO_SEND = "a2achan/unreadable", "§4.3 row 4", "a body that the sender itself may not read",
        "send only what may flow to you";
    PRIVATE = "a2achan/private", "§4.3 row 5", "a private body sent beyond its owner",
        "widen it to a fleet or tenant that sender and receiver share (ref.widen), then send the result";
    OVERSIZE = "a2achan/oversize", "§4.3 row 6", "an inline body above the bus limit",
        "send less, or put it into the pool and send that Ref";
    UNREADABLE = "a2achan/binder", "§4.3 row 8", "a body that may not flow to whoever bound the key",
        "widen it to a fleet or tenant that the receiver has";
    UNDECLARED = "a2achan/undeclared", "§4.3 row 9", "a name that nobody opened, bound, subscribed to or is called",
        "check the name";
    FULL = "a2achan/full", "§4.3 row 10", "a send to a full mailbox",
        "wait until there is room (ready), or read what is queued";
    SHARE = "a2achan/share", "§4.12", "one sender filling a mailbox that others need",
        "wait until your messages there are read";
    BYTES = "a2achan/bytes", "§4.12", "more queued bytes than one principal may have",
        "wait until your messages are read";
    MOVED = "a2achan/moved", "§4.6", "a send to a key that changed hands while the act was decided",
        "send again";
    CLOSED = "a2achan/closed", "§4.11", "an act on a bus that was closed, or on an inbox that ended",
        "nothing comes through here any more";
    ONLY_OTHERS = "a2achan/only-others", "§4.4", "a receive where only messages for others are queued",
        "wait for one that may flow to you, or have its scope widened by its owner";
    NO_EDGE = "a2achan/no-edge", "§6.9", "a receive where only messages without an edge to you are queued",
        "receive from your in-neighbours of the topology";
    NOT_RECEIVER = "a2achan/not-receiver", "§4.6", "a receive on a key that is somebody else's",
        "receive on a key of your own, or on one that is free";
    MAILBOXES = "a2achan/mailboxes", "§4.12", "more mailboxes than one principal may make",
        "use the keys that exist";
    WAITS = "a2achan/waits", "§4.12", "more waiting receives than one principal may have",
        "end some of your waits";
    SUBSCRIPTIONS = "a2achan/subscriptions", "§4.12", "more subscriptions than one principal may have",
        "end some of your subscriptions";
    LEASES = "a2achan/leases", "§4.12", "more leased messages than one principal may have",
        "acknowledge or drop some of them";
    REQUESTS = "a2achan/requests", "§4.12", "more open requests than one principal may have",
        "wait for some of the answers";
    WINDOWS = "a2achan/windows", "§4.12", "more windows than one principal may have",
        "resume some of them";
    BIND_HELD = "a2achan/bind-held", "§4.6", "binding a key that another has bound",
        "wait until it is unbound, or bind another key";
    BIND_RESERVED = "a2achan/bind-reserved", "§4.6", "binding a key that is reserved for another",
        "bind a key of your own";
    BIND_WAITING = "a2achan/bind-waiting", "§4.6", "binding a key where another principal waits",
        "bind another key";
    UNBIND_FREE = "a2achan/unbind-free", "§4.6", "unbinding a key that nobody has bound",
        "nothing is left to do";
    UNBIND_OTHER = "a2achan/unbind-other", "§4.6", "unbinding a key that another has bound",
        "only its binder, or detaching that, frees it";
    ACT_ONLY = "a2achan/act-only", "§4.9", "anything but the act it is for in a correction, ack or status inbox",
        "use status, correct or ack";
    KEY_REUSED = "a2achan/key-reused", "§4.13", "an idempotency key with another act, address, scope or content",
        "use a fresh key for a new message";
    LEASE_OVER = "a2achan/lease-over", "§4.4", "acknowledging or answering a message that went back to its queue",
        "receive it again";
    NOT_A_REQUEST = "a2achan/no-request", "§4.7", "a reply to what is not an open request",
        "reply once, to a message that is a request";
    NOT_YOUR_REQUEST = "a2achan/request-other", "§4.7", "a reply to a request that another received",
        "only its receiver may reply";
    REPLY_UNREADABLE = "a2achan/reply-unreadable", "§4.3 row 8", "a reply that may not flow to the requester",
        "widen it to a fleet or tenant that the requester has";
    AWAIT_SPENT = "a2achan/await-spent", "§4.7", "waiting again for an answer that was taken",
        "ask again";
    RING = "a2achan/ring", "§4.7", "a blocking request that would close a ring of them, made or received",
        "answer what was asked of you first, or ask without blocking";
    WINDOW_UNKNOWN = "a2achan/window-unknown", "§4.8", "a window that was never minted, or was resumed",
        "resume a window once, by the id that compacting gave";
    WINDOW_OTHER = "a2achan/window-other", "§4.8", "a window that another principal minted",
        "only the principal that compacted may resume";
    RANDOM = "a2achan/random", "§4.8", "compacting without a source of randomness",
        "wait until the system has one";
    STATUS_MALFORMED = "a2achan/status-malformed", "§4.9", "a status with a blank worker or lane, or no positive issue or seq",
        "fill in worker, lane, issue and seq";
    STATUS_OTHER = "a2achan/status-other", "§4.9", "a status posted for another worker",
        "post only your own status";
    STATUS_STALE = "a2achan/status-stale", "§4.9", "a status whose seq does not rise",
        "raise the seq with every status";
    CORRECTION_MALFORMED = "a2achan/correction-malformed", "§4.9", "a correction with a blank or unfitting member",
        "fill in orchestrator, worker, lane and message, and a positive issue";
    CORRECTION_OVERSIZE = "a2achan/correction-oversize", "§4.9", "a correction above its ceiling of bytes",
        "shorten the message; a request may lower the ceiling, never raise it";
    CORRECTION_UNWITNESSED = "a2achan/correction-unwitnessed", "§4.9", "a correction that cites no live status",
        "cite the digest of the worker's current status";
    CORRECTION_SCOPE = "a2achan/correction-scope", "§4.9", "a correction whose worker, issue, task or lane is not the status's",
        "correct only the work that the status describes";
    CORRECTION_OTHER = "a2achan/correction-other", "§4.9", "a correction in another orchestrator's name",
        "name yourself as the orchestrator";
    CORRECTION_APART = "a2achan/correction-apart", "§4.9", "a correction between sides that share neither fleet nor tenant",
        "correct only workers of your fleet or tenant";
    CORRECTION_ALTERED = "a2achan/correction-altered", "§4.9", "a correction whose text does not give its id",
        "ask the orchestrator to correct again";
    CORRECTION_STALE = "a2achan/correction-stale", "§4.9", "a correction that was replayed, superseded, or cites a past status",
        "act only on the newest correction of your current status";
    ACK_OTHER = "a2achan/ack-other", "§4.9", "an acknowledgement of a correction made to another worker",
        "acknowledge only what was corrected in you";
    OBSERVE_NONE = "a2achan/observe", "§4.9", "an observation that was not both acknowledged and reflected",
        "wait for the worker's acknowledgement";
    OBSERVE_OTHER = "a2achan/observe-other", "§4.9", "observing a correction of another orchestrator",
        "observe only your own corrections";
    MEMBER_GONE = "a2achan/member", "§6.3", "a hand-over to a member that is not attached",
        "attach the member first, or leave it out of the group";
    MEMBER_UNREADABLE = "a2achan/member-unreadable", "§6.3", "a hand-over that may not flow to the member",
        "widen it to a fleet or tenant that every member has";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_have_names_of_their_own() {
        let mut names: Vec<_> = SITES.iter().map(|site| site.check).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SITES.len());
    }
}

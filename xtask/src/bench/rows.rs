//! The rows of docs/performance.md as data: which benchmark is compared with which, and how far apart they may be. A group holds
//! the subject and its rival, so that both are measured in one run.

use super::comparison::{Bench, Comparison};

/// How many rows docs/performance.md has; one without a comparison here is not measured, and says so.
pub(super) const LAST: u32 = 19;

const DECIDE: Bench = Bench { package: "fak-adjudicate", bench: "decide" };
const POLICY: Bench = Bench { package: "fak-adjudicate", bench: "policy" };
const CHANNELS: Bench = Bench { package: "fak-a2achan", bench: "channels" };
const RECORD: Bench = Bench { package: "fak-sharedtask", bench: "record" };
const WAVES: Bench = Bench { package: "fak-comm", bench: "waves" };
const DECLARE: Bench = Bench { package: "fak-agenttopo", bench: "declare" };
const AUDIT: Bench = Bench { package: "fak-a2achan", bench: "audit" };
const START: Bench = Bench { package: "fak-cli", bench: "start" };

/// Every comparison, by row.
pub(super) const ROWS: &[Comparison] = &[
    DECIDE.row(1, "decide, 1 rung", "row1_decide_1").costs("decide", "bare", 2.5),
    DECIDE.row(1, "decide, 8 rungs", "row1_decide_8").costs("decide", "bare", 2.5),
    DECIDE.row(2, "decide, 1,000 rungs for other tools", "row2_scoped_elsewhere").costs(
        "elsewhere_1000",
        "elsewhere_0",
        1.1,
    ),
    DECIDE.row(3, "decide on 2 threads", "row3_threads").carries("threads_2", "threads_1", 2.0, 1.8),
    CHANNELS
        .row(4, "send without the capability", "row4_refusals")
        .costs("no_capability", "decide_1", 1.5)
        .beside("floor_no_capability"),
    CHANNELS
        .row(4, "send of a private body", "row4_refusals")
        .costs("private_body", "decide_1", 1.5)
        .beside("floor_private_body"),
    CHANNELS.row(5, "send and try_recv", "row5_send_try_recv").costs("gated", "tokio", 0.95).beside_floor(),
    CHANNELS
        .row(6, "ping-pong, one thread", "row6_ping_pong_current")
        .costs("gated", "tokio", 0.85)
        .beside_floor(),
    CHANNELS
        .row(6, "ping-pong, 2 workers", "row6_ping_pong_workers")
        .costs("gated", "tokio", 0.85)
        .beside_floor(),
    CHANNELS
        .row(7, "4 senders, capacity 1,024", "row7_fan_in_1024")
        .costs("gated", "tokio", 0.75)
        .beside_floor()
        .across_cores(),
    CHANNELS
        .row(7, "4 senders, capacity 64", "row7_fan_in_64")
        .costs("gated", "tokio", 1.05)
        .beside_floor()
        .across_cores(),
    CHANNELS
        .row(8, "send by key, 1,000 channels", "row8_by_key")
        .costs("by_key", "cached", 1.2)
        .beside_floor(),
    CHANNELS.row(9, "1,000 idle, one thread", "row9_idle_receivers_current").costs(
        "idle/1000",
        "idle/0",
        1.1,
    ),
    CHANNELS.row(9, "1,000 idle, 2 workers", "row9_idle_receivers_workers").costs("idle/1000", "idle/0", 1.1),
    CHANNELS
        .row(10, "publish and drain, 100 subscribers", "row10_publish")
        .costs("gated", "tokio", 0.9)
        .beside_floor(),
    CHANNELS
        .row(10, "the same, 16 copies a drain", "row10_publish_burst")
        .costs("gated", "tokio", 0.9)
        .beside_floor(),
    CHANNELS
        .row(11, "request, one thread", "row11_request_reply_current")
        .costs("gated", "tokio", 0.9)
        .beside_floor(),
    CHANNELS
        .row(11, "request, 2 workers", "row11_request_reply_workers")
        .costs("gated", "tokio", 0.9)
        .beside_floor(),
    POLICY.row(12, "policy of 10 rules", "row12_policy").costs("rules_10", "one_rung", 4.0).beside_floor(),
    POLICY.row(12, "and 1,000 for other tools", "row12_policy").costs("elsewhere_1000", "rules_10", 1.1),
    RECORD.row(13, "append at 10,000 notes", "record_append").costs("note/10000", "note/10", 2.0),
    RECORD.row(13, "against encoding and hashing", "record_append").costs(
        "note/10000",
        "serialise_and_hash/10000",
        0.002,
    ),
    RECORD.row(15, "view of 10,000 notes", "record_view").costs("view/10000", "clone_counted/10000", 1.5),
    RECORD.row(16, "verify a journal, against SHA-256", "record_verify").carries(
        "journal/1000",
        "sha256/1000",
        1.0,
        0.12,
    ),
    WAVES.row(17, "group of 100,000", "row17_group_100000").costs("group", "sort", 2.0),
    WAVES.row(17, "barrier of 1,000", "row17_barrier_1000").takes("barrier", 1_000.0, "ns a rank", 3_000.0),
    DECLARE
        .row(17, "declare 20,000 nodes, 100,000 edges", "row17_declare_100000")
        .costs("declare", "petgraph", 3.0),
    DECLARE.row(17, "the same, by rank", "row17_declare_ranks_100000").costs("declare", "petgraph", 3.0),
    AUDIT.row(18, "send and try_recv, audit on", "row18_audit").costs("on", "off", 3.0).beside_floor(),
    START.row(19, "start to the first verdict", "row19_start").takes("first_verdict", 1e6, "ms", 20.0),
];

/// A row that is about memory: weighed by `cargo xtask memory`'s program, and held by a test as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighed {
    pub(super) row: u32,
    pub(super) what: &'static str,
    pub(super) weight: Weight,
    /// In MiB.
    pub(super) at_most: f64,
}

/// What is weighed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weight {
    /// What a thing keeps alive.
    Thing(&'static str),
    /// What a process that verifies a large journal has resident.
    Verifying,
}

/// Every row about memory.
pub(super) const WEIGHED: &[Weighed] = &[
    Weighed {
        row: 14,
        what: "live memory after 2,000 notes",
        weight: Weight::Thing("2000-notes"),
        at_most: 8.0,
    },
    Weighed { row: 16, what: "peak of verifying it, resident", weight: Weight::Verifying, at_most: 64.0 },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order() {
        assert!(ROWS.is_sorted_by_key(|comparison| comparison.row));
        assert!(ROWS.iter().all(|comparison| (1..=LAST).contains(&comparison.row)));
    }
}

//! The word that was meant: a known one written a little wrong, or another word for the same thing. Edit distance finds the
//! first kind; the second needs a table of what the field calls what is called otherwise here.

use fak_abi::json::nearest;

/// The most known words that one is compared with.
pub(crate) const COMPARED: usize = 500;

/// A word of this format, and what it is elsewhere called. Only words that are known where the wrong one stands are ever
/// suggested, so one word may stand in several rows: the first row that fits is taken.
const ALIKE: &[(&str, &[&str])] = &[
    // Members of a scenario and of its agents.
    (
        "caps",
        &["capabilities", "capability", "permissions", "permission", "rights", "grants", "can", "scopes"],
    ),
    ("agents", &["actors", "principals", "participants", "workers", "nodes"]),
    ("steps", &["acts", "actions", "script", "sequence", "events", "flow", "plan", "tests", "commands"]),
    ("about", &["description", "comment", "doc", "docs", "summary", "note"]),
    ("name", &["title", "id"]),
    ("schema", &["$schema", "version", "format", "kind", "type"]),
    ("policy", &["rules", "policies", "acl", "allow", "deny"]),
    ("limits", &["config", "options", "settings", "bounds", "quotas"]),
    ("topology", &["graph", "edges"]),
    ("tasks", &["records", "task"]),
    ("store", &["record_store", "database"]),
    ("clock", &["time", "now", "start", "date"]),
    ("fleet", &["team", "group", "crew", "squad"]),
    ("tenant", &["org", "organisation", "organization", "company", "customer", "account"]),
    ("trace_id", &["session", "session_id"]),
    ("kind", &["type", "role"]),
    ("mailbox_capacity", &["capacity", "queue_size", "mailbox_size"]),
    ("max_body_bytes", &["max_bytes", "max_size", "body_size"]),
    // Members of steps.
    ("do", &["act", "action", "op", "verb", "method", "type", "command"]),
    ("by", &["agent", "actor", "who", "sender", "from", "principal", "user", "receiver"]),
    ("at", &["from", "channel", "key", "mailbox", "address", "queue", "to", "topic", "on", "source"]),
    (
        "to",
        &[
            "channel",
            "key",
            "mailbox",
            "address",
            "queue",
            "at",
            "topic",
            "dest",
            "destination",
            "target",
            "recipient",
        ],
    ),
    ("topic", &["channel", "key", "to", "at", "subject", "address"]),
    ("body", &["message", "payload", "content", "data", "msg", "text", "value"]),
    ("text", &["message", "payload", "content", "data", "value", "string"]),
    ("expect", &["expected", "expects", "assert", "should", "want", "then", "verdict", "reason", "result"]),
    ("as", &["name", "id", "alias", "handle"]),
    ("save", &["store", "keep", "as", "into"]),
    ("to_request", &["to", "request", "reply_to", "in_reply_to", "message", "of"]),
    ("ref", &["saved", "value", "name", "reference"]),
    ("ttl_ms", &["ttl", "timeout", "expires", "lifetime", "timeout_ms", "duration"]),
    ("deadline_ms", &["deadline", "timeout", "timeout_ms", "ttl"]),
    ("ms", &["millis", "milliseconds", "duration", "time", "seconds"]),
    ("record", &["task", "body"]),
    ("task", &["task_id", "id", "record"]),
    ("group", &["name", "to", "members"]),
    ("colours", &["colors", "color", "colour"]),
    ("tree", &["paths", "globs", "path", "files"]),
    ("owner", &["by", "author", "maker"]),
    ("inbox", &["subscription", "as", "from"]),
    // What `expect` may have.
    ("verdict", &["result", "outcome", "status", "answer", "decision", "allowed", "ok", "act"]),
    ("reason", &["why", "because", "cause", "code", "error"]),
    ("at", &["check", "site", "where"]),
    ("rung", &["by", "gate", "decider", "decided_by", "layer"]),
    ("from", &["sender", "by"]),
    ("taint", &["label", "trust", "trusted"]),
    ("scope", &["visibility", "share", "audience", "to", "with"]),
    ("of", &["act", "what", "step"]),
    // Acts.
    ("recv", &["receive", "take", "pop", "poll", "listen", "fetch", "pull", "dequeue"]),
    ("send", &["post", "tell", "emit", "push", "enqueue", "message", "put_message"]),
    ("publish", &["pub", "emit", "announce", "notify"]),
    ("subscribe", &["sub", "join", "follow"]),
    ("unsubscribe", &["unsub", "leave"]),
    ("consume", &["acknowledge", "confirm", "done"]),
    ("drop", &["nack", "requeue"]),
    ("request", &["ask", "rpc"]),
    ("reply", &["respond", "answer", "response"]),
    ("widen", &["share", "promote", "expose"]),
    ("tick", &["wait", "sleep", "advance", "delay", "pause"]),
    ("patch", &["update", "edit", "apply", "propose", "change", "modify"]),
    ("create", &["new", "add", "create_task", "new_task"]),
    ("put", &["write", "set", "store"]),
    ("get", &["read_cell", "lookup", "load_cell"]),
    ("cas", &["compare_and_swap", "compare_and_set", "swap"]),
    ("delete", &["remove", "del", "unset"]),
    ("list", &["keys", "ls", "scan"]),
    ("lease", &["lock", "acquire", "claim", "reserve"]),
    ("release", &["unlock", "free"]),
    ("who", &["whoami", "agents", "peers"]),
    ("detach", &["stop", "kill", "remove_agent", "disconnect"]),
    ("attach", &["start", "spawn", "connect", "add_agent"]),
    ("view", &["show", "read_task", "inspect"]),
    // Words that are answered.
    (
        "deny",
        &[
            "denied",
            "refuse",
            "refused",
            "reject",
            "rejected",
            "block",
            "blocked",
            "forbid",
            "forbidden",
            "fail",
            "error",
        ],
    ),
    (
        "allow",
        &[
            "allowed",
            "accept",
            "accepted",
            "permit",
            "permitted",
            "ok",
            "pass",
            "success",
            "granted",
            "yes",
            "true",
        ],
    ),
    ("accepted", &["accept", "allow", "allowed", "ok", "merged", "applied", "success", "done"]),
    ("denied", &["refused", "rejected", "reject"]),
    ("conflict", &["conflicts", "conflicted", "stale"]),
    ("needs_approval", &["approval", "pending", "approve", "waiting"]),
    ("quarantine", &["held", "hold", "quarantined"]),
    ("quarantined", &["quarantine", "held", "hold"]),
    ("empty", &["none", "nothing", "null", "no_message", "missing"]),
    ("tainted", &["untrusted", "dirty", "unsafe"]),
    ("trusted", &["clean", "safe"]),
    ("agent", &["private", "self", "own", "bot", "ai", "llm", "assistant", "local"]),
    ("human", &["person", "user", "operator"]),
    ("fleet", &["shared"]),
    ("public", &["all", "global", "everyone", "world", "any"]),
    (
        "DEFAULT_DENY",
        &[
            "deny",
            "denied",
            "not_allowed",
            "no_capability",
            "forbidden",
            "unauthorized",
            "missing_capability",
        ],
    ),
    ("POLICY_BLOCK", &["policy", "blocked", "policy_deny", "policy_denied", "policy_violation"]),
    ("TRUST_VIOLATION", &["private", "flow", "scope", "trust", "taint", "tainted", "quarantined"]),
    (
        "RATE_LIMITED",
        &["full", "throttled", "too_many", "busy", "quota", "backpressure", "mailbox_full", "rate_limit"],
    ),
    ("MISROUTE", &["not_found", "no_such_channel", "unknown_channel", "unroutable", "undeclared"]),
    ("LEASE_HELD", &["locked", "held", "lock_held"]),
    ("OVERSIZE", &["too_large", "too_big", "size"]),
    ("MALFORMED", &["invalid", "bad_request", "syntax"]),
    ("UNWITNESSED", &["no_witness", "unproven"]),
    ("STALE_BASE", &["conflict", "stale"]),
    // What a capability covers that has no name of its own.
    (
        "a2a.send",
        &["send", "publish", "request", "reply", "a2a.publish", "a2a.request", "a2a.reply", "write"],
    ),
    ("a2a.recv", &["recv", "receive", "subscribe", "read", "a2a.receive", "a2a.subscribe", "a2a.read"]),
    ("ref.widen", &["widen", "share", "ref.share"]),
    ("ref.trust", &["trust"]),
    ("sharedtask.write", &["patch", "create", "task.write", "sharedtask.patch", "sharedtask.create"]),
    ("sharedtask.read", &["view", "task.read", "sharedtask.view"]),
    ("sharedtask.approve", &["approve", "reject", "task.approve"]),
    ("comm.collective", &["broadcast", "scatter", "gather", "barrier", "comm.broadcast", "a2a.broadcast"]),
    ("lane.lease", &["lease", "lock", "lanes.lease"]),
    ("forensics.read", &["held", "forensics", "a2a.held"]),
    ("space.write", &["put", "cas", "delete", "space.put"]),
    ("space.read", &["get", "list", "space.get"]),
    // Locales.
    ("in_kernel", &["memory", "kernel", "local", "inproc", "in_process", "process", "channel"]),
];

/// The known word that `said` was meant to be, if there is one: another word for it, or the nearest spelling. Of names in parts
/// (`a2a.send`, `policy/deny`) the last part alone will do. Cost: the table, and the product of the lengths per known name.
///
/// ```
/// use fak_scenario::meant;
/// assert_eq!(meant("receive", ["send", "recv"]), Some("recv"));
/// assert_eq!(meant("capabilites", ["caps"]), None);
/// assert_eq!(meant("boddy", ["address", "body"]), Some("body"));
/// assert_eq!(meant("private", ["a2achan/private", "a2achan/no-send"]), Some("a2achan/private"));
/// ```
///
/// Only the first few hundred known words are compared (§8).
#[must_use]
pub fn meant<'k>(said: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known: Vec<&'k str> = known.into_iter().take(COMPARED).collect();
    same(said, &known)
        .or_else(|| alike(said, &known))
        .or_else(|| nearest(said, known.iter().copied()))
        .or_else(|| by_last_part(said, &known))
}

/// The known word that `said` is another word for, or is but for case; not one that is merely spelt alike.
pub(crate) fn called<'k>(said: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known: Vec<&'k str> = known.into_iter().collect();
    same(said, &known).or_else(|| alike(said, &known))
}

/// The same but for case and for `-` or a blank where `_` stands.
fn same<'k>(said: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let said = plain(said);
    known.iter().copied().find(|word| plain(word) == said)
}

/// Another word for it.
fn alike<'k>(said: &str, known: &[&'k str]) -> Option<&'k str> {
    let said = said.to_lowercase().replace(['-', ' '], "_");
    let rows = ALIKE.iter().filter(|(_, others)| others.contains(&&*said));
    rows.filter_map(|(word, _)| known.iter().copied().find(|known| known == word)).next()
}

/// The last part of a name in parts, spelt right or nearly so.
fn by_last_part<'k>(said: &str, known: &[&'k str]) -> Option<&'k str> {
    let last = |name: &'k str| name.rsplit(['.', '/']).next().unwrap_or(name);
    let parts: Vec<&'k str> = known.iter().copied().filter(|name| name.contains(['.', '/'])).collect();
    let said = said.rsplit(['.', '/']).next().unwrap_or(said);
    let near = nearest(said, parts.iter().map(|name| last(name)))?;
    parts.into_iter().find(|name| last(name) == near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_word_counts_before_a_near_one() {
        // One edit from "do", but a channel of another name.
        assert_eq!(meant("to", ["do", "by", "topic"]), Some("topic"));
        assert_eq!(meant("capabilities", ["kind", "caps"]), Some("caps"));
        assert_eq!(meant("denied", ["allow", "deny"]), Some("deny"));
        assert_eq!(meant("denied", ["accepted", "denied", "deny"]), Some("denied"));
        assert_eq!(meant("Key", ["do", "to"]), Some("to"));
    }

    #[test]
    fn a_part_of_a_name_will_do() {
        assert_eq!(meant("widen", ["a2a.send", "ref.widen"]), Some("ref.widen"));
        assert_eq!(meant("a2achan/privat", ["a2achan/private"]), Some("a2achan/private"));
        assert_eq!(meant("privat", ["a2achan/private"]), Some("a2achan/private"));
        assert_eq!(meant("zebra", ["a2achan/private", "ref.widen", "do"]), None);
    }

    /// A row suggests only a word that is known: every word of the table is one of the format's own.
    #[test]
    fn the_table_holds_words_of_the_format() {
        use crate::act::ACTS;
        let mut known: Vec<&str> = crate::parse::members_of_parts();
        for act in ACTS {
            known.extend(["do", "by", "expect", "save", act.name]);
            known.extend(act.arguments);
            for (name, kind) in act.expect {
                known.push(name);
                if let crate::act::Kind::Word(words) = kind {
                    known.extend(*words);
                }
            }
        }
        known.extend(fak_abi::Capability::ALL.iter().map(|cap| cap.name()));
        known.extend(fak_abi::PrincipalKind::ALL.iter().map(|kind| kind.name()));
        known.extend(fak_abi::Locale::ALL.iter().map(|locale| locale.name()));
        let strange: Vec<_> =
            ALIKE.iter().map(|(word, _)| *word).filter(|word| !known.contains(word)).collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
}

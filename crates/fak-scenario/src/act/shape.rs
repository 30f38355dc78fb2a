//! The table of acts: what each may be told and what it may be asked to answer. Parsing, the nearest-name suggestions and the
//! checks of `expect` all read this one table.

/// What kind of answer a member of `expect` states.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One of a closed set of words.
    Word(&'static [&'static str]),
    /// The name of a check; of one with instances, the check or one instance (`policy/deny`, `policy/deny#2`).
    Check,
    /// The name of a rung.
    Rung,
    /// An exact text.
    Text,
    /// A text the answer contains.
    Contains,
    /// A whole number.
    Count,
    /// True or false.
    Flag,
    /// A list of texts, in order.
    List,
    /// Any JSON; of an object only the members listed are compared.
    Json,
}

/// Whether an act names who performs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// It must: the act is an agent's.
    Agent,
    /// It may: without `by` it is the host's.
    Either,
    /// It may not: the act is the host's.
    Host,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct ActShape {
    /// The value of `do`.
    pub(crate) name: &'static str,
    /// Whether it takes `by`.
    pub(crate) by: By,
    /// Its arguments, without `do`, `by`, `save` and `expect`.
    pub(crate) arguments: &'static [&'static str],
    /// Whether what it yields can be kept with `save`.
    pub(crate) save: bool,
    /// What `expect` may have.
    pub(crate) expect: &'static [(&'static str, Kind)],
}

const VERDICTS: Kind =
    Kind::Word(&["allow", "deny", "transform", "quarantine", "require_witness", "defer", "indeterminate"]);
const RECEIVED: Kind = Kind::Word(&["allow", "deny", "quarantine", "empty"]);
/// How a merge ended; of an act that was refused, that.
const MERGED: Kind =
    Kind::Word(&["accepted", "conflict", "quarantined", "denied", "needs_approval", "deny", "quarantine"]);
const REASONS: Kind = Kind::Word(&CORE_REASONS);
const MERGE_REASONS: Kind = Kind::Word(&MERGED_AS);
const TAINTS: Kind = Kind::Word(&["trusted", "tainted", "quarantined"]);
const SCOPES: Kind = Kind::Word(&["agent", "fleet", "tenant", "public"]);

/// The reasons of a refusal, and those a merge ends with (§5.4), by name.
pub(crate) const MERGED_AS: [&str; 24] = [
    "DEFAULT_DENY",
    "POLICY_BLOCK",
    "SELF_MODIFY",
    "LEASE_HELD",
    "TRUST_VIOLATION",
    "MALFORMED",
    "MISROUTE",
    "RATE_LIMITED",
    "SECRET_EXFIL",
    "UNWITNESSED",
    "OVERSIZE",
    "UNKNOWN_TOOL",
    "STALE_BASE",
    "MISSING_DECISION",
    "DUPLICATE_NOTE",
    "DUPLICATE_ARTIFACT",
    "DUPLICATE_DECISION",
    "ARTIFACT_QUARANTINED",
    "ARTIFACT_WITNESS_MISSING",
    "BODY_QUARANTINED",
    "BODY_WITNESS_MISSING",
    "SCOPE_WIDEN_FORBIDDEN",
    "UNSUPPORTED_PATCH",
    "APPROVAL_REQUIRED",
];

/// The twelve reasons of §2.7 by name.
pub(crate) const CORE_REASONS: [&str; 12] = [
    "DEFAULT_DENY",
    "POLICY_BLOCK",
    "SELF_MODIFY",
    "LEASE_HELD",
    "TRUST_VIOLATION",
    "MALFORMED",
    "MISROUTE",
    "RATE_LIMITED",
    "SECRET_EXFIL",
    "UNWITNESSED",
    "OVERSIZE",
    "UNKNOWN_TOOL",
];

type Members = &'static [(&'static str, Kind)];

const V: (&str, Kind) = ("verdict", VERDICTS);
const R: (&str, Kind) = ("reason", REASONS);
/// Who decided, and which check refused.
const G: (&str, Kind) = ("rung", Kind::Rung);
const A: (&str, Kind) = ("at", Kind::Check);
/// What the host does, which nobody decides.
const HOSTED: Members = &[V, R];
const PLAIN: Members = &[V, R, G, A];
const CALLED: Members = &[V, R, G, A, ("retry_after", Kind::Count)];
const RECV: Members = &[
    ("verdict", RECEIVED),
    R,
    G,
    A,
    ("text", Kind::Text),
    ("taint", TAINTS),
    ("scope", SCOPES),
    ("from", Kind::Text),
    ("missed", Kind::Count),
];
const TEXT: Members = &[V, R, G, A, ("text", Kind::Text)];
const AWAIT: Members =
    &[("verdict", RECEIVED), R, G, A, ("text", Kind::Text), ("empty", Kind::Flag), ("timeout", Kind::Flag)];
const HOST: Members = &[V, R, ("ok", Kind::Flag), ("error", Kind::Contains)];
const MERGE: Members = &[
    ("act", VERDICTS),
    ("verdict", MERGED),
    ("reason", MERGE_REASONS),
    G,
    A,
    ("conflict", Kind::Json),
    ("revision", Kind::Count),
    ("decision", Kind::Text),
];
const CELL: Members = &[
    V,
    R,
    G,
    A,
    ("version", Kind::Count),
    ("text", Kind::Text),
    ("taint", TAINTS),
    ("scope", SCOPES),
    ("conflict", Kind::Json),
    ("keys", Kind::List),
    ("empty", Kind::Flag),
];
const COLLECTIVE: Members = &[
    V,
    R,
    G,
    A,
    ("rank", Kind::Count),
    ("output", Kind::Text),
    ("winner", Kind::Text),
    ("tally", Kind::Json),
    ("delivered", Kind::Count),
    ("taint", TAINTS),
    ("scope", SCOPES),
    ("error", Kind::Contains),
];
const BARRIER: Members =
    &[V, R, G, A, ("complete", Kind::Flag), ("missing", Kind::List), ("gone", Kind::List)];
const LEASE: Members = &[V, R, G, A, ("conflicts", Kind::List), ("fence", Kind::Count)];

const fn act(
    name: &'static str,
    by: By,
    arguments: &'static [&'static str],
    save: bool,
    expect: Members,
) -> ActShape {
    ActShape { name, by, arguments, save, expect }
}

const KEEPS: bool = true;
const DROPS: bool = false;

/// Every act, as the table of the scenario format has them.
pub(crate) static ACTS: &[ActShape] = &[
    act("send", By::Agent, &["to", "body", "key", "ttl_ms"], DROPS, CALLED),
    act("recv", By::Agent, &["at", "inbox"], KEEPS, RECV),
    act("recv_leased", By::Agent, &["at", "inbox", "as", "deadline_ms"], KEEPS, RECV),
    act("consume", By::Either, &["as"], DROPS, PLAIN),
    act("drop", By::Either, &["as"], DROPS, PLAIN),
    act(
        "publish",
        By::Agent,
        &["topic", "body"],
        DROPS,
        &[V, R, G, A, ("fanout", Kind::Count), ("skipped", Kind::Count), ("dropped", Kind::Count)],
    ),
    act("subscribe", By::Agent, &["topic", "as"], DROPS, PLAIN),
    act("unsubscribe", By::Either, &["inbox"], DROPS, PLAIN),
    act("open", By::Host, &["at"], DROPS, HOSTED),
    act("bind", By::Agent, &["at"], DROPS, PLAIN),
    act("unbind", By::Agent, &["at"], DROPS, PLAIN),
    act("request", By::Agent, &["to", "body", "as", "blocking", "deadline_ms"], DROPS, AWAIT),
    act("reply", By::Agent, &["to_request", "body"], DROPS, AWAIT),
    act("await", By::Either, &["as"], KEEPS, AWAIT),
    act("widen", By::Agent, &["body", "ref", "scope"], KEEPS, PLAIN),
    act("trust", By::Agent, &["body", "ref", "evidence"], KEEPS, PLAIN),
    act("read", By::Agent, &["ref"], DROPS, TEXT),
    act("pool_put", By::Agent, &["body"], KEEPS, &[V, R, G, A, ("taint", TAINTS), ("text", Kind::Text)]),
    act("pool_get", By::Agent, &["text"], KEEPS, &[V, R, G, A, ("taint", TAINTS), ("text", Kind::Text)]),
    act("compact", By::Agent, &["body", "as"], DROPS, TEXT),
    act("resume", By::Agent, &["window"], KEEPS, TEXT),
    act("status", By::Agent, &["status"], DROPS, PLAIN),
    act("correct", By::Agent, &["request", "as"], DROPS, PLAIN),
    act("receive_correction", By::Agent, &["as"], DROPS, PLAIN),
    act("ack", By::Agent, &["action", "as"], DROPS, PLAIN),
    act("observe", By::Agent, &["as"], DROPS, PLAIN),
    act("call", By::Agent, &["tool", "args", "meta", "address"], KEEPS, CALLED),
    act("explain", By::Host, &["of"], DROPS, &[V, R, G, A, ("rungs", Kind::Json), ("hint", Kind::Contains)]),
    act("detach", By::Host, &["agent"], DROPS, HOST),
    act("attach", By::Host, &["agent"], DROPS, HOST),
    act("who", By::Agent, &[], DROPS, &[V, R, G, A, ("agents", Kind::List)]),
    act("held", By::Agent, &[], DROPS, &[V, R, G, A, ("count", Kind::Count), ("texts", Kind::List)]),
    act(
        "create",
        By::Either,
        &["record"],
        DROPS,
        &[V, R, G, A, ("act", VERDICTS), ("ok", Kind::Flag), ("error", Kind::Contains)],
    ),
    act("patch", By::Agent, &["patch", "key"], KEEPS, MERGE),
    act("approve", By::Agent, &["task", "decision"], DROPS, MERGE),
    act("reject", By::Agent, &["task", "decision"], DROPS, MERGE),
    act(
        "view",
        By::Agent,
        &["task"],
        DROPS,
        &[
            V,
            R,
            G,
            A,
            ("act", VERDICTS),
            ("body_visible", Kind::Flag),
            ("notes", Kind::List),
            ("artifacts", Kind::List),
            ("open_decisions", Kind::List),
            ("redacted_notes", Kind::Count),
            ("redacted_artifacts", Kind::Count),
            ("title", Kind::Text),
            ("state", Kind::Text),
        ],
    ),
    act(
        "events",
        By::Agent,
        &["task"],
        DROPS,
        &[V, R, G, A, ("count", Kind::Count), ("redacted", Kind::Count), ("verifies", Kind::Flag)],
    ),
    act("watch", By::Agent, &["task", "prefix", "as"], DROPS, PLAIN),
    act(
        "next",
        By::Either,
        &["as"],
        DROPS,
        &[
            V,
            R,
            G,
            A,
            ("event_kind", Kind::Text),
            ("actor", Kind::Text),
            ("key", Kind::Text),
            ("version", Kind::Count),
            ("empty", Kind::Flag),
            ("missed", Kind::Count),
        ],
    ),
    act(
        "journal",
        By::Either,
        &["task"],
        KEEPS,
        &[V, R, G, A, ("entries", Kind::Count), ("verifies", Kind::Flag)],
    ),
    act(
        "load",
        By::Host,
        &["journal"],
        DROPS,
        &[V, R, ("ok", Kind::Flag), ("error", Kind::Contains), ("at_entry", Kind::Count)],
    ),
    act("put", By::Agent, &["key", "body"], DROPS, CELL),
    act("cas", By::Agent, &["key", "body", "version", "scope"], DROPS, CELL),
    act("get", By::Agent, &["key", "scope"], KEEPS, CELL),
    act("delete", By::Agent, &["key", "version", "scope"], DROPS, CELL),
    act("list", By::Agent, &["prefix", "scope"], DROPS, CELL),
    act(
        "group",
        By::Host,
        &["name", "members", "wave"],
        DROPS,
        &[V, R, ("ranks", Kind::Json), ("size", Kind::Count), ("error", Kind::Contains)],
    ),
    act("broadcast", By::Agent, &["group", "body"], DROPS, COLLECTIVE),
    act("scatter", By::Agent, &["group", "bodies"], DROPS, COLLECTIVE),
    act("gather", By::Agent, &["group", "outputs", "reduce", "scores"], KEEPS, COLLECTIVE),
    act("barrier", By::Either, &["group", "as"], DROPS, BARRIER),
    act("arrive", By::Either, &["as", "member", "evidence"], DROPS, BARRIER),
    act("depart", By::Either, &["as", "member"], DROPS, BARRIER),
    act("barrier_status", By::Either, &["as"], DROPS, BARRIER),
    act("split", By::Either, &["group", "colours", "lease"], DROPS, &[V, R, G, A, ("parts", Kind::Json)]),
    act("lease", By::Agent, &["lane", "tree", "ttl_ms", "as"], DROPS, LEASE),
    act("renew", By::Either, &["as"], DROPS, LEASE),
    act("release", By::Either, &["as"], DROPS, LEASE),
    act("check", By::Either, &["as", "path"], DROPS, LEASE),
    act("tick", By::Host, &["ms"], DROPS, HOSTED),
    act(
        "audit",
        By::Host,
        &[],
        DROPS,
        &[V, R, ("verifies", Kind::Flag), ("entries", Kind::Count), ("denied", Kind::Count)],
    ),
    act(
        "stats",
        By::Host,
        &[],
        DROPS,
        &[
            V,
            R,
            ("sent", Kind::Count),
            ("received", Kind::Count),
            ("denied", Kind::Count),
            ("held", Kind::Count),
            ("dropped", Kind::Count),
            ("skipped", Kind::Count),
            ("dead", Kind::Count),
            ("queued", Kind::Count),
        ],
    ),
];

impl ActShape {
    /// The row of an act by name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ACTS.iter().find(|act| act.name == name)
    }
}

/// What there is to know of an act of scenarios without performing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActInfo {
    /// The value of `do`.
    pub name: &'static str,
    /// The other members its step may have.
    pub members: Vec<&'static str>,
    /// The members of `expect` that it answers.
    pub answers: Vec<&'static str>,
    /// The members that its `record` or `patch` cannot be without, each with how it may be written.
    pub envelope: Vec<(&'static str, &'static str)>,
}

/// Every act that a step of a scenario may be.
pub fn acts() -> impl Iterator<Item = ActInfo> {
    ACTS.iter().map(|act| {
        let by = (act.by != By::Host).then_some("by");
        let save = act.save.then_some("save");
        ActInfo {
            name: act.name,
            members: by.into_iter().chain(act.arguments.iter().copied()).chain(save).collect(),
            answers: act.expect.iter().map(|(name, _)| *name).collect(),
            envelope: crate::parse::envelope_of(act.name).to_vec(),
        }
    })
}

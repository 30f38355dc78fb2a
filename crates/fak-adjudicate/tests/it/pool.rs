//! §3.9: the content-addressed pool: what a get picks, what is shared, what is bounded.

use std::num::NonZeroUsize;
use std::sync::Arc;

use fak_abi::{
    AgentHandle, CapSet, Capability, Desk, Digest, Gate, Host, Location, Opinion, Outcome, PrincipalSpec,
    Reason, Ref, ResultAdmitter, RungName, ShareScope, Taint, ToolCall, VerdictKind,
};
use fak_adjudicate::{Kernel, Pool, PoolOptions, Rank};
use proptest::prelude::*;

use crate::support::{attach, id};

fn options(bytes: usize, share: usize) -> PoolOptions {
    PoolOptions { bytes: NonZeroUsize::new(bytes).unwrap(), share: NonZeroUsize::new(share) }
}

fn world(options: PoolOptions) -> (Arc<Kernel>, Arc<Pool>) {
    let pool = Arc::new(Pool::new(options));
    let kernel = Kernel::builder().driver(Arc::clone(&pool) as _).build().unwrap();
    (kernel, pool)
}

fn roomy() -> (Arc<Kernel>, Arc<Pool>) {
    world(PoolOptions::default())
}

fn body(kernel: &Kernel, owner: &AgentHandle, text: &str, taint: Taint, scope: ShareScope) -> Ref {
    kernel.issue(owner.principal(), text.to_owned().into(), taint, scope).unwrap()
}

fn refusal(outcome: &Outcome<Ref>) -> (&'static str, &'static str) {
    let verdict = outcome.verdict();
    let refusal = verdict.refusal().unwrap();
    (refusal.reason.name(), refusal.site.check())
}

fn put(pool: &Pool, agent: &AgentHandle, body: &Ref) -> Ref {
    pool.put(agent, body).allowed().unwrap()
}

fn get(pool: &Pool, agent: &AgentHandle, text: &str) -> Outcome<Ref> {
    pool.get(agent, Digest::of(text.as_bytes()))
}

#[test]
fn a_value_is_kept_under_its_digest_with_its_provenance() {
    let (kernel, pool) = roomy();
    let (alpha, bravo) = (attach(&kernel, "alpha"), attach(&kernel, "bravo"));
    let kept = put(&pool, &alpha, &body(&kernel, &alpha, "x", Taint::Tainted, ShareScope::Fleet));
    assert_eq!((kept.location(), kept.digest()), (Location::Blob, Digest::of(b"x")));
    let got = get(&pool, &bravo, "x").allowed().unwrap();
    assert_eq!((got.owner().id().as_str(), got.scope()), ("alpha", ShareScope::Fleet));
    assert_eq!(bravo.read(&got).allowed().unwrap(), "x");
    assert_eq!(refusal(&get(&pool, &bravo, "y")), ("MISROUTE", "pool/unknown"));
    let _private = put(&pool, &alpha, &alpha.mint("secret"));
    assert_eq!(refusal(&get(&pool, &bravo, "secret")), ("TRUST_VIOLATION", "pool/closed"));
    assert!(get(&pool, &alpha, "secret").is_allow());
}

#[test]
fn the_floor_refuses_what_it_must() {
    let (kernel, pool) = world(options(4096, 2048));
    let alpha = attach(&kernel, "alpha");
    let spec = |name: &str, caps: &[Capability]| {
        PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(CapSet::of(caps))
    };
    let reader = kernel.attach(spec("reader", &[Capability::PoolRead])).unwrap();
    let writer = kernel.attach(spec("writer", &[Capability::PoolWrite])).unwrap();
    assert_eq!(refusal(&pool.put(&reader, &reader.mint("x"))), ("DEFAULT_DENY", "pool/capability"));
    assert_eq!(refusal(&get(&pool, &writer, "x")), ("DEFAULT_DENY", "pool/capability"));
    // Another's private value, and another's value raised to quarantined.
    assert_eq!(refusal(&pool.put(&writer, &alpha.mint("x"))), ("TRUST_VIOLATION", "pool/flow"));
    let shared = body(&kernel, &alpha, "x", Taint::Tainted, ShareScope::Fleet);
    let raised = writer.raise(&shared, Taint::Quarantined);
    assert_eq!(refusal(&pool.put(&writer, &raised)), ("TRUST_VIOLATION", "pool/flow"));
    assert_eq!(refusal(&pool.put(&alpha, &alpha.mint(vec![0; 2048]))), ("OVERSIZE", "pool/size"));
    // A handle of another kernel, a kernel that is gone, a pool that was never built in.
    let (other, other_pool) = roomy();
    let stranger = attach(&other, "alpha");
    assert_eq!(refusal(&pool.put(&stranger, &stranger.mint("x"))), ("TRUST_VIOLATION", "kernel/foreign"));
    assert_eq!(refusal(&pool.put(&alpha, &stranger.mint("x"))), ("TRUST_VIOLATION", "pool/flow"));
    drop((other, stranger));
    assert_eq!(refusal(&get(&other_pool, &alpha, "x")), ("TRUST_VIOLATION", "pool/unbuilt"));
    assert_eq!(refusal(&get(&Pool::new(PoolOptions::default()), &alpha, "x")).1, "pool/unbuilt");
    kernel.detach(&id("alpha")).unwrap();
    assert_eq!(refusal(&get(&pool, &alpha, "x")), ("DEFAULT_DENY", "kernel/detached"));
    let explained = kernel.explain(&ToolCall::new(&reader, fak_abi::Act::PoolPut)).to_string();
    assert!(explained.contains("ask the host to grant pool.write"), "{explained}");
}

#[test]
fn anothers_quarantined_put_poisons_nobody() {
    let (kernel, pool) = roomy();
    let (alpha, bravo, mallory) = (attach(&kernel, "b"), attach(&kernel, "c"), attach(&kernel, "a"));
    let _mine = put(&pool, &alpha, &body(&kernel, &alpha, "x", Taint::Trusted, ShareScope::Fleet));
    let _poison = put(&pool, &mallory, &body(&kernel, &mallory, "x", Taint::Quarantined, ShareScope::Fleet));
    let got = get(&pool, &bravo, "x").allowed().unwrap();
    assert_eq!((got.taint(), got.owner().id().as_str()), (Taint::Trusted, "b"));
    // Alone it may flow to nobody, its owner included.
    let _alone = put(&pool, &mallory, &body(&kernel, &mallory, "y", Taint::Quarantined, ShareScope::Fleet));
    for reader in [&mallory, &bravo] {
        assert_eq!(refusal(&get(&pool, reader, "y")).0, "TRUST_VIOLATION");
    }
    // One's own quarantined put does count against oneself.
    let _again = put(&pool, &alpha, &body(&kernel, &alpha, "x", Taint::Quarantined, ShareScope::Fleet));
    assert_eq!(refusal(&get(&pool, &bravo, "x")).0, "TRUST_VIOLATION");
}

/// Only the owner's word raises the taint of its entry.
#[test]
fn another_may_pass_a_value_on_but_not_taint_its_owners_entry() {
    let (kernel, pool) = roomy();
    let (alpha, bravo) = (attach(&kernel, "alpha"), attach(&kernel, "bravo"));
    let trusted = body(&kernel, &alpha, "x", Taint::Trusted, ShareScope::Fleet);
    let _mine = put(&pool, &alpha, &trusted);
    let _passed = put(&pool, &bravo, &bravo.raise(&trusted, Taint::Tainted));
    assert_eq!(get(&pool, &bravo, "x").allowed().unwrap().taint(), Taint::Trusted);
    let other = body(&kernel, &alpha, "y", Taint::Tainted, ShareScope::Fleet);
    let passed = put(&pool, &bravo, &other);
    assert_eq!((passed.owner().id().as_str(), passed.scope()), ("alpha", ShareScope::Fleet));
}

struct Holds;

impl ResultAdmitter for Holds {
    fn name(&self) -> RungName {
        "holds"
    }
    fn screen(&self, call: &ToolCall<'_>, body: &Ref, desk: &Desk<'_>) -> Opinion {
        assert_eq!(call.tool().name(), "pool.get");
        let bad = desk.resolver.bytes(body).unwrap().starts_with(b"bad");
        if bad { Opinion::Quarantine } else { Opinion::Defer }
    }
}

#[test]
fn an_admitter_holds_what_a_get_would_hand_over() {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let kernel =
        Kernel::builder().driver(Arc::clone(&pool) as _).admitter(Rank(0), Arc::new(Holds)).build().unwrap();
    let alpha = attach(&kernel, "alpha");
    let _kept = (put(&pool, &alpha, &alpha.mint("bad news")), put(&pool, &alpha, &alpha.mint("good news")));
    let held = get(&pool, &alpha, "bad news").verdict();
    assert_eq!((held.kind(), held.by()), (VerdictKind::Quarantine, "holds"));
    assert!(get(&pool, &alpha, "good news").is_allow());
}

#[test]
fn bytes_are_shared_and_what_nobody_points_to_makes_room() {
    // Room for two values of 1,000 bytes.
    let (kernel, pool) = world(options(3300, 3300));
    let (alpha, bravo) = (attach(&kernel, "alpha"), attach(&kernel, "bravo"));
    let text = |c: &str| c.repeat(1000);
    let fleet = |who: &AgentHandle, c: &str| body(&kernel, who, &text(c), Taint::Tainted, ShareScope::Fleet);
    let first = put(&pool, &alpha, &fleet(&alpha, "a"));
    assert_eq!(pool.bytes(), 1000 + 2 * 256);
    let again = put(&pool, &bravo, &fleet(&bravo, "a"));
    assert_eq!((pool.bytes(), pool.len()), (1000 + 3 * 256, 1), "one copy, two entries");
    drop(put(&pool, &alpha, &fleet(&alpha, "b")));
    assert_eq!((pool.len(), pool.pinned()), (2, 1));
    // `a` is pinned although it was used less recently: `b` makes room.
    let third = put(&pool, &alpha, &fleet(&alpha, "c"));
    assert_eq!(refusal(&get(&pool, &alpha, &text("b"))), ("MISROUTE", "pool/unknown"));
    let full = pool.put(&alpha, &fleet(&alpha, "d"));
    assert_eq!(refusal(&full), ("RATE_LIMITED", "pool/full"));
    assert_eq!(full.verdict().reason().map(Reason::disposition), Some(fak_abi::Disposition::Wait));
    // A clone pins as well, until the last is dropped.
    let clone = third.clone();
    drop(third);
    assert!(!pool.put(&alpha, &fleet(&alpha, "d")).is_allow());
    drop(clone);
    let fourth = put(&pool, &alpha, &fleet(&alpha, "d"));
    drop((first, again, fourth));
    // The least recently used goes first.
    drop(get(&pool, &alpha, &text("a")));
    drop(put(&pool, &alpha, &fleet(&alpha, "e")));
    assert!(get(&pool, &alpha, &text("a")).is_allow());
    assert!(!get(&pool, &alpha, &text("d")).is_allow());
    assert!(pool.bytes() <= 3300);
}

/// §3.5: the pool's own checks are explained, without side effects.
#[test]
fn explaining_says_what_the_pool_would_answer() {
    let (kernel, pool) = world(options(3300, 3300));
    let (alpha, bravo) = (attach(&kernel, "alpha"), attach(&kernel, "bravo"));
    let kept = put(&pool, &alpha, &alpha.mint(vec![1; 1000]));
    let also = put(&pool, &alpha, &alpha.mint(vec![2; 1000]));
    let site =
        |explained: fak_abi::Explanation| explained.verdict.refusal().map(|refusal| refusal.site.check());
    let next = alpha.mint(vec![3; 1000]);
    assert_eq!(site(pool.explain_put(&alpha, &next)), Some("pool/full"));
    assert_eq!(site(pool.explain_put(&bravo, &next)), Some("pool/flow"));
    assert_eq!(site(pool.explain_get(&bravo, kept.digest())), Some("pool/closed"));
    assert_eq!(site(pool.explain_get(&alpha, next.digest())), Some("pool/unknown"));
    assert_eq!(site(pool.explain_get(&alpha, kept.digest())), None);
    let text = pool.explain_put(&alpha, &next).to_string();
    assert!(text.contains("pinned") && text.contains("drop Refs"), "{text}");
    let (other, _) = roomy();
    assert_eq!(site(pool.explain_get(&attach(&other, "alpha"), kept.digest())), Some("pool/unbuilt"));
    drop((kept, also));
    // What is kept already takes no room.
    let (one, two) =
        (put(&pool, &alpha, &alpha.mint(vec![1; 1000])), put(&pool, &alpha, &alpha.mint(vec![2; 1000])));
    assert_eq!(site(pool.explain_put(&alpha, &alpha.mint(vec![1; 1000]))), None);
    assert!(pool.put(&alpha, &alpha.mint(vec![1; 1000])).is_allow());
    drop(put(&pool, &alpha, &alpha.mint(vec![2; 1000])));
    drop((one, two));
    // Explaining the first did not make it look used: it is the one that goes.
    assert_eq!(site(pool.explain_put(&alpha, &next)), None);
    assert_eq!(pool.len(), 2);
    drop(put(&pool, &alpha, &next));
    assert!(!pool.get(&alpha, Digest::of(&[1; 1000])).is_allow());
}

#[test]
fn one_principal_cannot_take_all_and_makes_room_from_its_own() {
    let (kernel, pool) = world(options(8000, 3100));
    let (alpha, bravo) = (attach(&kernel, "alpha"), attach(&kernel, "bravo"));
    let mut pins: Vec<_> = (0..2).map(|n| put(&pool, &alpha, &alpha.mint(vec![n; 1000]))).collect();
    let others = put(&pool, &bravo, &bravo.mint(vec![9; 1000]));
    drop(others);
    assert_eq!(refusal(&pool.put(&alpha, &alpha.mint(vec![3; 1000]))), ("RATE_LIMITED", "pool/full"));
    pins.pop();
    pins.push(put(&pool, &alpha, &alpha.mint(vec![3; 1000])));
    assert!(pool.get(&bravo, Digest::of(&[9; 1000])).is_allow(), "bravo's stayed");
    // What is private to who is gone is freed; the share is too.
    kernel.detach(&id("alpha")).unwrap();
    assert_eq!(pool.len(), 1);
    assert_eq!(pool.bytes(), 1000 + 2 * 256);
}

#[test]
fn the_bound_holds_while_many_put_and_get() {
    let (kernel, pool) = world(options(20_000, 20_000));
    let agents: Vec<_> = (0..4).map(|n| attach(&kernel, &format!("a{n}"))).collect();
    std::thread::scope(|scope| {
        for (n, agent) in agents.iter().enumerate() {
            let (kernel, pool) = (&kernel, &pool);
            scope.spawn(move || {
                let mut kept = Vec::new();
                for round in 0..300_usize {
                    let text = format!("{:0500}", (round * 7 + n) % 90);
                    let value = body(kernel, agent, &text, Taint::Tainted, ShareScope::Fleet);
                    if let Some(value) = pool.put(agent, &value).allowed() {
                        assert_eq!(agent.read(&value).allowed().unwrap(), text);
                        kept.push(value);
                    }
                    if let Some(value) = get(pool, agent, &format!("{:0500}", round % 90)).allowed() {
                        assert_eq!(Digest::of(&agent.read(&value).allowed().unwrap()), value.digest());
                    }
                    assert!(pool.bytes() <= 20_000);
                    if kept.len() > 5 {
                        kept.clear();
                    }
                }
            });
        }
    });
    assert_eq!(pool.pinned(), 0);
}

const FLEETS: [(&str, Option<&str>, Option<&str>); 4] = [
    ("a", Some("f1"), None),
    ("b", Some("f1"), Some("t1")),
    ("c", None, Some("t1")),
    ("d", Some("f2"), None),
];

proptest! {
    /// Against the clause read naively: every put remembered, every get decided over all of them.
    #[test]
    fn as_a_naive_pool(
        puts in prop::collection::vec(
            (0..4_usize, 0..2_usize, prop::sample::select(Taint::ALL), 0..3_usize), 0..12),
    ) {
        let (kernel, pool) = roomy();
        let agents = FLEETS.map(|(name, fleet, tenant)| {
            let mut spec = PrincipalSpec::agent(id(name)).caps(CapSet::ALL);
            (spec.fleet, spec.tenant) = (fleet.map(id), tenant.map(id));
            kernel.attach(spec).unwrap()
        });
        // (text, owner, scope) to taint, in the order of scopes and names.
        let mut model = std::collections::BTreeMap::new();
        for (who, text, taint, scope) in puts {
            let scope = ShareScope::ALL[scope];
            let value = body(&kernel, &agents[who], ["x", "y"][text], taint, scope);
            // A value of scope fleet that its owner has no fleet for flows to nobody.
            let fits = value.would_flow_to(agents[who].principal());
            prop_assert_eq!(pool.put(&agents[who], &value).is_allow(), fits);
            if fits {
                let entry = model.entry((text, who, scope)).or_insert(taint);
                *entry = entry.join(taint);
            }
        }
        for (reader, agent) in agents.iter().enumerate() {
            for text in 0..2 {
                let flowing: Vec<_> = model
                    .iter()
                    .filter(|((t, owner, scope), taint)| {
                        let (from, to) = (FLEETS[*owner], FLEETS[reader]);
                        *t == text && **taint != Taint::Quarantined && match scope {
                            ShareScope::Agent => *owner == reader,
                            ShareScope::Fleet => from.1.is_some() && from.1 == to.1,
                            _ => from.2.is_some() && from.2 == to.2,
                        }
                    })
                    .collect();
                let pick = flowing.iter().find(|((_, owner, _), _)| *owner == reader).or(flowing.first());
                let got = get(&pool, agent, ["x", "y"][text]);
                match pick {
                    None => {
                        let known = model.keys().any(|(t, ..)| *t == text);
                        let expected = if known { "TRUST_VIOLATION" } else { "MISROUTE" };
                        prop_assert_eq!(refusal(&got).0, expected);
                    }
                    Some(((_, owner, scope), _)) => {
                        let taint = flowing.iter().map(|(_, taint)| **taint).max().unwrap();
                        let got = got.allowed().unwrap();
                        prop_assert_eq!(got.owner().id().as_str(), FLEETS[*owner].0);
                        prop_assert_eq!((got.scope(), got.taint()), (*scope, taint));
                    }
                }
            }
        }
    }
}

/// §3.9: a value may take all of a share and all of the pool, and not a byte more; a share is three quarters unless it is said.
#[test]
fn a_value_may_be_as_large_as_the_share() {
    const COST: usize = 512; // of one value with one entry, besides its bytes
    for (bytes, share, most) in [(4_096, 1_000, 1_000), (1_000, 4_096, 1_000), (1_000, 0, 750)] {
        let (kernel, pool) = world(options(bytes, share));
        let alpha = attach(&kernel, "alpha");
        assert!(pool.is_empty());
        let sized = |len: usize| alpha.mint(vec![b'x'; len]);
        assert_eq!(refusal(&pool.put(&alpha, &sized(most - COST + 1))), ("OVERSIZE", "pool/size"));
        assert!(pool.is_empty());
        let _kept = put(&pool, &alpha, &sized(most - COST));
        assert_eq!(
            (pool.len(), pool.is_empty(), pool.bytes()),
            (1, false, most),
            "{bytes} bytes, {share} each"
        );
    }
}

/// §3.9: who is above its share makes room from its own, however long another's has lain; who is within it takes the place of the
/// least recently used, whosever it is.
#[test]
fn whose_value_makes_room() {
    let there = |pool: &Pool, of: &AgentHandle, n: u8| pool.get(of, Digest::of(&[n; 1000])).is_allow();
    for (bytes, share, own) in [(8_000, 3_100, true), (4_600, 4_600, false)] {
        let (kernel, pool) = world(options(bytes, share));
        let (alpha, bravo) = (attach(&kernel, "alpha"), attach(&kernel, "bravo"));
        let keep = |of: &AgentHandle, n: u8| drop(put(&pool, of, &of.mint(vec![n; 1000])));
        keep(&bravo, 9);
        (1..=3).for_each(|n| keep(&alpha, n));
        assert_eq!((there(&pool, &bravo, 9), there(&pool, &alpha, 1)), (own, !own));
        assert!(there(&pool, &alpha, 2) && there(&pool, &alpha, 3));
    }
}

/// §3.9: who was above its share and has made room of its own takes what is still wanted from the least recently used, even if
/// that is older than what it gave up.
#[test]
fn what_ones_own_does_not_make_room_for_others_make() {
    let (kernel, pool) = world(options(4_000, 3_000));
    let (alpha, bravo) = (attach(&kernel, "alpha"), attach(&kernel, "bravo"));
    drop(put(&pool, &bravo, &bravo.mint(vec![9; 2_388])));
    drop(put(&pool, &alpha, &alpha.mint(vec![1; 100])));
    drop(put(&pool, &alpha, &alpha.mint(vec![2; 1_988])));
    assert_eq!((pool.len(), pool.bytes()), (1, 2_500));
}

/// §3.9: values that are in use make no room for others, within a share or not; and what was freed counts for its share once.
#[test]
fn a_pool_of_values_in_use_is_full() {
    let (kernel, pool) = world(options(3_300, 1_600));
    let [alpha, bravo, charlie] = ["alpha", "bravo", "charlie"].map(|name| attach(&kernel, name));
    let value = |of: &AgentHandle, n: u8| of.mint(vec![n; 1000]);
    let (first, second) = (put(&pool, &alpha, &value(&alpha, 1)), put(&pool, &bravo, &value(&bravo, 2)));
    assert_eq!(refusal(&pool.put(&charlie, &value(&charlie, 3))), ("RATE_LIMITED", "pool/full"));
    drop(first);
    let third = put(&pool, &charlie, &value(&charlie, 3));
    assert!(pool.bytes() <= 3_300);
    drop((second, third));

    let (kernel, pool) = world(options(8_000, 3_100));
    let alpha = attach(&kernel, "alpha");
    let first = put(&pool, &alpha, &value(&alpha, 1));
    drop(put(&pool, &alpha, &value(&alpha, 2)));
    let third = put(&pool, &alpha, &value(&alpha, 3));
    assert_eq!(refusal(&pool.put(&alpha, &value(&alpha, 4))), ("RATE_LIMITED", "pool/full"));
    drop((first, third));
}

/// Detaches whoever puts a value.
#[derive(Default)]
struct Overtakes(std::sync::OnceLock<std::sync::Weak<Kernel>>);

impl fak_abi::Adjudicator for Overtakes {
    fn name(&self) -> RungName {
        "overtakes"
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }
    fn commit(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        self.0.get().and_then(std::sync::Weak::upgrade).unwrap().detach(call.principal().id()).unwrap();
        Opinion::Defer
    }
}

/// §2.3: a private value whose owner is detached on the way can flow to nobody, and takes no room.
#[test]
fn a_private_value_that_a_detach_overtakes_is_not_kept() {
    let (overtakes, pool) = (Arc::new(Overtakes::default()), Arc::new(Pool::new(PoolOptions::default())));
    let builder = Kernel::builder().driver(Arc::clone(&pool) as _);
    let kernel = builder.rung(Rank(10), Arc::clone(&overtakes) as _).build().unwrap();
    overtakes.0.set(Arc::downgrade(&kernel)).unwrap();
    let alpha = attach(&kernel, "alpha");
    drop(pool.put(&alpha, &alpha.mint("secret")));
    assert_eq!((pool.len(), pool.bytes()), (0, 0));
}

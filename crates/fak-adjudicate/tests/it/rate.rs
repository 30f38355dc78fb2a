//! §3.8: the rate rung against a naive bucket, its true retry-after, its bounds and its races.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use fak_abi::{
    Address, AgentHandle, ChannelKey, Clock, Gate, Opinion, Reason, Refusal, Timestamp, ToolCall, ToolToken,
};
use fak_adjudicate::{Kernel, ManualClock, Rank, RateLimit, RateOptions, RateRung};
use proptest::prelude::*;

use crate::support::{Says, attach, id};

fn limit(burst: u32, per_ms: u64) -> Option<RateLimit> {
    Some(RateLimit { burst: NonZeroU32::new(burst).unwrap(), per: Duration::from_millis(per_ms) })
}

struct World {
    kernel: Arc<Kernel>,
    rung: Arc<RateRung>,
    clock: ManualClock,
    tool: ToolToken,
}

/// A kernel that allows everything the rate rung does not refuse.
fn world(options: RateOptions, more: Option<Arc<Says>>) -> World {
    let clock = ManualClock::at("2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
    let rung = Arc::new(RateRung::new(options));
    let mut builder = Kernel::builder()
        .time(Arc::new(clock.clone()))
        .tools([id("work")])
        .rung(Rank(0), Arc::new(Says::new("open", |_, _| Opinion::Allow)))
        .rung(Rank(1), Arc::clone(&rung) as _);
    if let Some(more) = more {
        builder = builder.rung(Rank(2), more);
    }
    let kernel = builder.build().unwrap();
    let tool = kernel.tool(&id("work"));
    World { kernel, rung, clock, tool }
}

impl World {
    fn act(&self, agent: &AgentHandle, at: Option<&str>) -> Option<Refusal> {
        let key: Option<ChannelKey> = at.map(|at| format!("in_kernel:{at}").parse().unwrap());
        let address = key.as_ref().map_or(Address::None, Address::Channel);
        agent.decide(&ToolCall::new(agent, &self.tool).address(address)).refusal().copied()
    }
}

fn site(refusal: Option<Refusal>) -> Option<(&'static str, Option<u32>)> {
    refusal.map(|refusal| {
        assert_eq!(refusal.reason, Reason::RateLimited);
        (refusal.site.check(), refusal.retry_after_ms)
    })
}

#[test]
fn a_burst_passes_and_then_one_act_per_period() {
    let w = world(RateOptions { principal: limit(3, 100), ..RateOptions::default() }, None);
    let (alpha, bravo) = (attach(&w.kernel, "alpha"), attach(&w.kernel, "bravo"));
    for _ in 0..3 {
        assert_eq!(w.act(&alpha, None), None);
    }
    assert_eq!(site(w.act(&alpha, None)), Some(("rate/principal", Some(100))));
    assert_eq!(w.act(&bravo, None), None, "each principal has its own");
    w.clock.advance(Duration::from_micros(99_999));
    assert_eq!(site(w.act(&alpha, None)), Some(("rate/principal", Some(1))));
    w.clock.advance(Duration::from_micros(1));
    assert_eq!(w.act(&alpha, None), None);
    assert!(w.act(&alpha, None).is_some());
    // Attaching the id again fills no bucket.
    w.kernel.detach(&id("alpha")).unwrap();
    let again = attach(&w.kernel, "alpha");
    assert!(w.act(&again, None).is_some());
}

#[test]
fn each_address_has_its_own_bucket_and_an_act_takes_of_both_or_none() {
    let options = RateOptions { principal: limit(3, 1000), address: limit(1, 10), ..RateOptions::default() };
    let w = world(options, None);
    let alpha = attach(&w.kernel, "alpha");
    assert_eq!(w.act(&alpha, Some("a")), None);
    assert_eq!(site(w.act(&alpha, Some("a"))), Some(("rate/address", Some(10))));
    // Refused acts took nothing of the principal's bucket.
    assert_eq!(w.act(&alpha, Some("b")), None);
    assert_eq!(w.act(&alpha, Some("c")), None);
    assert_eq!(site(w.act(&alpha, Some("d"))), Some(("rate/principal", Some(1000))));
    // Where both are empty the longer wait is the true one.
    assert_eq!(site(w.act(&alpha, Some("c"))), Some(("rate/principal", Some(1000))));
}

#[test]
fn buckets_are_bounded_and_full_ones_make_room() {
    let options = RateOptions { address: limit(1, 10), addresses: 2, ..RateOptions::default() };
    let w = world(options, None);
    let (alpha, bravo) = (attach(&w.kernel, "alpha"), attach(&w.kernel, "bravo"));
    assert_eq!(w.act(&alpha, Some("a")), None);
    w.clock.advance(Duration::from_millis(4));
    assert_eq!(w.act(&alpha, Some("b")), None);
    assert_eq!(site(w.act(&alpha, Some("c"))), Some(("rate/number", Some(6))));
    assert_eq!(w.act(&bravo, Some("c")), None, "only its own acts are refused");
    w.clock.advance(Duration::from_millis(6));
    assert_eq!(w.act(&alpha, Some("c")), None);
    // Alpha's own, b and c; bravo's own and c.
    assert_eq!(w.rung.len(), 5);
}

#[test]
fn what_did_not_happen_is_given_back() {
    let refuses = Opinion::deny(Reason::RateLimited, fak_abi::Site::new("later"));
    let later = Arc::new(Says::new("later", |_, _| Opinion::Defer).counting(refuses));
    let options =
        RateOptions { principal: limit(2, 1000), address: limit(2, 1000), ..RateOptions::default() };
    let w = world(options, Some(later));
    let alpha = attach(&w.kernel, "alpha");
    for _ in 0..10 {
        assert_eq!(site(w.act(&alpha, Some("a"))), Some(("later", None)));
    }
}

/// Judging reads only: explaining takes no token.
#[test]
fn explaining_takes_no_token() {
    let w = world(RateOptions { principal: limit(1, 1000), ..RateOptions::default() }, None);
    let alpha = attach(&w.kernel, "alpha");
    for _ in 0..5 {
        assert!(w.kernel.explain(&ToolCall::new(&alpha, &w.tool)).verdict.is_allow());
    }
    assert!(w.rung.is_empty());
    assert_eq!(w.act(&alpha, None), None);
    let explained = w.kernel.explain(&ToolCall::new(&alpha, &w.tool)).to_string();
    assert!(
        explained.contains("retry after 1000 ms") && explained.contains("retry-after says"),
        "{explained}"
    );
}

/// Eight threads race for 1,000 tokens of one principal: exactly 1,000 acts pass.
#[test]
fn no_token_is_spent_twice() {
    let options =
        RateOptions { principal: limit(1000, 1000), address: limit(700, 1000), ..RateOptions::default() };
    let w = world(options, None);
    let alpha = attach(&w.kernel, "alpha");
    let passed: usize = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8)
            .map(|n| {
                let (w, alpha) = (&w, &alpha);
                let at = if n % 2 == 0 { "a" } else { "b" };
                scope.spawn(move || (0..400).filter(|_| w.act(alpha, Some(at)).is_none()).count())
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    assert_eq!(passed, 1000);
}

proptest! {
    /// Against a bucket that is a number which grows with time; and retry-after is true: after it
    /// the act passes, a millisecond earlier it does not.
    #[test]
    fn as_a_naive_bucket(burst in 1..5_u32, per_ms in 1..20_u64, gaps in prop::collection::vec(0..30_000_u64, 1..40)) {
        let w = world(RateOptions { principal: limit(burst, per_ms), ..RateOptions::default() }, None);
        let alpha = attach(&w.kernel, "alpha");
        let per = per_ms * 1000;
        let full = per * u64::from(burst);
        let mut level = full;
        let mut before = w.clock.now();
        for gap in gaps {
            w.clock.advance(Duration::from_micros(gap));
            let now = w.clock.now();
            level = full.min(level + (now.as_micros() - before.as_micros()));
            before = now;
            let passes = level >= per;
            match w.act(&alpha, None) {
                None => {
                    prop_assert!(passes);
                    level -= per;
                }
                Some(refusal) => {
                    prop_assert!(!passes);
                    let ms = u64::from(refusal.retry_after_ms.unwrap());
                    prop_assert!(level + ms * 1000 >= per && level + (ms - 1) * 1000 < per);
                }
            }
        }
    }
}

/// §3.8: principals with a bucket are bounded too. Who finds no place is told how long until there is one, and there is one then;
/// who has a place keeps it for as long as a bucket is not full.
#[test]
fn principals_are_bounded_and_full_buckets_make_room() {
    let options = RateOptions {
        principal: limit(2, 10),
        address: limit(2, 10),
        principals: 1, // one a shard, of which there are 16
        ..RateOptions::default()
    };
    let w = world(options, None);
    assert!(w.rung.is_empty());
    let agents: Vec<_> = (0..64).map(|n| attach(&w.kernel, &format!("a{n}"))).collect();
    let (mut placed, mut refused) = (Vec::new(), Vec::new());
    for agent in &agents {
        match site(w.act(agent, Some("x"))) {
            None => placed.push(agent),
            Some(found) => {
                assert_eq!(found, ("rate/number", Some(10)));
                refused.push(agent);
            }
        }
    }
    assert!(placed.len() <= 16 && refused.len() >= 48, "{} have a place", placed.len());
    assert_eq!(w.rung.len(), 2 * placed.len());
    assert!(!w.rung.is_empty());
    // One that has a place spends its second token; nobody's place is taken while a bucket of its is not full.
    w.clock.advance(Duration::from_millis(9));
    for agent in &placed {
        assert_eq!(w.act(agent, Some("x")), None);
        assert_eq!(w.act(agent, Some("x")).map(|refusal| refusal.site.check()), Some("rate/principal"));
    }
    for agent in &refused {
        let wait =
            site(w.act(agent, Some("x"))).and_then(|(check, wait)| wait.filter(|_| check == "rate/number"));
        assert!(wait.is_some_and(|wait| (1..=11).contains(&wait)), "{wait:?}");
    }
    w.clock.advance(Duration::from_millis(11));
    let found = refused.iter().filter(|agent| w.act(agent, Some("x")).is_none()).count();
    assert!((1..=16).contains(&found), "{found} took the places that came free");
    assert!(w.rung.len() <= 32);
}

/// §3.8: where both buckets are equally empty, the refusal is the principal's.
#[test]
fn of_two_equal_waits_the_principals_is_told() {
    let options = RateOptions { principal: limit(1, 10), address: limit(1, 10), ..RateOptions::default() };
    let w = world(options, None);
    let alpha = attach(&w.kernel, "alpha");
    assert_eq!(w.act(&alpha, Some("x")), None);
    assert_eq!(site(w.act(&alpha, Some("x"))), Some(("rate/principal", Some(10))));
}

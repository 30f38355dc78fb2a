//! PERFORMANCE row 4: a refusal allocates nothing (§2.6).

use fak_a2achan::{Addressing, BusConfig};
use fak_abi::{Capability, PrincipalSpec, Verdict};

use crate::support::*;

#[track_caller]
fn costs_nothing(run: impl Fn() -> Verdict) {
    assert!(!run().is_allow());
    let count = allocation_counter::measure(|| {
        for _ in 0..100 {
            let _ = std::hint::black_box(run());
        }
    });
    assert_eq!(count.count_total, 0);
}

#[test]
fn refusals_allocate_nothing() {
    let config = BusConfig { capacity: 1, addressing: Addressing::Declared, ..BusConfig::default() };
    let world = World::with(config, |b| b);
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let mute = world.spec(PrincipalSpec::agent(id("mute")).fleet(id("f1")).caps([Capability::RefWiden]));
    let at = key("in_kernel:alpha");
    let (body, secret, theirs) = (shared(&alpha, "x"), private(&alpha, "x"), shared(&zulu, "x"));
    let poison = world.quarantined(&alpha, "x");
    let silent = shared(&mute, "x");
    // Row by row of §4.3, through a channel at hand and by key.
    let channel = alpha.channel(&at);
    allowed(&channel.send(&body));
    let muted = mute.channel(&at);
    costs_nothing(|| muted.send(&silent));
    costs_nothing(|| mute.send(&at, &silent));
    costs_nothing(|| channel.send(&poison));
    costs_nothing(|| channel.send(&theirs));
    let elsewhere = alpha.channel(&key("session:trace-mute"));
    costs_nothing(|| elsewhere.send(&secret));
    costs_nothing(|| zulu.send(&key_of_mute(), &theirs));
    let unknown = key("in_kernel:nobody");
    costs_nothing(|| alpha.send(&unknown, &body));
    costs_nothing(|| channel.send(&body));
    costs_nothing(|| alpha.send(&at, &body));
    costs_nothing(|| alpha.publish(&unknown, &body).verdict);
    costs_nothing(|| mute.try_recv(&at).refusal().unwrap().clone());
    costs_nothing(|| zulu.try_recv(&at).refusal().unwrap().clone());
    costs_nothing(|| zulu.unbind(&at));
}

fn key_of_mute() -> fak_abi::ChannelKey {
    static KEY: std::sync::OnceLock<fak_abi::ChannelKey> = std::sync::OnceLock::new();
    KEY.get_or_init(|| key("session:trace-mute")).clone()
}

//! Policies, TOML and JSON, linted and then enforced: a rule that is accepted can be decided by (§3.7).

#![no_main]

use std::sync::{Arc, LazyLock};

use fak_a2achan::{Bus, BusConfig, Endpoint};
use fak_abi::{Capability, ChannelKey, Id, PrincipalSpec, Ref, ShareScope};
use fak_adjudicate::{Kernel, Policy, PolicyRung, Rank};
use fak_fuzz::frugal;
use libfuzzer_sys::fuzz_target;

struct World {
    _kernel: Arc<Kernel>,
    _bus: Bus,
    rung: Arc<PolicyRung>,
    agent: Endpoint,
    key: ChannelKey,
    body: Ref,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let open = Policy::from_toml("open.toml", "version = 1\n[[allow]]\ntool = \"*\"").expect("a policy");
    let rung = Arc::new(PolicyRung::new(open));
    let bus = Bus::new(BusConfig::default()).expect("a bus");
    let kernel =
        Kernel::builder().driver(bus.driver()).rung(Rank(0), rung.clone()).build().expect("a kernel");
    let spec = PrincipalSpec::agent(id("worker-1")).fleet(id("crew"));
    let caps = [Capability::A2aSend, Capability::A2aRecv, Capability::RefWiden];
    let agent = kernel.attach(spec.caps(caps)).expect("an agent");
    let body = agent.widen(&agent.mint("hello"), ShareScope::Fleet).allowed().expect("widened");
    let agent = bus.endpoint(&agent);
    World { _kernel: kernel, _bus: bus, rung, agent, key: "in_kernel:team/one".parse().expect("a key"), body }
});

fn id(text: &str) -> Id {
    Id::new(text).expect("an id")
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for read in [Policy::from_toml, Policy::from_json] {
        // A TOML reader holds many a token for a short text; it does not hold a number's worth.
        match frugal(text.len(), 4_000, || read("fuzz", text)) {
            Ok(policy) => enforce(policy),
            Err(error) => {
                assert!(error.place().offset <= text.len(), "{error}");
                let _ = error.to_string();
            }
        }
    }
});

fn enforce(policy: Policy) {
    let rules = policy.len();
    let lints = policy.lint(None).len() + policy.lint(Some(&["a2a.send", "mine.own"])).len();
    assert!(lints <= 16 * (rules + 1), "{lints} findings of {rules} rules");
    let spec = PrincipalSpec::agent(id("worker-2")).fleet(id("crew")).tenant(id("acme"));
    let granted = Capability::ALL.iter().filter(|capability| policy.grants(&spec, **capability)).count();
    let world = &*WORLD;
    world.rung.reload(policy);
    let sent = world.agent.send(&world.key, &world.body);
    if rules == 0 {
        assert!(!sent.is_allow() && granted == Capability::ALL.len());
    }
    if sent.is_allow() {
        let received = world.agent.try_recv(&world.key);
        assert!(!format!("{received:?}").contains("Empty"));
    }
    let _ = world.agent.publish(&world.key, &world.body);
}

//! Bodies rendered for a model: whatever they say stays behind its quotes, inside its fence, under a header that it cannot
//! write (§4.14). Typed channels over the same bytes.

#![no_main]

use std::sync::{Arc, LazyLock};

use fak_a2achan::{Bus, BusConfig, Endpoint};
use fak_abi::{Capability, ChannelKey, Id, PrincipalSpec, Ref};
use fak_adjudicate::Kernel;
use fak_fuzz::{MARKER, keeps_quiet};
use libfuzzer_sys::fuzz_target;

static WORLD: LazyLock<(Arc<Kernel>, Bus, Endpoint, ChannelKey)> = LazyLock::new(|| {
    let bus = Bus::new(BusConfig::default()).expect("a bus");
    let kernel = Kernel::builder().driver(bus.driver()).build().expect("a kernel");
    let spec = PrincipalSpec::agent(Id::new("al\"pha").expect("an id"));
    let agent = kernel.attach(spec.caps([Capability::A2aSend, Capability::A2aRecv])).expect("attached");
    let endpoint = bus.endpoint(&agent);
    (kernel, bus, endpoint, "in_kernel:al\"pha".parse().expect("a key"))
});

fn sent(bytes: Vec<u8>) -> Ref {
    let (_, _, endpoint, key) = &*WORLD;
    let body = endpoint.agent().mint(bytes);
    assert!(endpoint.send(key, &body).is_allow());
    body
}

fuzz_target!(|data: &[u8]| {
    let (_, _, endpoint, key) = &*WORLD;
    sent(data.to_vec());
    let message = endpoint.try_recv(key).message().expect("it was sent");
    let text = endpoint.render_for_model(&message).allowed().expect("one's own");
    let mut lines = text.lines();
    let header = lines.next().expect("a header");
    assert!(header.starts_with("[message ") && header.contains("al\\\"pha"), "{header}");
    let fence = lines.next().expect("a fence");
    assert!(fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`'));
    let rest: Vec<&str> = lines.collect();
    let (end, rest) = rest.split_last().expect("an end");
    let (close, quoted) = rest.split_last().expect("a fence");
    assert!(end.starts_with("[end of message ") && *close == fence);
    for line in quoted {
        assert!(line.starts_with("> ") && !line.contains(fence), "{line}");
        assert!(!line.chars().any(|c| c.is_control() && c != '\t'), "{line}");
    }
    for bytes in [data.to_vec(), format!("{{\"a\":\"{MARKER}\"").into_bytes()] {
        sent(bytes);
        let typed = endpoint.channel(key).typed::<Vec<u32>>();
        if let Err(error) = typed.try_recv().message().expect("it was sent").value {
            keeps_quiet(&error);
        }
    }
});

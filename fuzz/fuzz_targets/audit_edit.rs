//! A good audit log, edited: with a checkpoint kept outside nothing passes but the same bytes; without one nothing but a prefix
//! of them; and what was torn is repaired to one (§3.6).

#![no_main]

use std::sync::{Arc, LazyLock};

use fak_a2achan::{Bus, BusConfig};
use fak_abi::{Capability, ChannelKey, Id, PrincipalSpec, Timestamp};
use fak_adjudicate::{
    AuditError, AuditFault, AuditLog, AuditOptions, Checkpoint, Kernel, ManualClock, verify_audit,
};
use fak_fuzz::edited;
use libfuzzer_sys::fuzz_target;

static GOOD: LazyLock<(Vec<u8>, Checkpoint)> = LazyLock::new(|| {
    let at: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let (audit, mut log, _) =
        AuditLog::open(&b""[..], Vec::new(), at, AuditOptions::default()).expect("a log");
    let bus = Bus::new(BusConfig::default()).expect("a bus");
    let builder = Kernel::builder().time(Arc::new(ManualClock::at(at))).driver(bus.driver());
    let kernel = builder.audit(Arc::new(audit)).build().expect("a kernel");
    let spec = PrincipalSpec::agent(Id::new("alpha").expect("an id"))
        .caps([Capability::A2aSend, Capability::A2aRecv]);
    let agent = kernel.attach(spec).expect("attached");
    let key: ChannelKey = "in_kernel:alpha".parse().expect("a key");
    let endpoint = bus.endpoint(&agent);
    for _ in 0..4 {
        let _ = endpoint.send(&key, &agent.mint("a body"));
        let _ = endpoint.try_recv(&"session:other".parse().expect("a key"));
    }
    log.drain().expect("written");
    let end = log.checkpoint();
    (log.into_sink(), end)
});

fuzz_target!(|data: &[u8]| {
    let (good, end) = &*GOOD;
    let text = edited(good, data);
    let whole = verify_audit(&text[..], Some(end)).is_ok();
    assert_eq!(whole, text == *good);
    let line_end = text.is_empty() || text.ends_with(b"\n");
    match verify_audit(&text[..], None) {
        Ok(_) => assert!(good.starts_with(&text) && line_end, "an edit passed"),
        Err(AuditError::Line { line, fault }) => {
            // The first bad line is the first that differs.
            let same = good.split_inclusive(|b| *b == b'\n').zip(text.split_inclusive(|b| *b == b'\n'));
            let good_lines = same.take_while(|(a, b)| a == b).count() as u64;
            assert_eq!(line, good_lines + 1, "{fault}");
            assert!(fault != AuditFault::Torn || !line_end);
        }
        Err(error) => panic!("{error}"),
    }
    let sink = text.clone();
    if let Ok((_audit, mut log, opened)) =
        AuditLog::open(&text[..], sink, Timestamp::from_micros(7), AuditOptions::default())
    {
        log.drain().expect("written");
        let kept = opened.torn.map_or(text.len(), |torn| text.len() - torn.bytes as usize);
        assert!(log.sink().starts_with(&good[..kept]));
        verify_audit(&log.sink()[..], Some(&opened.end)).expect("it verifies");
    }
});

//! The four envelopes of corrections: canonical once read, and quiet about what they say when they are refused (§4.9, §7.1).

#![no_main]

use fak_a2achan::{Correction, CorrectionAck, CorrectionRequest, MAX_CORRECTION_BYTES, WorkerStatus};
use fak_abi::json;
use fak_fuzz::{frugal, keeps_quiet, pick, planted};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    round(data, WorkerStatus::parse, WorkerStatus::to_json);
    round(data, CorrectionAck::parse, CorrectionAck::to_json);
    if let Some(request) = round(data, CorrectionRequest::parse, CorrectionRequest::to_json) {
        assert!(request.ceiling() <= MAX_CORRECTION_BYTES);
        sound(&request.correction());
    }
    if let Some(correction) = round(data, Correction::parse, Correction::to_json) {
        let again = Correction { correction_id: correction.computed_id(), ..correction };
        sound(&again);
        let ack = again.ack(again.next_action("next"));
        assert!(ack.is_reflected());
        assert_eq!(CorrectionAck::parse(&ack.to_json()).expect("an ack"), ack);
    }
    if let Some(text) = planted(data, pick(data)) {
        for error in [
            WorkerStatus::parse(&text).err(),
            CorrectionAck::parse(&text).err(),
            CorrectionRequest::parse(&text).err(),
            Correction::parse(&text).err(),
        ]
        .iter()
        .flatten()
        {
            keeps_quiet(error);
        }
    }
});

/// Its id is a function of everything else.
fn sound(correction: &Correction) {
    assert_eq!(correction.correction_id, correction.computed_id());
    let altered = Correction { message: format!("{}.", correction.message), ..correction.clone() };
    assert_ne!(altered.computed_id(), correction.computed_id());
}

fn round<T: PartialEq + std::fmt::Debug>(
    data: &[u8],
    parse: fn(&[u8]) -> Result<T, json::Error>,
    write: fn(&T) -> Vec<u8>,
) -> Option<T> {
    let value = frugal(data.len(), 400, || parse(data)).ok()?;
    let written = write(&value);
    let again = parse(&written).expect("what is written is read");
    assert_eq!(write(&again), written);
    Some(value)
}

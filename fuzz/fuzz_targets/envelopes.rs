//! The envelopes of the shared record: canonical once read, unknown members kept, digests those of their bytes, and quiet
//! about what they say when they are refused (§5.1, §7.1, §8).

#![no_main]

use fak_abi::Digest;
use fak_fuzz::{frugal, keeps_quiet, pick, planted};
use fak_sharedtask::{ArtifactRef, Envelope, HeldPatch, Limits, Patch, PatchResult, Record, TaskEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let planted = planted(data, pick(data));
    if let Some(record) = round::<Record>(data, planted.as_deref()) {
        // The digest with the revision blank, whatever it was.
        let moved = Record { rev: record.computed_rev(), ..record.clone() };
        assert_eq!(moved.computed_rev(), record.computed_rev());
    }
    round::<Patch>(data, planted.as_deref());
    round::<PatchResult>(data, planted.as_deref());
    round::<TaskEvent>(data, planted.as_deref());
    round::<ArtifactRef>(data, planted.as_deref());
    round::<HeldPatch>(data, planted.as_deref());
    if let Ok(draft) = Record::draft(data, &Limits::default()) {
        assert_eq!(draft.to_json(), draft.to_json());
    }
});

fn round<E: Envelope + PartialEq + std::fmt::Debug>(data: &[u8], planted: Option<&[u8]>) -> Option<E> {
    let limits = Limits::default();
    if let Some(Err(error)) = planted.map(|text| E::parse(text, &limits).map(|_| ())) {
        keeps_quiet(&error);
    }
    let value = frugal(data.len(), 800, || E::parse(data, &limits)).ok()?;
    let written = value.to_json();
    assert_eq!(value.digest(), Digest::of(&written));
    let again = E::parse(&written, &limits).expect("what is written is read");
    assert_eq!(again.to_json(), written);
    Some(value)
}

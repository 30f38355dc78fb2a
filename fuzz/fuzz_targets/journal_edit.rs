//! A good journal, edited: with a checkpoint kept outside, no edit passes that changes what it says, and a torn one recovers to
//! a prefix (§5.10).

#![no_main]

use std::sync::LazyLock;

use fak_abi::json::{Document, Limits, write_value};
use fak_fuzz::{Drip, edited};
use fak_sharedtask::{StoreConfig, TaskStore, VerifyOptions, verify_journal};
use libfuzzer_sys::fuzz_target;

static GOOD: &[u8] = include_bytes!("../../examples/journals/written-here.json");
static HELD: LazyLock<VerifyOptions> = LazyLock::new(|| {
    let summary = verify_journal(GOOD, &VerifyOptions::default()).expect("it verifies");
    VerifyOptions { checkpoint: summary.checkpoint(), ..VerifyOptions::default() }
});
static SAYS: LazyLock<Vec<u8>> = LazyLock::new(|| says(GOOD).expect("it is JSON"));

fn says(text: &[u8]) -> Option<Vec<u8>> {
    let value = Document::parse(text, &Limits::default()).ok()?.into_value();
    let mut out = Vec::new();
    write_value(&mut out, &value);
    Some(out)
}

fuzz_target!(|data: &[u8]| {
    let text = edited(GOOD, data);
    let verified = verify_journal(Drip(&text, 4096), &HELD);
    if verified.is_ok() {
        assert!(
            says(&text).is_none_or(|said| said == *SAYS),
            "an edit passed: {}",
            String::from_utf8_lossy(&text)
        );
    }
    let store = TaskStore::new(StoreConfig::default());
    if let Ok((task, torn)) = store.recover(&text[..]) {
        let mut written = Vec::new();
        store.journal(&task, &mut written).expect("a journal");
        let summary = verify_journal(&written[..], &VerifyOptions::default()).expect("it verifies");
        assert!(torn.is_some() || summary.entries > 0 || verified.is_err());
    }
});

//! Journals from outside: verified, loaded and recovered as streams. Whatever loads continues, and nothing loads that does not
//! verify (§5.10, §8).

#![no_main]

use fak_fuzz::{Drip, frugal, keeps_quiet, pick, planted};
use fak_sharedtask::{StoreConfig, TaskStore, VerifyOptions, verify_journal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let strict = VerifyOptions::default();
    let lenient = VerifyOptions { allow_opaque: true, ..VerifyOptions::default() };
    let verified = frugal(data.len(), 800, || verify_journal(data, &strict));
    let dripped = verify_journal(Drip(data, 1 + data.len() % 5), &strict);
    assert_eq!(format!("{verified:?}"), format!("{dripped:?}"));
    let opaque = verify_journal(data, &lenient);
    if let Ok(summary) = &verified {
        assert_eq!(opaque.as_ref().ok(), Some(summary));
        let checkpoint = summary.checkpoint().expect("a chain that is not opaque has a head");
        let held = VerifyOptions { checkpoint: Some(checkpoint), ..VerifyOptions::default() };
        assert!(verify_journal(data, &held).is_ok());
    }
    let store = TaskStore::new(StoreConfig::default());
    match frugal(data.len(), 1_600, || store.load(data)) {
        Ok(task) => {
            assert!(verified.is_ok(), "{verified:?}");
            let mut written = Vec::new();
            store.journal(&task, &mut written).expect("a journal");
            assert!(verify_journal(&written[..], &strict).is_ok());
        }
        Err(_) => assert!(store.tasks().is_empty()),
    }
    let store = TaskStore::new(StoreConfig::default());
    match store.recover(data) {
        Ok((task, torn)) => {
            assert!(torn.is_some() || verified.is_ok());
            let mut written = Vec::new();
            store.journal(&task, &mut written).expect("a journal");
            assert!(verify_journal(&written[..], &strict).is_ok());
        }
        Err(_) => assert!(store.tasks().is_empty()),
    }
    if let Some(text) = planted(data, pick(data)) {
        for error in [
            verify_journal(&text[..], &lenient).map(drop).map_err(|error| error.to_string()).err(),
            TaskStore::new(StoreConfig::default())
                .load(&text[..])
                .map(drop)
                .map_err(|error| error.to_string())
                .err(),
        ]
        .iter()
        .flatten()
        {
            keeps_quiet(error);
        }
    }
});

//! The small words of the protocol: ids, keys, digests, times and the closed names. What is read is written as it was, and
//! what is written is read (§4.1, §5.6, §8).

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use fak_abi::{
    Capability, ChannelKey, Digest, Id, Locale, MAX_ID_BYTES, PrincipalKind, Reason, ShareScope, Taint,
    Timestamp, VerdictKind,
};
use fak_comm::Reduction;
use fak_fuzz::frugal;
use fak_scenario::printable;
use fak_sharedtask::{EventId, Hash, TaskId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    frugal(text.len(), 64, || {
        if let Ok(id) = Id::new(text) {
            assert_eq!(id.as_str(), text);
            assert!((1..=MAX_ID_BYTES).contains(&text.len()));
            assert!(!text.chars().any(|c| c.is_control() || turns(c)));
            quoted(&id.quoted().to_string());
        }
        if let Ok(key) = text.parse::<ChannelKey>() {
            assert_eq!(format!("{}:{}", key.locale(), key.id().as_str()), text);
            quoted(key.to_string().split_once(':').expect("a locale").1);
        }
        for (name, found) in [
            closed::<Locale>(text),
            closed::<Capability>(text),
            closed::<Reason>(text),
            closed::<Taint>(text),
            closed::<ShareScope>(text),
            closed::<PrincipalKind>(text),
            closed::<VerdictKind>(text),
            closed::<Digest>(text),
            closed::<TaskId>(text),
            closed::<EventId>(text),
            closed::<Hash>(text),
        ] {
            assert!(found.is_none_or(|found| found == text), "{name}");
        }
        let _ = text.parse::<Reduction>();
        if let Ok(time) = text.parse::<Timestamp>() {
            assert_eq!(time.to_string().parse::<Timestamp>().expect("a time that is written is read"), time);
        }
        let shown = printable(text);
        assert!(!shown.chars().any(|c| c.is_control() || turns(c)));
    });
});

/// A name that is read is written the same.
fn closed<T: FromStr<Err: Debug> + Display>(text: &str) -> (&'static str, Option<String>) {
    (std::any::type_name::<T>(), text.parse::<T>().ok().map(|value| value.to_string()))
}

fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One quoted string that ends where it says.
fn quoted(text: &str) {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("quotes");
    let mut escaped = false;
    for c in inner.chars() {
        assert!(escaped || c != '"', "{text}");
        escaped = !escaped && c == '\\';
    }
    assert!(!escaped, "{text}");
}

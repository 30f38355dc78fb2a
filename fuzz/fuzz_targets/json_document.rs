//! The strict JSON reader and the canonical writer (§7.1, §8), against a widespread reader.

#![no_main]

use fak_abi::json::{Document, Kind, Limits, Number, Value, write_value};
use fak_fuzz::{MARKER, frugal, keeps_quiet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let limits = Limits::default();
    let theirs = serde_json::from_slice::<serde_json::Value>(data);
    match frugal(data.len(), 400, || Document::parse(data, &limits).map(Document::into_value)) {
        Ok(value) => {
            let theirs = theirs.expect("what the strict reader takes, others take");
            assert!(same(&value, &theirs));
            let canonical = written(&value);
            let again = Document::parse(&canonical, &limits).expect("what is written is read").into_value();
            assert!(
                same(&again, &serde_json::from_slice(&canonical).expect("others read it too"))
                    && like(&value, &again)
            );
            assert_eq!(written(&again), canonical);
            for narrow in
                [Limits { bytes: data.len(), nesting: 64 }, Limits { bytes: data.len(), nesting: 3 }]
            {
                let found = Document::parse(data, &narrow).map(Document::into_value);
                assert!(found.is_ok_and(|found| found == value) || narrow.nesting == 3);
            }
            assert!(
                Document::parse(data, &Limits { bytes: data.len().saturating_sub(1), nesting: 64 }).is_err()
            );
        }
        Err(error) => {
            assert!(
                error.place().offset <= data.len() && error.place().line >= 1 && error.place().column >= 1
            );
        }
    }
    // Beside a body, whatever is wrong after it.
    if !data.windows(MARKER.len()).any(|part| part == MARKER.as_bytes()) {
        let beside = [format!("{{\"body\":\"{MARKER}\",\"x\":").as_bytes(), data, b"}"].concat();
        if let Err(error) = Document::parse(&beside, &limits) {
            keeps_quiet(&error);
        }
    }
});

fn written(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value);
    out
}

/// Equal to what another reader read.
fn same(ours: &Value, theirs: &serde_json::Value) -> bool {
    match (ours.kind(), theirs) {
        (Kind::Null, serde_json::Value::Null) => true,
        (Kind::Bool(a), serde_json::Value::Bool(b)) => a == b,
        (Kind::Number(Number::U64(a)), serde_json::Value::Number(b)) if b.is_u64() => b.as_u64() == Some(*a),
        (Kind::Number(Number::I64(a)), serde_json::Value::Number(b)) if b.is_i64() => b.as_i64() == Some(*a),
        (Kind::Number(a), serde_json::Value::Number(b)) => b.as_f64() == Some(a.as_f64()),
        (Kind::String(a), serde_json::Value::String(b)) => **a == **b,
        (Kind::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Kind::Object(a), serde_json::Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|m| b.get(&*m.name).is_some_and(|b| same(&m.value, b)))
        }
        _ => false,
    }
}

/// Equal but for the order of members, with numbers as doubles: what canonical writing keeps.
fn like(a: &Value, b: &Value) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::Number(a), Kind::Number(b)) => a.as_f64() == b.as_f64(),
        (Kind::Array(a), Kind::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| like(a, b)),
        (Kind::Object(a), Kind::Object(_)) => {
            a.iter().all(|m| b.member(&m.name).is_some_and(|value| like(&m.value, value)))
        }
        (a, b) => a == b,
    }
}

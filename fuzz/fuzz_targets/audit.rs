//! Audit logs from outside: any bytes are read line by line, verified, opened and repaired; a log that opens is continued and
//! verifies (§3.6, §8).

#![no_main]

use fak_abi::Timestamp;
use fak_adjudicate::{AuditLog, AuditOptions, AuditReader, AuditRecord, Checkpoint, verify_audit};
use fak_fuzz::frugal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = AuditRecord::parse(data);
    if let Ok(checkpoint) = Checkpoint::parse(data) {
        assert_eq!(Checkpoint::parse(checkpoint.to_json().as_bytes()).expect("a checkpoint"), checkpoint);
    }
    let verified = frugal(data.len(), 400, || verify_audit(data, None));
    let mut reader = AuditReader::new(data);
    let mut count = 0;
    while let Ok(Some(record)) = reader.next_record() {
        count += 1;
        assert_eq!(record.n, count);
    }
    if let Ok(verified) = &verified {
        assert_eq!((verified.end, verified.bytes), (reader.end(), data.len() as u64));
        assert!(verify_audit(data, Some(&verified.end)).is_ok());
    }
    match AuditLog::open(data, data.to_vec(), Timestamp::from_micros(0), AuditOptions::default()) {
        Ok((_audit, mut log, opened)) => {
            assert!(opened.torn.is_some() != verified.is_ok());
            let drained = log.drain().expect("a vector takes all");
            assert_eq!(drained.lines, u64::from(opened.torn.is_some()));
            let again = verify_audit(&log.sink()[..], Some(&opened.end)).expect("a repaired log verifies");
            assert_eq!(again.end, log.checkpoint());
            assert!(log.sink().starts_with(&data[..reader.bytes() as usize]));
        }
        Err(error) => assert!(verified.is_err(), "{error}"),
    }
});

//! Row 19: from the start of the command to the first verdict of a small scenario, process and all.
//!
//! `cargo bench -p fak-cli --bench start`

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::path::Path;
use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};

fn first_verdict(c: &mut Criterion) {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/scenarios/window-03-a-rule-on-sending.json")
        .canonicalize()
        .unwrap();
    let mut group = c.benchmark_group("row19_start");
    group.sample_size(50);
    // What starting a process costs that does nothing else.
    group.bench_function("version", |b| b.iter(|| run(&["--version".as_ref()])));
    group.bench_function("first_verdict", |b| b.iter(|| run(&["run".as_ref(), scenario.as_os_str()])));
    group.finish();
}

fn run(arguments: &[&std::ffi::OsStr]) {
    let status = Command::new(env!("CARGO_BIN_EXE_fak"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

criterion_group!(benches, first_verdict);
criterion_main!(benches);

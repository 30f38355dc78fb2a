//! `path run NAME SIZE TIMES` does one path so often, for a tool that counts what the process does; `path time NAME SIZE` prints
//! the least nanoseconds that one of it took.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement that does not work stops"
)]

use std::time::{Duration, Instant};

use measure::{PATHS, Path};

/// How long one measurement takes at least, unless one world does not last.
const LONG: Duration = Duration::from_millis(20);
/// Measurements, of which the quickest counts.
const TRIES: u32 = 15;
/// When no further measurement is begun.
const ENOUGH: Duration = Duration::from_secs(3);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", name, size, times] => {
            let path = find(name);
            let times = number(times);
            assert!(times <= path.most, "{name} can be done {} times", path.most);
            let mut run = (path.make)(number(size));
            run.go(times);
            // What taking the world apart costs is not the act's.
            std::mem::forget(run);
        }
        ["time", name, size] => println!("{}", quickest(find(name), number(size))),
        _ => panic!("usage: path run NAME SIZE TIMES | path time NAME SIZE"),
    }
}

fn find(name: &str) -> &'static Path {
    PATHS.iter().find(|path| path.name == name).unwrap_or_else(|| panic!("no path is called \"{name}\""))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("\"{text}\" is no number"))
}

/// Nanoseconds that one took where it took least: what else the machine does only adds.
fn quickest(path: &Path, size: u64) -> f64 {
    let mut run = (path.make)(size);
    let mut done = 0;
    let mut times = 1;
    let mut least = f64::INFINITY;
    let mut tries = 0;
    let start = Instant::now();
    while tries < TRIES && (start.elapsed() < ENOUGH || tries < 3) {
        if done + times > path.most {
            run = (path.make)(size);
            done = 0;
        }
        let begun = Instant::now();
        run.go(times);
        let took = begun.elapsed();
        done += times;
        least = least.min(took.as_nanos() as f64 / times as f64);
        if took < LONG && times < path.most / 2 {
            times *= 2;
        } else {
            tries += 1;
        }
    }
    least
}

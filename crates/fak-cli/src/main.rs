//! The `fak` command.
fn main() {}

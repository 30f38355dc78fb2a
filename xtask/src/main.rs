//! Build tasks of the workspace.
fn main() {}

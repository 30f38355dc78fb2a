//! Paths and globs, three to a text by line: whatever two globs cover in common, they overlap in (§6.7).

#![no_main]

use fak_comm::{Glob, LanePath, Tree};
use fak_fuzz::frugal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let (a, b, path) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let path = frugal(path.len(), 256, || LanePath::parse(path));
    let (Ok(a), Ok(b)) = (frugal(a.len(), 256, || Glob::parse(a)), frugal(b.len(), 256, || Glob::parse(b)))
    else {
        return;
    };
    assert_eq!(a.overlaps(&b), b.overlaps(&a));
    assert!(a.overlaps(&a) && b.overlaps(&b));
    let trees = (Tree::new(vec![a.clone()]), Tree::new(vec![b.clone()]));
    assert_eq!(trees.0.meets(&trees.1).is_some(), a.overlaps(&b));
    assert!(trees.0.meets(&Tree::default()).is_some());
    // A literal glob names a path, and covers it and what is below.
    if let Ok(named) = LanePath::parse(a.as_str()) {
        let literal = !a.as_str().contains(['*', '?', '[', '{']);
        assert!(a.covers(&named) || !literal);
        assert!(!b.covers(&named) || !literal || a.overlaps(&b));
    }
    let Ok(path) = path else { return };
    if a.covers(&path) && b.covers(&path) {
        assert!(a.overlaps(&b));
    }
    assert!(!a.covers_all() || a.covers(&path));
    assert_eq!(trees.0.covers(&path), a.covers(&path));
});

//! Lane tables: read, linted and asked what runs together (§6.7, §8).

#![no_main]

use fak_comm::{Region, Taxonomy, run_together};
use fak_fuzz::frugal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(taxonomy) =
        frugal(text.len(), 4_000, || text.parse::<Taxonomy>()).inspect_err(|error| drop(error.to_string()))
    else {
        return;
    };
    let names: Vec<&str> = taxonomy.lanes().map(|lane| lane.name().as_str()).take(24).collect();
    // Whatever conflicts, conflicts both ways, and a lane with itself always.
    let regions: Vec<Region> =
        names.iter().filter_map(|name| taxonomy.lane(name)).map(Region::from).collect();
    let mut pairs = 0;
    for (i, a) in regions.iter().enumerate() {
        assert!(a.conflicts(a).is_some());
        for b in regions.iter().skip(i + 1) {
            assert_eq!(a.conflicts(b).is_some(), b.conflicts(a).is_some());
            pairs += usize::from(a.conflicts(b).is_some());
        }
    }
    assert_eq!(run_together(&taxonomy, &names).is_clear(), pairs == 0);
    assert!(!run_together(&taxonomy, &["no such lane \u{7f}"]).unknown.is_empty());
    if taxonomy.lanes().len() <= 64 {
        let lint = taxonomy.lint();
        assert_eq!(lint.is_clean(), lint.findings() == 0);
        let _ = lint.to_string();
    }
});

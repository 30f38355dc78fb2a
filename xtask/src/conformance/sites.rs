//! Every check that a crate makes is known to `fak explain`: what the sources name is looked up in the list.

use std::collections::BTreeSet;

use crate::repo::Repo;

/// The check that a line makes: `check: "a/b"` of a literal, or `NAME = "a/b", "§…"` of a list.
fn made(line: &str) -> Option<&str> {
    let (before, rest) = line.trim_start().split_once('"')?;
    let (name, after) = rest.split_once('"')?;
    let before = before.trim_end();
    let is_site =
        before.ends_with("check:") || (before.ends_with('=') && after.trim_start().starts_with(", \"§"));
    (is_site && !before.starts_with("//")).then_some(name)
}

/// §3.5: whoever meets a refusal can ask what it means.
#[test]
fn every_check_of_the_sources_is_explained() {
    let repo = Repo::locate().unwrap();
    let listed: BTreeSet<&str> = fak_scenario::checks().iter().map(|site| site.check).collect();
    let mut found = BTreeSet::new();
    for file in repo.files("crates", "rs").unwrap() {
        if !repo.show(&file).contains("/src/") {
            continue;
        }
        let text = repo.text(&file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        found.extend(product.lines().filter_map(made).map(str::to_owned));
    }
    assert!(found.len() > 100, "{}", found.len());
    let unknown: Vec<_> = found.iter().filter(|check| !listed.contains(check.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

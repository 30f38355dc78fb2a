//! The freeze (§2): every public name, field, variant and discriminant of this crate is pinned by
//! `golden.txt`. Removing or renumbering one fails; adding one is an event, made by adding its line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The public surface of the crate's sources, a line an item: `file: item`.
fn surface(dir: &Path, prefix: &str, out: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            surface(&path, &format!("{prefix}{name}/"), out);
        } else if name.ends_with(".rs") && name != "differential.rs" {
            items(&fs::read_to_string(&path).unwrap(), &format!("{prefix}{name}"), out);
        }
    }
}

fn items(source: &str, file: &str, out: &mut BTreeSet<String>) {
    // What encloses a line, by its indentation: the item that opened it, and whether its members
    // are public as it is (variants of an enum, methods of a trait).
    let mut open: Vec<(usize, String, bool)> = Vec::new();
    for line in source.lines().take_while(|line| line.trim() != "#[cfg(test)]") {
        let text = line.trim();
        let indent = line.len() - line.trim_start().len();
        if text.is_empty() || text.starts_with("//") || text.starts_with('#') || text.starts_with('}') {
            continue;
        }
        open.retain(|(at, ..)| *at < indent);
        let parent = open.last().map_or(String::new(), |(_, name, _)| format!("{name}::"));
        let members = open.last().is_some_and(|(at, _, members)| *members && indent == at + 4);
        if let Some(item) =
            text.strip_prefix("pub ").and_then(head).or_else(|| members.then(|| member(text)).flatten())
        {
            out.insert(format!("{file}: {parent}{item}"));
        }
        if text.ends_with('{') {
            let opened = text.strip_prefix("pub ").unwrap_or(text);
            if let Some(name) = block(opened) {
                let all = opened.starts_with("enum ") || opened.starts_with("trait ");
                open.push((indent, name, all && text.starts_with("pub ")));
            }
        }
    }
}

/// The name of an item, constant, function or field, with what makes it that.
fn head(text: &str) -> Option<String> {
    let text = text.trim_start_matches("const fn ").trim_start_matches("fn ");
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || " _".contains(*c)).collect();
    (!name.starts_with("use ") && !name.starts_with("mod ") && !name.trim().is_empty())
        .then(|| name.trim().to_owned())
}

/// A variant with its number and written name, or a trait's method.
fn member(text: &str) -> Option<String> {
    if let Some(method) = text.strip_prefix("fn ") {
        return Some(method.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
    }
    text.starts_with(|c: char| c.is_ascii_uppercase())
        .then(|| text.trim_end_matches([',', '{', ' ']).to_owned())
}

/// The name of the item that a line opens: a type's own, or that of the type an `impl` is for.
fn block(text: &str) -> Option<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let kinds = ["enum ", "struct ", "trait ", "acts! "];
    let name = match kinds.iter().find_map(|kind| text.strip_prefix(kind)) {
        Some(rest) => word(rest),
        None if text.starts_with("impl") => {
            let of = text.rsplit_once(" for ").map_or_else(|| text.trim_start_matches("impl"), |(_, of)| of);
            // Skip the generics of the block itself.
            let of = of.strip_prefix('<').and_then(|rest| rest.split_once("> ")).map_or(of, |(_, of)| of);
            word(of)
        }
        None => word(text),
    };
    (!name.is_empty()).then_some(name)
}

#[test]
fn the_public_surface_is_frozen() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    surface(&root.join("src"), "", &mut found);
    assert!(found.len() > 400, "the scan found only {} items: it has gone blind", found.len());
    let found: Vec<_> = found.into_iter().collect();
    expect_test::expect_file!["golden.txt"].assert_eq(&(found.join("\n") + "\n"));
}

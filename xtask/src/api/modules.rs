//! The source of a crate: its modules, each with its items, those for tests left out.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item};

use crate::error::TaskError;

/// The modules of a crate by path; the root is the empty path.
pub(super) type Tree = BTreeMap<Vec<String>, Vec<Item>>;

/// Reads a crate from its root file. A file that is no Rust is a finding.
pub(super) fn read(root: &Path) -> Result<Result<Tree, String>, TaskError> {
    let mut tree = Tree::new();
    // Path of the module, its file, and the folder its own modules are in.
    let mut open = vec![(Vec::new(), root.to_owned(), root.parent().unwrap_or(Path::new("")).to_owned())];
    while let Some((path, file, folder)) = open.pop() {
        let text = fs::read_to_string(&file).map_err(|source| TaskError::Io {
            verb: "read",
            path: file.clone(),
            source,
        })?;
        match syn::parse_file(&text) {
            Ok(parsed) => place(parsed.items, path, &folder, &mut tree, &mut open),
            Err(error) => return Ok(Err(format!("\"{}\": {error}", file.display()))),
        }
    }
    Ok(Ok(tree))
}

/// Puts the items of a module into the tree, and its modules in line.
fn place(
    items: Vec<Item>,
    path: Vec<String>,
    folder: &Path,
    tree: &mut Tree,
    open: &mut Vec<(Vec<String>, PathBuf, PathBuf)>,
) {
    let mut kept = Vec::new();
    for mut item in items {
        if attributes(&item).iter().any(for_tests) {
            continue;
        }
        if let Item::Mod(module) = &mut item {
            let name = module.ident.to_string();
            let below = [path.clone(), vec![name.clone()]].concat();
            match module.content.take() {
                Some((_, items)) => place(items, below, &folder.join(&name), tree, open),
                None => {
                    let beside = folder.join(format!("{name}.rs"));
                    let file = if beside.is_file() { beside } else { folder.join(&name).join("mod.rs") };
                    open.push((below, file, folder.join(&name)));
                }
            }
        }
        kept.push(item);
    }
    tree.insert(path, kept);
}

/// `#[cfg(test)]`, or for documentation alone.
fn for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.meta.require_list().is_ok_and(|list| {
            let condition = list.tokens.to_string();
            condition == "test" || condition == "doctest"
        })
}

/// The attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

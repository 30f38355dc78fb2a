//! What can be reached from outside a crate: what its root declares or exports, through re-exports to where it stands, with the
//! implementations for it wherever they are.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, ItemImpl, Type, UseTree, Visibility};

use super::{item, modules::Tree};

/// Where an item stands: its module, and its name there.
type Found = (Vec<String>, String);

/// Everything public, in order of the names it is reached by.
pub(super) fn list(tree: &Tree) -> Result<String, String> {
    let mut reached = BTreeMap::new();
    let mut foreign = BTreeSet::new();
    reach(tree, &[], &mut Vec::new(), &mut reached, &mut foreign)?;
    let places: BTreeSet<&Found> = reached.values().collect();
    let impls = implementations(tree, &places);
    let mut out = String::new();
    for line in &foreign {
        out.push_str(line);
        out.push('\n');
    }
    if !foreign.is_empty() {
        out.push('\n');
    }
    for (name, place) in &reached {
        out.push_str(&format!("// {name}\n"));
        let declared = declared(tree, place).ok_or_else(|| format!("cannot find what {name} stands for"))?;
        out.push_str(&item::written(declared)?);
        let about = impls.iter().filter(|(at, _)| *at == place).map(|(_, it)| *it);
        out.push_str(&item::implementations(about, |name| is_private_trait(tree, &places, name))?);
        out.push('\n');
    }
    Ok(out)
}

/// Follows a module's public items and re-exports.
fn reach(
    tree: &Tree,
    module: &[String],
    prefix: &mut Vec<String>,
    reached: &mut BTreeMap<String, Found>,
    foreign: &mut BTreeSet<String>,
) -> Result<(), String> {
    for item in tree.get(module).into_iter().flatten() {
        match item {
            Item::Use(it) if is_public(&it.vis) => {
                for (path, name) in leaves(&it.tree) {
                    match resolve(tree, module, &path) {
                        Some(found) => {
                            reached.insert(joined(prefix, &name), found);
                        }
                        None => {
                            foreign.insert(format!("pub use {};", path.join("::")));
                        }
                    }
                }
            }
            Item::Mod(it) if is_public(&it.vis) => {
                let name = it.ident.to_string();
                let below = [module, std::slice::from_ref(&name)].concat();
                prefix.push(name);
                reach(tree, &below, prefix, reached, foreign)?;
                prefix.pop();
            }
            other => {
                if let Some(name) = item::public_name(other) {
                    reached.insert(joined(prefix, &name), (module.to_vec(), name));
                }
            }
        }
    }
    Ok(())
}

fn joined(prefix: &[String], name: &str) -> String {
    prefix.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::")
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Each path that a `use` names, and the name it gets.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), tree)];
    while let Some((mut path, tree)) = open.pop() {
        match tree {
            UseTree::Path(it) => {
                path.push(it.ident.to_string());
                open.push((path, &it.tree));
            }
            UseTree::Name(it) => {
                path.push(it.ident.to_string());
                let name = it.ident.to_string();
                found.push((path, name));
            }
            UseTree::Rename(it) => {
                path.push(it.ident.to_string());
                found.push((path, it.rename.to_string()));
            }
            UseTree::Group(group) => open.extend(group.items.iter().map(|tree| (path.clone(), tree))),
            UseTree::Glob(_) => {
                path.push("*".to_owned());
                found.push((path, "*".to_owned()));
            }
        }
    }
    found
}

/// The place that a path in `module` leads to, through further `use`s of this crate.
fn resolve(tree: &Tree, module: &[String], path: &[String]) -> Option<Found> {
    let (name, steps) = path.split_last()?;
    let mut at = module.to_vec();
    for step in steps {
        match step.as_str() {
            "self" => {}
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            step => at.push(step.to_owned()),
        }
    }
    let place = (at, name.clone());
    if declared(tree, &place).is_some() {
        return Some(place);
    }
    tree.get(&place.0)?.iter().find_map(|item| match item {
        Item::Use(it) => leaves(&it.tree)
            .into_iter()
            .find(|(path, given)| given == name && path.as_slice() != [name.clone()])
            .and_then(|(path, _)| resolve(tree, &place.0, &path)),
        _ => None,
    })
}

/// The item that stands at a place; what a macro makes is the macro's call.
fn declared<'t>(tree: &'t Tree, (module, name): &Found) -> Option<&'t Item> {
    let items = tree.get(module)?;
    let named = items.iter().find(|item| item::name(item).is_some_and(|found| found == *name));
    named.or_else(|| items.iter().find(|item| item::makes(item, items, name)))
}

/// The implementations for items that are reached, each with where its type stands.
fn implementations<'t>(tree: &'t Tree, places: &BTreeSet<&'t Found>) -> Vec<(&'t Found, &'t ItemImpl)> {
    let mut found = Vec::new();
    for (module, items) in tree {
        for item in items {
            let Item::Impl(it) = item else { continue };
            let Type::Path(path) = &*it.self_ty else { continue };
            let Some(name) = path.path.segments.last().map(|segment| segment.ident.to_string()) else {
                continue;
            };
            // In its own module a name is the one declared there; elsewhere the one that is exported.
            let here = (module.clone(), name.clone());
            let place = if declared(tree, &here).is_some() {
                places.get(&here).copied()
            } else {
                resolve(tree, module, std::slice::from_ref(&name))
                    .and_then(|place| places.get(&place).copied())
            };
            found.extend(place.map(|place| (place, it)));
        }
    }
    found
}

/// Whether a trait is this crate's and cannot be reached: what implements it is nobody's business.
fn is_private_trait(tree: &Tree, places: &BTreeSet<&Found>, name: &str) -> bool {
    let declares =
        |items: &Vec<Item>| items.iter().any(|item| matches!(item, Item::Trait(it) if it.ident == name));
    tree.values().any(declares) && !places.iter().any(|(_, reached)| reached == name)
}

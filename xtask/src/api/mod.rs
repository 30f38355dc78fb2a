//! `cargo xtask api`: the public items of each crate as its source declares them, compared with the listing in `docs/api`, so
//! that no change of them goes unseen. `modules` finds the source, `surface` what of it can be reached from outside, `item`
//! how an item is written down. Needs no nightly toolchain; what a macro makes is listed as what the macro is given.

mod item;
mod modules;
mod surface;

use std::{fs, path::Path};

use crate::{cargo, error::TaskError, repo::Repo, report::Report};

/// Where the listings are.
const FOLDER: &str = "docs/api";

/// What to do with what is found.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Keep what the crates declare now as what they should declare
    #[arg(long)]
    bless: bool,
}

/// Compares every library crate that is published with its listing.
pub(crate) fn check(repo: &Repo, options: &Options) -> Result<Report, TaskError> {
    let mut report = Report::new("api");
    let metadata = cargo::metadata(repo)?;
    let mut crates = 0;
    for package in metadata.workspace_packages() {
        let published = package.publish.as_ref().is_none_or(|registries| !registries.is_empty());
        let library = package.targets.iter().find(|target| target.is_lib());
        let Some(library) = library.filter(|_| published) else { continue };
        crates += 1;
        let found = match listing(&package.name, library.src_path.as_std_path())? {
            Ok(found) => found,
            Err(problem) => {
                report.finding(package.name.to_string(), problem, "extend xtask/src/api to read it");
                continue;
            }
        };
        let path = repo.path(&format!("{FOLDER}/{}.txt", package.name));
        if options.bless {
            write(&path, &found)?;
        }
        compare(repo, &path, &found, &mut report)?;
    }
    report.fact(format!("{crates} crates listed in {FOLDER}"));
    Ok(report)
}

/// The listing of one crate.
fn listing(name: &str, root: &Path) -> Result<Result<String, String>, TaskError> {
    let tree = match modules::read(root)? {
        Ok(tree) => tree,
        Err(problem) => return Ok(Err(problem)),
    };
    let body = surface::list(&tree);
    Ok(body.map(|body| {
        format!("// Public items of {name}. `cargo xtask api --bless` writes this file.\n\n{body}")
    }))
}

fn write(path: &Path, text: &str) -> Result<(), TaskError> {
    let failed = |source| TaskError::Io { verb: "write", path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

fn compare(repo: &Repo, path: &Path, found: &str, report: &mut Report) -> Result<(), TaskError> {
    let shown = repo.show(path);
    let fix = "if the change is meant, keep it with `cargo xtask api --bless` and say why in the commit";
    match repo.text_if_there(path)? {
        None => report.finding(shown, "there is no listing", fix),
        Some(wanted) if wanted != found => {
            let line =
                wanted.lines().zip(found.lines()).take_while(|(wanted, found)| wanted == found).count();
            let at = |text: &str| text.lines().nth(line).unwrap_or("nothing").trim().to_owned();
            let what = format!("listed \"{}\", declared \"{}\"", at(&wanted), at(found));
            report.finding(format!("{shown}:{}", line + 1), what, fix);
        }
        Some(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate of a root and one module.
    fn listed(root: &str, inner: &str) -> String {
        let parse = |text: &str| syn::parse_file(text).unwrap().items;
        let mut tree = modules::Tree::new();
        tree.insert(Vec::new(), parse(root));
        tree.insert(vec!["inner".to_owned()], parse(inner));
        surface::list(&tree).unwrap()
    }

    #[test]
    fn what_is_exported_is_listed_without_what_is_private() {
        let found = listed(
            "mod inner; pub use inner::{Thing, Made as Other};",
            "/// Doc.\n#[derive(Clone)] pub struct Thing { pub a: u8, b: Secret }
            impl Thing { /// Doc.\n #[must_use = \"why\"] pub fn a(&self) -> u8 { self.a } fn hidden(&self) {} }
            impl Thing { pub const B: u8 = 2; }
            impl Clone for Secret {} impl Show for Thing { type Out = u8; fn show() {} } impl Inside for Thing {}
            trait Inside {} struct Secret;
            pub struct Unreached;
            macro_rules! make { ($name:ident) => { pub struct $name; } } make! { /// Doc.\n Made }",
        );
        let lines: Vec<&str> = found.lines().map(str::trim).collect();
        for line in [
            "// Thing",
            "#[derive(Clone)]",
            "pub a: u8,",
            "_private: _,",
            "#[must_use]",
            "pub fn a(&self) -> u8 {}",
            "pub const B: u8 = 2;",
            "impl Show for Thing {",
            "type Out = u8;",
            "// Other",
        ] {
            assert!(lines.contains(&line), "{line:?} is not in\n{found}");
        }
        assert!(found.contains("make! {") && found.contains("Made"), "{found}");
        for text in ["Secret", "hidden", "Doc.", "why", "Unreached", "Inside", "show"] {
            assert!(!found.contains(text), "{text:?} is in\n{found}");
        }
    }

    #[test]
    fn an_export_that_leads_nowhere_is_no_silence() {
        assert!(
            listed("pub use inner::Gone; pub use serde::Serialize;", "").contains("pub use inner::Gone;")
        );
    }
}

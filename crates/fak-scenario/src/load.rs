//! Files: finding scenarios, reading them within a limit, and looking up what they name without leaving their folder. The one
//! place of this crate that touches a disk.

use std::{
    fs,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use fak_abi::json::{Document, Limits, Value};
use fak_adjudicate::{Policy, PolicyError};

use crate::error::{Place, ScenarioError};

/// The schema of a scenario.
pub(crate) const SCHEMA: &str = "fak.scenario.v1";

/// The most a scenario or a file it names may have, in bytes (§8).
pub const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// Whether a scenario may name files outside its folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Only files in the scenario's folder or below.
    #[default]
    Folder,
    /// Any file.
    Anywhere,
}

/// The scenario files a path stands for: itself, or every scenario in the folder and below, sorted by path. In a folder, JSON
/// files that are plainly something else, such as a journal that a scenario loads, are passed over, and so is what only has the
/// name of a file, such as a pipe.
///
/// # Errors
///
/// [`ScenarioError::Read`] if a folder cannot be listed, [`ScenarioError::Empty`] if a folder holds no scenario.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ScenarioError::Read { path, source }
    };
    if !fs::metadata(path).map_err(failed(path))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            let path = entry.path();
            if entry.file_type().map_err(failed(&path))?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "json") && may_be_scenario(&path) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(ScenarioError::Empty { path: path.to_owned() });
    }
    found.sort();
    Ok(found)
}

/// Whether a file is, or was meant to be, a scenario. What cannot be read is reported by whoever reads it.
fn may_be_scenario(path: &Path) -> bool {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return false;
    }
    let Ok(bytes) = read(path) else { return true };
    let Ok(document) = Document::parse(&bytes, &Limits::default()) else { return true };
    let root = document.root().value();
    root.member("steps").is_some()
        || root.member("schema").and_then(Value::as_str).is_some_and(|schema| schema == SCHEMA)
}

/// The bytes of a file of at most [`FILE_LIMIT`].
///
/// # Errors
///
/// [`ScenarioError::Read`] and [`ScenarioError::TooLarge`].
pub fn read(path: &Path) -> Result<Vec<u8>, ScenarioError> {
    let failed = |source| ScenarioError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(FILE_LIMIT + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(ScenarioError::TooLarge { path: path.to_owned(), limit: FILE_LIMIT });
    }
    Ok(bytes)
}

/// As [`read`], a file that another one names: a pipe or a device could keep its reader waiting for ever.
pub(crate) fn read_named(path: &Path) -> Result<Vec<u8>, ScenarioError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let source = io::Error::other("expected a regular file");
        return Err(ScenarioError::Read { path: path.to_owned(), source });
    }
    read(path)
}

/// The policy in a text: JSON if the file's name says so, TOML otherwise (§3.7).
///
/// # Errors
///
/// [`PolicyError`] with file, line, key and a caret.
pub fn read_policy(path: &Path, text: &str) -> Result<Policy, PolicyError> {
    let file = path.display().to_string();
    match path.extension() {
        Some(end) if end == "json" => Policy::from_json(&file, text),
        _ => Policy::from_toml(&file, text),
    }
}

/// Where a file named by the scenario at `base` is, if it may be named.
pub(crate) fn resolve(
    base: &Path,
    wanted: &str,
    reach: Reach,
    place: &Place,
) -> Result<PathBuf, ScenarioError> {
    let folder = base.parent().unwrap_or_else(|| Path::new(""));
    let path = folder.join(wanted);
    if reach == Reach::Anywhere {
        return Ok(path);
    }
    let outside = || ScenarioError::Outside { place: Box::new(place.clone()), wanted: wanted.to_owned() };
    if climbs(Path::new(wanted)) {
        return Err(outside());
    }
    // A link may lead out as well. What does not exist leads nowhere and is reported when it is read.
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match (fs::canonicalize(here), fs::canonicalize(&path)) {
        (Ok(here), Ok(there)) if !there.starts_with(&here) => Err(outside()),
        _ => Ok(path),
    }
}

/// Whether a relative path leaves its folder on the way.
fn climbs(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return true,
            },
            Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leaves_its_folder_climbs() {
        for path in ["../x", "a/../../x", "/etc/x", "a/b/../../../x"] {
            assert!(climbs(Path::new(path)), "{path}");
        }
        for path in ["x", "a/x", "a/../x", "./x", "a/./b"] {
            assert!(!climbs(Path::new(path)), "{path}");
        }
    }
}

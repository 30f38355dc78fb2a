//! The repository on disk: where it is, which files it has, and how they are read. What the files mean is elsewhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::error::TaskError;

/// The root of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Repo {
    root: PathBuf,
}

impl Repo {
    /// The workspace that this program was built from.
    pub(crate) fn locate() -> Result<Self, TaskError> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root =
            root.canonicalize().map_err(|source| TaskError::Io { verb: "find", path: root, source })?;
        Ok(Self { root })
    }

    /// The root folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path as people write it: relative to the root, with `/`.
    pub(crate) fn show(&self, path: &Path) -> String {
        let parts: Vec<_> = path
            .strip_prefix(&self.root)
            .unwrap_or(path)
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        parts.join("/")
    }

    /// The files below a folder whose name ends in `.extension`, sorted; none if the folder is not there. Build output and
    /// hidden folders are passed over.
    pub(crate) fn files(&self, folder: &str, extension: &str) -> Result<Vec<PathBuf>, TaskError> {
        let mut found = Vec::new();
        let mut open = vec![self.path(folder)];
        while let Some(directory) = open.pop() {
            if !directory.is_dir() {
                continue;
            }
            let unreadable = |source| TaskError::Io { verb: "list", path: directory.clone(), source };
            for entry in fs::read_dir(&directory).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                if path.is_dir() {
                    if name != "target" && !name.starts_with('.') {
                        open.push(path);
                    }
                } else if path.extension().is_some_and(|found| found == extension) {
                    found.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// A file's text.
    pub(crate) fn text(&self, path: &Path) -> Result<String, TaskError> {
        fs::read_to_string(path).map_err(|source| TaskError::Io {
            verb: "read",
            path: path.to_owned(),
            source,
        })
    }

    /// A file's text, if the file is there.
    pub(crate) fn text_if_there(&self, path: &Path) -> Result<Option<String>, TaskError> {
        if path.is_file() { self.text(path).map(Some) } else { Ok(None) }
    }

    /// A file as JSON.
    pub(crate) fn json(&self, path: &Path) -> Result<Value, TaskError> {
        serde_json::from_str(&self.text(path)?)
            .map_err(|source| TaskError::Json { path: path.to_owned(), source })
    }

    /// Writes a file that is there.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<(), TaskError> {
        fs::write(path, text).map_err(|source| TaskError::Io { verb: "write", path: path.to_owned(), source })
    }

    /// Writes a JSON report, making its folder.
    pub(crate) fn write_json(
        &self,
        relative: &str,
        value: &impl serde::Serialize,
    ) -> Result<PathBuf, TaskError> {
        let path = self.path(relative);
        let mut text = serde_json::to_string_pretty(value).map_err(TaskError::Encode)?;
        text.push('\n');
        let failed = |source| TaskError::Io { verb: "write", path: path.clone(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&path, text).map_err(failed)?;
        Ok(path)
    }
}

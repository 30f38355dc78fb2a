//! The `fak` command as a person and a program meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod errors;
mod help;
mod newcomer;
mod verbs;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// What a run of the command came to.
struct Ran {
    status: i32,
    out: String,
    err: String,
}

/// Runs `fak` in the project's root, without colours or a terminal.
fn fak(args: &[&str]) -> Ran {
    fak_in(&root(), args)
}

fn fak_in(folder: &Path, args: &[&str]) -> Ran {
    let ran = Command::new(env!("CARGO_BIN_EXE_fak"))
        .args(args)
        .current_dir(folder)
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    Ran {
        status: ran.status.code().unwrap(),
        out: String::from_utf8(ran.stdout).unwrap(),
        err: String::from_utf8(ran.stderr).unwrap(),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of this test's own, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("fak-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.0.join(name), text).unwrap();
        self
    }

    fn fak(&self, args: &[&str]) -> Ran {
        fak_in(&self.0, args)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left over if it fails; the system clears it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

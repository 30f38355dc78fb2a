//! The example programs print what stands beside them.

use std::{env, fs, path::Path, process::Command};

use expect_test::expect_file;

/// Every program of `examples/`, built by `cargo test` beside this test, runs and prints its `.out`, in under 120 lines of its own.
#[test]
fn every_example_program_tells_its_story() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let tests = env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples");
    let mut ran = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let source = entry.unwrap().path();
        if source.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = source.file_stem().unwrap().to_str().unwrap();
        let lines = fs::read_to_string(&source).unwrap().lines().count();
        assert!(lines < 120, "{name} has {lines} lines");
        let program = built.join(format!("{name}{}", env::consts::EXE_SUFFIX));
        assert!(program.is_file(), "{name} is not built: run `cargo test -p fak-scenario`, which builds it");
        let output = Command::new(&program).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        expect_file![source.with_extension("out")].assert_eq(&printed);
        ran += 1;
    }
    assert_eq!(ran, PROGRAMS);
}

/// How many there are, so that none goes unnoticed.
const PROGRAMS: usize = 11;

/// What the README shows is the first program, and what it prints.
#[test]
fn the_readme_shows_the_first_program() {
    let readme = include_str!("../../../../README.md");
    let block = |fence: &str| {
        let (_, rest) = readme.split_once(&format!("```{fence}\n")).unwrap();
        rest.split_once("```").unwrap().0
    };
    let program = include_str!("../../examples/first.rs");
    assert!(program.ends_with(&format!("use {}", block("rust").strip_prefix("use ").unwrap())));
    assert_eq!(block("text"), include_str!("../../examples/first.out"));
}

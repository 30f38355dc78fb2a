//! Tests that cite clauses: found in the sources, looked up among the tests that were built, and known to have passed from
//! what the test runner printed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    clauses::{Number, citations},
    incidents,
};
use crate::{
    cargo::{self, Place, Program},
    error::TaskError,
    repo::Repo,
    report::Report,
    tidy::blank,
};

/// A test that cites clauses or incidents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Citing {
    /// `crates/x/src/y.rs:12`.
    pub(super) place: String,
    pub(super) package: String,
    at: Site,
    pub(super) clauses: Vec<Number>,
    /// The incidents its comment (`I09`) or name (`i09_…`) cites.
    pub(super) incidents: Vec<u32>,
}

impl Citing {
    /// The file it stands in, relative to the root.
    pub(super) fn file(&self) -> &str {
        self.place.rsplit_once(':').map_or(&*self.place, |(file, _)| file)
    }

    /// Its name, without the modules.
    pub(super) fn function(&self) -> &str {
        &self.at.function
    }
}

/// Where a test function stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Site {
    in_tests: bool,
    /// The module of its file.
    module: String,
    function: String,
}

/// The tests of the workspace and how they ended.
pub(super) struct Tests {
    programs: Vec<Program>,
    /// The names each program lists.
    listed: Vec<BTreeSet<String>>,
    /// How each test ended, by program file name and test name; `true` is passed.
    ended: BTreeMap<(String, String), bool>,
}

/// What is known of a citing test.
pub(super) enum Known {
    /// It ran and passed, under this name.
    Passed(String),
    /// It ran and did not pass.
    Failed(String),
    /// It is built, and there is no word of its having run.
    NotRun(String),
    /// No test of this name was built.
    Absent,
}

impl Tests {
    /// Builds the tests and lists them. How they ended is read from a log of `cargo test`, or found by running those that
    /// `citing` names.
    pub(super) fn load(
        repo: &Repo,
        log: Option<&Path>,
        citing: &[Citing],
        report: &mut Report,
    ) -> Result<Self, TaskError> {
        let mut programs = cargo::build_or_report(repo, &["test", "--workspace", "--no-run"], report)?;
        programs.retain(|program| program.tests);
        let mut tests = Self { programs, listed: Vec::new(), ended: BTreeMap::new() };
        for program in &tests.programs {
            let arguments = ["--list", "--format", "terse"].map(str::to_owned);
            let output = cargo::output(&program.path, &arguments, &program.folder)?;
            let names = String::from_utf8_lossy(&output.stdout)
                .lines()
                .filter_map(|line| line.strip_suffix(": test").map(str::to_owned))
                .collect();
            tests.listed.push(names);
        }
        match log {
            Some(log) => tests.read(&repo.text(log)?),
            None => tests.run(citing)?,
        }
        Ok(tests)
    }

    /// How many tests were built.
    pub(super) fn count(&self) -> usize {
        self.listed.iter().map(BTreeSet::len).sum()
    }

    /// What is known of a test.
    pub(super) fn known(&self, citing: &Citing) -> Known {
        let Some((program, name)) = self.find(citing) else { return Known::Absent };
        let key = (file_name(program), name.to_owned());
        match self.ended.get(&key) {
            Some(true) => Known::Passed(name.to_owned()),
            Some(false) => Known::Failed(name.to_owned()),
            None => Known::NotRun(name.to_owned()),
        }
    }

    /// The program and name a citing test was built as.
    fn find(&self, citing: &Citing) -> Option<(&Program, &str)> {
        let of_package = |program: &Program| {
            program.package == citing.package && (program.place == Place::Tests) == citing.at.in_tests
        };
        self.programs.iter().zip(&self.listed).filter(|(program, _)| of_package(program)).find_map(
            |(program, names)| {
                let name = names.iter().find(|name| citing.at.is(name))?;
                Some((program, name.as_str()))
            },
        )
    }

    /// Runs the tests that cite clauses, a program at a time.
    fn run(&mut self, citing: &[Citing]) -> Result<(), TaskError> {
        let wanted: BTreeSet<(String, String)> = citing
            .iter()
            .filter_map(|citing| self.find(citing))
            .map(|(program, name)| (file_name(program), name.to_owned()))
            .collect();
        let mut logs = Vec::new();
        for program in &self.programs {
            let mut arguments = vec!["--exact".to_owned()];
            arguments.extend(
                wanted.iter().filter(|(file, _)| *file == file_name(program)).map(|(_, name)| name.clone()),
            );
            if arguments.len() > 1 {
                let output = cargo::output(&program.path, &arguments, &program.folder)?;
                logs.push(format!(
                    "Running it ({})\n{}",
                    program.path.display(),
                    String::from_utf8_lossy(&output.stdout)
                ));
            }
        }
        self.read(&logs.join("\n"));
        Ok(())
    }

    /// Reads what the test runner printed: `Running … (program)`, then a line a test.
    fn read(&mut self, log: &str) {
        let known: BTreeSet<String> = self.programs.iter().map(file_name).collect();
        let mut current = None;
        for line in log.lines() {
            if let Some(path) = line.trim_start().strip_prefix("Running ") {
                let name = path.trim_end_matches(')').rsplit(['/', '(']).next().unwrap_or_default();
                current = known.get(name).cloned();
            } else if line.trim_start().starts_with("Doc-tests ") {
                current = None;
            } else if let (Some(program), Some((name, passed))) = (&current, ended(line)) {
                self.ended.insert((program.clone(), name.to_owned()), passed);
            }
        }
    }
}

/// The test and outcome in a line `test a::b ... ok`.
fn ended(line: &str) -> Option<(&str, bool)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = name.split(" - ").next().unwrap_or(name);
    if outcome.starts_with("ignored") {
        return None;
    }
    Some((name, outcome == "ok"))
}

fn file_name(program: &Program) -> String {
    program.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Site {
    /// Whether a listed name is this function in this file, in whatever module inside the file.
    fn is(&self, name: &str) -> bool {
        let (module, function) = name.rsplit_once("::").unwrap_or(("", name));
        let inside = module.strip_prefix(&self.module);
        function == self.function
            && inside.is_some_and(|rest| self.module.is_empty() || rest.is_empty() || rest.starts_with("::"))
    }
}

/// Every test of the workspace that cites a clause or an incident in the comment above it or on its line.
pub(super) fn citing(repo: &Repo, report: &mut Report) -> Result<Vec<Citing>, TaskError> {
    let mut found = Vec::new();
    let mut files = 0;
    for path in repo.files("crates", "rs")? {
        let shown = repo.show(&path);
        let Some((package, site)) = site(&shown) else { continue };
        files += 1;
        for (line, function, comment) in test_functions(&repo.text(&path)?) {
            let clauses = citations(&comment);
            let incidents = incidents::cited(&comment);
            if !clauses.is_empty() || !incidents.is_empty() {
                let at = Site { function, ..site.clone() };
                found.push(Citing {
                    place: format!("{shown}:{line}"),
                    package: package.clone(),
                    at,
                    clauses,
                    incidents,
                });
            }
        }
    }
    report.fact(format!("{} tests in {files} files cite a clause or an incident", found.len()));
    Ok(found)
}

/// The package and module of a file that can hold tests.
fn site(path: &str) -> Option<(String, Site)> {
    let mut parts = path.strip_prefix("crates/")?.split('/');
    let package = parts.next()?.to_owned();
    let in_tests = match parts.next()? {
        "src" => false,
        "tests" => true,
        _ => return None,
    };
    let mut modules: Vec<&str> = parts.collect();
    let file = modules.pop()?.strip_suffix(".rs")?;
    if in_tests && !modules.is_empty() {
        // `tests/it/a.rs` is the module `a` of the program `it`.
        modules.remove(0);
    }
    if !matches!(file, "lib" | "main" | "mod") {
        modules.push(file);
    }
    Some((package, Site { in_tests, module: modules.join("::"), function: String::new() }))
}

/// Line, name and comment of each test function; the comment includes the function's own line.
fn test_functions(text: &str) -> Vec<(usize, String, String)> {
    let code = blank(text);
    let mut found = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    let mut test = false;
    let mut attribute_open = 0_i64;
    for (index, (raw, code)) in text.lines().zip(code.lines()).enumerate() {
        let trimmed = raw.trim();
        let opens = code.matches(['(', '[', '{']).count();
        let closes = code.matches([')', ']', '}']).count();
        let balance = i64::try_from(opens).unwrap_or(0) - i64::try_from(closes).unwrap_or(0);
        if attribute_open > 0 {
            attribute_open += balance;
        } else if trimmed.starts_with("//") {
            above.push(trimmed);
        } else if trimmed.starts_with("#[") {
            test |= ["#[test]", "::test]", "::test("].iter().any(|mark| code.contains(mark));
            attribute_open = balance.max(0);
        } else {
            if test && let Some(function) = function_name(code) {
                above.push(trimmed);
                found.push((index + 1, function, above.join("\n")));
            }
            above.clear();
            test = false;
        }
    }
    found
}

/// The name of the function that a line of code opens.
fn function_name(code: &str) -> Option<String> {
    let mut words = code.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.find(|word| *word == "fn")?;
    words.find(|word| !word.is_empty()).map(str::to_owned)
}

#[cfg(test)]
pub(super) mod unit {
    use super::*;

    /// One program of the package `a` that lists `tests`, and a log of its run.
    pub(in crate::conformance) fn made_up(tests: &[&str], log: &str) -> Tests {
        let program = Program {
            package: "a".to_owned(),
            folder: "/".into(),
            place: Place::Source,
            target: "a".to_owned(),
            tests: true,
            path: "/t/deps/a-1".into(),
        };
        let listed = vec![tests.iter().map(ToString::to_string).collect()];
        let mut tests = Tests { programs: vec![program], listed, ended: BTreeMap::new() };
        tests.read(log);
        tests
    }

    /// A test function `f` of the module `m` that cites what its comment says.
    pub(in crate::conformance) fn citing_f(comment: &str) -> Citing {
        let at = Site { in_tests: false, module: "m".to_owned(), function: "f".to_owned() };
        let (place, package) = ("crates/a/src/m.rs:1".to_owned(), "a".to_owned());
        Citing { place, package, at, clauses: citations(comment), incidents: incidents::cited(comment) }
    }

    #[test]
    fn a_log_tells_which_tests_of_which_program_passed() {
        let known = |log: &str| match made_up(&["m::tests::f"], log).known(&citing_f("")) {
            Known::Passed(_) => "passed",
            Known::Failed(_) => "failed",
            Known::NotRun(_) => "not run",
            Known::Absent => "absent",
        };
        let running = "     Running unittests src/lib.rs (target/debug/deps/a-1)\n";
        assert_eq!(known(&format!("{running}test m::tests::f ... ok")), "passed");
        assert_eq!(known(&format!("{running}test m::tests::f ... FAILED")), "failed");
        assert_eq!(known(&format!("{running}a line (of output)\ntest m::tests::f ... ok")), "passed");
        assert_eq!(known("     Running x (target/debug/deps/b-2)\ntest m::tests::f ... ok"), "not run");
        assert_eq!(known(&format!("{running}   Doc-tests a\ntest m::tests::f ... ok")), "not run");
        assert!(matches!(made_up(&["m::g"], "").known(&citing_f("")), Known::Absent));
    }

    #[test]
    fn test_functions_are_found_with_what_is_said_above_them() {
        let text = "/// §1.1\nfn helper() {}\n\n/// A. §4.4\n#[tokio::test(\n  start_paused = true\n)]\nasync fn one() {}\n\n// §2.1\n\n#[test]\nfn two() { // §2.2\n}\nproptest! {\n    /// §3.1\n    #[test]\n    fn three(x in 0..1) {}\n}";
        let found: Vec<_> = test_functions(text)
            .into_iter()
            .map(|(line, name, comment)| {
                (line, name, citations(&comment).iter().map(ToString::to_string).collect::<String>())
            })
            .collect();
        let expected = [(8, "one", "§4.4"), (13, "two", "§2.2"), (18, "three", "§3.1")];
        assert_eq!(found, expected.map(|(line, name, clause)| (line, name.to_owned(), clause.to_owned())));
    }

    #[test]
    fn a_file_says_where_its_tests_are_listed() {
        for (path, in_tests, module) in [
            ("crates/a/src/lib.rs", false, ""),
            ("crates/a/src/b/mod.rs", false, "b"),
            ("crates/a/src/b/c.rs", false, "b::c"),
            ("crates/a/tests/it/main.rs", true, ""),
            ("crates/a/tests/it/d.rs", true, "d"),
        ] {
            let (package, site) = site(path).unwrap();
            assert_eq!(
                (package.as_str(), site.in_tests, site.module.as_str()),
                ("a", in_tests, module),
                "{path}"
            );
        }
        assert_eq!(site("crates/a/benches/b.rs"), None);
    }

    #[test]
    fn a_listed_name_is_matched_by_module_and_function() {
        let site = Site { in_tests: false, module: "b".to_owned(), function: "f".to_owned() };
        assert!(site.is("b::tests::f") && site.is("b::f"));
        assert!(!site.is("bc::f") && !site.is("f") && !site.is("b::tests::g"));
    }

    #[test]
    fn lines_of_the_test_runner_are_read() {
        assert_eq!(ended("test a::b ... ok"), Some(("a::b", true)));
        assert_eq!(ended("test a::b - should panic ... ok"), Some(("a::b", true)));
        assert_eq!(ended("test a::b ... FAILED"), Some(("a::b", false)));
        assert_eq!(ended("test a::b ... ignored, slow"), None);
        assert_eq!(ended("test result: ok. 1 passed"), None);
    }
}

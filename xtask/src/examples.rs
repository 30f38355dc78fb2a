//! `cargo xtask examples`: every example program of the workspace runs, and prints exactly what is kept beside its source
//! (`examples/rendezvous.rs` prints `examples/rendezvous.out`).

use std::{fs, path::Path};

use crate::{
    cargo::{self, Place, Program},
    error::TaskError,
    repo::Repo,
    report::Report,
};

/// How to treat what the programs print.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Keep what they print now as what they should print
    #[arg(long)]
    bless: bool,
}

/// Runs them.
pub(crate) fn check(repo: &Repo, options: &Options) -> Result<Report, TaskError> {
    let mut report = Report::new("examples");
    let mut programs = cargo::build_or_report(repo, &["build", "--workspace", "--examples"], &mut report)?;
    programs.retain(|program| program.place == Place::Examples);
    if programs.is_empty() {
        report.missing("example programs in crates/*/examples");
    }
    for program in &programs {
        judge(repo, program, options, &mut report)?;
    }
    report.fact(format!("{} example programs ran", programs.len()));
    Ok(report)
}

/// Runs one and compares what it prints.
fn judge(repo: &Repo, program: &Program, options: &Options, report: &mut Report) -> Result<(), TaskError> {
    let kept = program.folder.join("examples").join(format!("{}.out", program.target));
    let place = format!("{} (example {})", program.package, program.target);
    let output = cargo::output(&program.path, &[], &program.folder)?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = stderr.lines().last().unwrap_or_default().to_owned();
        report.finding(
            place,
            format!("ended with {}: {said}", output.status),
            "mend the example or what it shows",
        );
        return Ok(());
    }
    if options.bless {
        return fs::write(&kept, printed).map_err(|source| TaskError::Io {
            verb: "write",
            path: kept,
            source,
        });
    }
    match repo.text_if_there(&kept)? {
        None => report.finding(place, "nothing says what it prints", bless(repo, &kept)),
        Some(wanted) if wanted != printed => {
            let line = wanted.lines().zip(printed.lines()).take_while(|(wanted, got)| wanted == got).count();
            let at = |text: &str| text.lines().nth(line).unwrap_or("nothing").to_owned();
            let what = format!("line {}: expected \"{}\", got \"{}\"", line + 1, at(&wanted), at(&printed));
            report.finding(place, what, bless(repo, &kept));
        }
        Some(_) => {}
    }
    Ok(())
}

fn bless(repo: &Repo, kept: &Path) -> String {
    format!("if what it prints is right, keep it in {} with `cargo xtask examples --bless`", repo.show(kept))
}

//! The one place that writes to the terminal.

use std::io::{self, Write as _};

use crate::{error::TaskError, report::Report};

/// Writes one line to standard output.
pub(crate) fn line(text: &str) -> Result<(), TaskError> {
    writeln!(io::stdout().lock(), "{text}").map_err(TaskError::Output)
}

/// Writes a report: what was seen, what is missing, what is wrong and how to mend it.
pub(crate) fn report(report: &Report) -> Result<(), TaskError> {
    line(&format!("{}: {}", report.name, report.status()))?;
    for fact in &report.facts {
        line(&format!("  {fact}"))?;
    }
    for missing in &report.missing {
        line(&format!("  missing: {missing}"))?;
    }
    for finding in &report.findings {
        line(&format!("  {}: {}\n    fix: {}", finding.place, finding.what, finding.fix))?;
    }
    Ok(())
}

/// Writes rows as aligned columns; the first row is the heading.
pub(crate) fn table(rows: &[Vec<String>]) -> Result<(), TaskError> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        line(cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// Writes an error to standard error; nothing can be done if that fails too.
pub(crate) fn error(error: &TaskError) {
    drop(writeln!(io::stderr().lock(), "error: {error}"));
}

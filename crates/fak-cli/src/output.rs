//! Where `fak` writes: text or JSON to standard output, errors and progress to standard error. Colour and progress only on a
//! terminal, and no colour where `NO_COLOR` is set or the terminal is `dumb`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use fak_scenario::{ScenarioError, Style, printable};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::failure::Failure;

pub(crate) struct Output {
    json: bool,
    style: Style,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let colour = io::stdout().is_terminal() && !plain && !dumb;
        Self { json, style: if colour { Style::Colour } else { Style::Plain } }
    }

    /// Whether a program reads this.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// How text is coloured.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// Writes to standard output.
    pub(crate) fn text(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        let text = text.as_ref();
        let mut out = io::stdout().lock();
        let written = if text.ends_with('\n') { write!(out, "{text}") } else { writeln!(out, "{text}") };
        match written {
            // Whoever reads has heard enough: `fak run … | head` is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(Failure::Output),
        }
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json_of(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        self.text(serde_json::to_string(value).map_err(|error| Failure::Output(error.into()))?)
    }

    /// Writes to standard error.
    pub(crate) fn error(&mut self, text: &str) {
        let mut err = io::stderr().lock();
        for line in text.split('\n') {
            // There is nowhere left to complain to.
            let _ = writeln!(err, "{}", printable(line));
        }
    }

    /// Says everything that is wrong with a scenario.
    pub(crate) fn complain(&mut self, error: &ScenarioError) {
        for one in error.each() {
            self.error(&format!("fak: {one}"));
        }
        if let ScenarioError::Several { more: more @ 1.., .. } = error {
            self.error(&format!("fak: and {more} more: mend these first"));
        }
    }

    /// A bar over `steps` on a terminal, for runs that take their time; invisible elsewhere, in short runs, and where lines
    /// that are shown anyway tell how far it is.
    pub(crate) fn progress(&self, steps: usize, quiet: bool) -> ProgressBar {
        const LONG: usize = 20;
        let bar = ProgressBar::new(u64::try_from(steps).unwrap_or(u64::MAX));
        if self.json || steps < LONG || !io::stderr().is_terminal() || (io::stdout().is_terminal() && !quiet)
        {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        bar
    }
}

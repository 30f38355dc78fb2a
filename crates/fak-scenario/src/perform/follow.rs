//! Which failed steps may only follow from an earlier one: they go on with what it named, or at the same place.

use std::collections::BTreeMap;

use super::record::task_address;
use crate::{
    act::{Act, RecordAct, Step},
    report::StepReport,
};

/// Names and places that belong together because one step had to do with both.
#[derive(Default)]
struct Together {
    numbers: BTreeMap<String, usize>,
    /// What each was joined to; its own number where it leads.
    leads: Vec<usize>,
}

impl Together {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.leads.len();
        self.leads.push(number);
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn lead(&self, mut at: usize) -> usize {
        while let Some(next) = self.leads.get(at).copied().filter(|next| *next != at) {
            at = next;
        }
        at
    }

    fn join(&mut self, one: &str, other: &str) {
        let (one, other) = (self.number(one), self.number(other));
        let (one, other) = (self.lead(one), self.lead(other));
        // The smaller leads, so that what leads is always before what follows.
        if let Some(lead) = self.leads.get_mut(one.max(other)) {
            *lead = one.min(other);
        }
    }
}

/// The place of a record that was to be made: where it was not, its step is at none.
fn created(step: &Step) -> Option<String> {
    let Act::Record(RecordAct::Create { record }) = &step.act else { return None };
    Some(task_address(&record.task_id()?))
}

/// Marks every failed step that shares a name or a place with an earlier failed one, or that sums up what was done so far.
pub(super) fn mark(steps: &[Step], reports: &mut [StepReport]) {
    if reports.iter().filter(|report| !report.mismatches.is_empty()).nth(1).is_none() {
        return;
    }
    let mut together = Together::default();
    let places: Vec<Vec<String>> = steps
        .iter()
        .zip(reports.iter())
        .map(|(step, report)| {
            let place = report.address.clone().or_else(|| created(step));
            step.names.iter().cloned().chain(place).collect()
        })
        .collect();
    for names in &places {
        for pair in names.windows(2) {
            if let [one, other] = pair {
                together.join(one, other);
            }
        }
    }
    // The first that failed, and the first at each place.
    let (mut first, mut first_at) = (None, BTreeMap::new());
    for (report, names) in reports.iter_mut().zip(&places) {
        if report.mismatches.is_empty() {
            continue;
        }
        let place = names.first().map(|name| {
            let number = together.number(name);
            together.lead(number)
        });
        let sums_up = matches!(report.act, "audit" | "stats" | "held" | "who");
        report.follows = if sums_up { first } else { place.and_then(|place| first_at.get(&place).copied()) };
        first.get_or_insert(report.number);
        if let Some(place) = place {
            first_at.entry(place).or_insert(report.number);
        }
    }
}

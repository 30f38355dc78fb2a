//! The drawing of the layers in docs/architecture.md says what the table says: the same crates on the same layers, no arrow the
//! table does not have, and every edge of the table along its arrows.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{OUTSIDE, TABLE, place};
use crate::report::Report;

/// Where the layers are drawn, in the first Mermaid graph.
pub(super) const FILE: &str = "docs/architecture.md";

const FIX: &str = "make the drawing and xtask/src/layering/table.rs say the same";

/// Crates by their name in the drawing, and its arrows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Drawing {
    /// Crate and layer, by node.
    nodes: BTreeMap<String, (String, Option<u8>)>,
    arrows: Vec<(String, String)>,
}

/// Compares the drawing in a document with the table.
pub(super) fn check(text: &str, report: &mut Report) {
    let Some(drawing) = read(text) else {
        report.finding(FILE, "has no Mermaid graph of the layers", FIX);
        return;
    };
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (node, (name, layer)) in &drawing.nodes {
        match place(name) {
            Some(place) if *layer == Some(place.layer) => {}
            Some(place) => {
                report.finding(FILE, format!("draws {name} elsewhere than on L{}", place.layer), FIX);
            }
            None => report.finding(FILE, format!("draws {node}, which is no crate of the table"), FIX),
        }
    }
    for (from, to) in &drawing.arrows {
        let (Some((from, _)), Some((to, _))) = (drawing.nodes.get(from), drawing.nodes.get(to)) else {
            report.finding(FILE, format!("draws {from} --> {to} without saying what they are"), FIX);
            continue;
        };
        if !place(from).is_some_and(|place| place.may_use.contains(&to.as_str())) {
            report.finding(FILE, format!("draws {from} --> {to}, which the table does not have"), FIX);
        }
        reach.entry(from).or_default().insert(to);
    }
    close(&mut reach);
    for from in TABLE.iter().filter(|from| drawing.nodes.values().any(|(name, _)| name == from.name)) {
        for to in from.may_use {
            if !reach.get(from.name).is_some_and(|reached| reached.contains(to)) {
                report.finding(FILE, format!("draws no way from {} to {to}", from.name), FIX);
            }
        }
    }
    for absent in TABLE
        .iter()
        .filter(|row| row.layer < OUTSIDE && !drawing.nodes.values().any(|(name, _)| name == row.name))
    {
        report.finding(FILE, format!("does not draw {}", absent.name), FIX);
    }
}

/// Adds to what each crate reaches what that reaches in turn, until nothing is added.
fn close(reach: &mut BTreeMap<&str, BTreeSet<&str>>) {
    let crates: Vec<&str> = reach.keys().copied().collect();
    let mut grown = true;
    while grown {
        grown = false;
        for from in &crates {
            let direct = reach.get(from).into_iter().flatten();
            let further: Vec<&str> = direct.filter_map(|to| reach.get(to)).flatten().copied().collect();
            for to in further {
                grown |= reach.get_mut(from).is_some_and(|reached| reached.insert(to));
            }
        }
    }
}

/// Reads the first Mermaid graph: `id["L1 · name<br/>…"]` and `a --> b & c`.
fn read(text: &str) -> Option<Drawing> {
    let mut lines = text.lines().skip_while(|line| line.trim() != "```mermaid").skip(1);
    lines.next().filter(|line| line.trim_start().starts_with("graph"))?;
    let mut drawing = Drawing::default();
    for line in lines.take_while(|line| line.trim() != "```") {
        if let Some((from, to)) = line.split_once("-->") {
            for to in to.split('&') {
                drawing.arrows.push((from.trim().to_owned(), to.trim().to_owned()));
            }
        } else if let Some((node, label)) = line.split_once('[') {
            let label = label.trim_matches(['"', ']', ' ']);
            let first = label.split("<br/>").next().unwrap_or_default();
            let (layer, name) = first.split_once(" · ").unwrap_or(("", first));
            let layer = layer.strip_prefix('L').and_then(|digit| digit.parse().ok());
            drawing.nodes.insert(node.trim().to_owned(), (name.trim().to_owned(), layer));
        }
    }
    Some(drawing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "```mermaid\ngraph TD\n cli[\"L4 · fak-cli<br/>x\"]\n s[\"L3 · fak-scenario\"]\n t[\"L2 · fak-sharedtask\"]\n o[\"L2 · fak-agenttopo\"]\n k[\"L1 · fak-adjudicate\"]\n c[\"L1 · fak-a2achan\"]\n m[\"L1 · fak-comm\"]\n a[\"L0 · fak-abi\"]\n cli --> s\n s --> t & o & k & c & m\n t --> c\n o --> m\n k --> a\n c --> a\n m --> a\n```";

    fn faults(text: &str) -> Vec<String> {
        let mut report = Report::new("x");
        check(text, &mut report);
        report.findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_drawing_that_says_what_the_table_says_passes() {
        assert_eq!(faults(GOOD), [""; 0]);
    }

    #[test]
    fn what_the_two_say_differently_is_found() {
        for (from, to, fault) in [
            (" k --> a\n", "", "draws no way from fak-adjudicate to fak-abi"),
            (
                " k --> a\n",
                " k --> a\n m --> c\n",
                "draws fak-comm --> fak-a2achan, which the table does not have",
            ),
            ("L0 · fak-abi", "L1 · fak-abi", "draws fak-abi elsewhere than on L0"),
            ("graph TD", "sequenceDiagram", "has no Mermaid graph of the layers"),
        ] {
            assert_eq!(faults(&GOOD.replace(from, to)), [fault], "{to}");
        }
    }
}

//! Judges a graph of crates against the table. Pure: the graph is handed in, so that tests can make one up.

use super::table::{BARE, KERNEL, Place, RESERVED, place};
use crate::report::Finding;

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The crate needs it to be built.
    Product,
    /// Only its tests and benches do.
    Tests,
}

/// One dependency, by package name; `to` may be a crate of the workspace or an outside library.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) used_for: Use,
}

/// Every fault of the graph, in the order of its crates and edges.
pub(super) fn judge(crates: &[String], edges: &[Edge]) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        crates.iter().filter(|name| place(name).is_none()).map(|name| unknown(name)).collect();
    for edge in edges {
        if crates.contains(&edge.to) {
            let (Some(from), Some(to)) = (place(&edge.from), place(&edge.to)) else {
                continue;
            };
            findings.extend(own_edge(edge, from, to));
        } else {
            findings.extend(outside_edge(edge));
        }
    }
    findings
}

fn unknown(name: &str) -> Finding {
    Finding {
        place: name.to_owned(),
        what: "this crate of the workspace has no layer".to_owned(),
        fix: "give it a row in xtask/src/layering/table.rs and draw it in docs/architecture.md".to_owned(),
    }
}

/// Judges an edge between two crates of the table.
fn own_edge(edge: &Edge, from: &Place, to: &Place) -> Option<Finding> {
    let drawn = from.may_use.contains(&to.name);
    let for_tests = edge.used_for == Use::Tests && to.layer <= from.layer;
    if drawn || for_tests {
        return None;
    }
    let (what, fix) = if to.layer > from.layer {
        let fix = if edge.used_for == Use::Tests {
            format!("move the test up into {} or a layer above it", to.name)
        } else {
            format!(
                "define a seam (a trait) in fak-abi that {} implements, and take it as an argument",
                to.name
            )
        };
        ("goes up", fix)
    } else if to.layer == from.layer {
        let fix = if to.name == KERNEL {
            "take the kernel as `Arc<dyn Kernel>` of fak-abi; in tests make it a dev-dependency".to_owned()
        } else {
            "let the two meet in a seam of fak-abi; in tests make it a dev-dependency".to_owned()
        };
        ("stays in one layer", fix)
    } else {
        (
            "is not drawn",
            "use a crate that it may use, or draw the edge in table.rs and docs/architecture.md".to_owned(),
        )
    };
    Some(Finding {
        place: format!("{} (L{}) -> {} (L{})", from.name, from.layer, to.name, to.layer),
        what: format!("this edge {what}; {} may use {}", from.name, listed(from.may_use)),
        fix: format!("remove it from crates/{}/Cargo.toml: {fix}", from.name),
    })
}

/// Judges an edge to a library from outside.
fn outside_edge(edge: &Edge) -> Option<Finding> {
    let fault = |what: String, fix: String| {
        Some(Finding { place: format!("{} -> {}", edge.from, edge.to), what, fix })
    };
    if let Some((library, users)) = RESERVED.iter().find(|(library, _)| *library == edge.to)
        && !users.contains(&edge.from.as_str())
    {
        return fault(
            format!("only {} may use {library}", listed(users)),
            format!("remove it from {}, and do the work where the library already is", edge.from),
        );
    }
    let (bare, barred) = BARE;
    if edge.used_for == Use::Product && edge.from == bare && barred.contains(&edge.to.as_str()) {
        return fault(
            format!("{bare} has no runtime, no lock and no global"),
            "put what needs it in a layer above and leave a trait here".to_owned(),
        );
    }
    None
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "no other crate".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, used_for: Use) -> Edge {
        Edge { from: from.to_owned(), to: to.to_owned(), used_for }
    }

    fn faults(crates: &[&str], edges: &[Edge]) -> Vec<(String, String, String)> {
        let crates: Vec<String> = crates.iter().map(ToString::to_string).collect();
        judge(&crates, edges).into_iter().map(|finding| (finding.place, finding.what, finding.fix)).collect()
    }

    const ALL: &[&str] =
        &["fak-abi", "fak-adjudicate", "fak-a2achan", "fak-comm", "fak-sharedtask", "fak-cli", "xtask"];

    #[test]
    fn drawn_edges_pass() {
        let edges = [
            edge("fak-a2achan", "fak-abi", Use::Product),
            edge("fak-sharedtask", "fak-a2achan", Use::Product),
            edge("fak-cli", "fak-sharedtask", Use::Product),
            edge("xtask", "jsonschema", Use::Product),
        ];
        assert_eq!(faults(ALL, &edges), []);
    }

    #[test]
    fn an_edge_up_is_named_with_its_fix() {
        let found = faults(ALL, &[edge("fak-abi", "fak-adjudicate", Use::Product)]);
        let [(place, what, fix)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(place, "fak-abi (L0) -> fak-adjudicate (L1)");
        assert!(what.contains("goes up") && what.contains("no other crate"), "{what}");
        assert!(fix.contains("crates/fak-abi/Cargo.toml") && fix.contains("seam"), "{fix}");
    }

    #[test]
    fn siblings_may_not_know_each_other_except_in_tests() {
        assert_eq!(faults(ALL, &[edge("fak-comm", "fak-a2achan", Use::Product)]).len(), 1);
        assert_eq!(faults(ALL, &[edge("fak-comm", "fak-a2achan", Use::Tests)]), []);
        assert_eq!(faults(ALL, &[edge("fak-sharedtask", "fak-adjudicate", Use::Tests)]), []);
    }

    #[test]
    fn an_edge_that_goes_down_but_is_not_drawn_fails() {
        let found = faults(ALL, &[edge("fak-sharedtask", "fak-adjudicate", Use::Product)]);
        assert!(matches!(found.as_slice(), [(_, what, _)] if what.contains("is not drawn")), "{found:?}");
    }

    #[test]
    fn tests_may_not_reach_up() {
        for (from, to) in
            [("fak-abi", "fak-adjudicate"), ("fak-comm", "fak-sharedtask"), ("fak-cli", "xtask")]
        {
            let found = faults(ALL, &[edge(from, to, Use::Tests)]);
            assert!(matches!(found.as_slice(), [(_, what, _)] if what.contains("goes up")), "{found:?}");
        }
    }

    #[test]
    fn a_crate_without_a_layer_is_an_error() {
        let found = faults(&["fak-abi", "fak-new"], &[edge("fak-new", "fak-abi", Use::Product)]);
        assert!(matches!(found.as_slice(), [(place, _, _)] if place == "fak-new"), "{found:?}");
    }

    #[test]
    fn reserved_libraries_stay_where_they_are_even_in_tests() {
        assert_eq!(faults(ALL, &[edge("fak-sharedtask", "jsonschema", Use::Tests)]).len(), 1);
        assert_eq!(faults(ALL, &[edge("fak-abi", "tokio", Use::Product)]).len(), 1);
        assert_eq!(faults(ALL, &[edge("fak-abi", "tokio", Use::Tests)]), []);
        assert_eq!(faults(ALL, &[edge("fak-abi", "serde", Use::Product)]), []);
    }
}

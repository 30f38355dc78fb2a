//! The layers of the workspace and the edges between them, as docs/architecture.md draws them. This is the only place where
//! they are written down as data: a new crate or a new edge is a change here, to be justified in review.

/// A crate, its layer, and the crates of the workspace it may depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The package name.
    pub(crate) name: &'static str,
    /// 0 is the bottom.
    pub(crate) layer: u8,
    /// The edges drawn from it.
    pub(crate) may_use: &'static [&'static str],
}

/// The crate that tests of the layers beside and above it may use to have a kernel.
pub(crate) const KERNEL: &str = "fak-adjudicate";

/// Where the tools of the workspace stand: above every layer, and not drawn.
pub(crate) const OUTSIDE: u8 = 5;

/// Every crate of the workspace.
pub(crate) const TABLE: &[Place] = &[
    Place { name: "fak-abi", layer: 0, may_use: &[] },
    Place { name: "fak-adjudicate", layer: 1, may_use: &["fak-abi"] },
    Place { name: "fak-a2achan", layer: 1, may_use: &["fak-abi"] },
    Place { name: "fak-comm", layer: 1, may_use: &["fak-abi"] },
    Place { name: "fak-sharedtask", layer: 2, may_use: &["fak-abi", "fak-a2achan"] },
    Place { name: "fak-agenttopo", layer: 2, may_use: &["fak-abi", "fak-comm"] },
    Place { name: "fak-scenario", layer: 3, may_use: BELOW_SCENARIO },
    Place { name: "fak-cli", layer: 4, may_use: BELOW_CLI },
    Place { name: "measure", layer: OUTSIDE, may_use: BELOW_SCENARIO },
    Place {
        name: "xtask",
        layer: OUTSIDE,
        may_use: &[
            "fak-abi",
            "fak-adjudicate",
            "fak-a2achan",
            "fak-comm",
            "fak-agenttopo",
            "fak-sharedtask",
            "fak-scenario",
        ],
    },
];

const BELOW_SCENARIO: &[&str] =
    &["fak-abi", "fak-adjudicate", "fak-a2achan", "fak-comm", "fak-sharedtask", "fak-agenttopo"];

const BELOW_CLI: &[&str] = &[
    "fak-abi",
    "fak-adjudicate",
    "fak-a2achan",
    "fak-comm",
    "fak-sharedtask",
    "fak-agenttopo",
    "fak-scenario",
];

/// Libraries that only the named crates may use, in any kind of dependency.
pub(crate) const RESERVED: &[(&str, &[&str])] = &[
    ("jsonschema", &["xtask"]),
    ("cargo_metadata", &["xtask"]),
    ("syn", &["xtask"]),
    ("prettyplease", &["xtask"]),
    ("clap", &["fak-cli", "xtask"]),
    ("indicatif", &["fak-cli", "xtask"]),
];

/// The crate that has no async, no I/O, no lock and no global, and libraries that would bring one (tests may use them).
pub(crate) const BARE: (&str, &[&str]) =
    ("fak-abi", &["tokio", "parking_lot", "dashmap", "arc-swap", "tracing"]);

/// The table row of a crate.
pub(crate) fn place(name: &str) -> Option<&'static Place> {
    TABLE.iter().find(|place| place.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_edge_goes_down_to_a_crate_of_the_table() {
        for from in TABLE {
            for name in from.may_use {
                let to = place(name).unwrap_or_else(|| panic!("{name} is not in the table"));
                assert!(to.layer < from.layer, "{} -> {name} does not go down", from.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_the_kernel_is_among_them() {
        let mut names: Vec<_> = TABLE.iter().map(|place| place.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
        assert!(place(KERNEL).is_some());
    }
}

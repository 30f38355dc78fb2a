//! Pictures of a topology as text for other programs: DOT and Mermaid. Ids are quoted so that none can end its label.

use std::fmt::Write as _;

use crate::topology::Topology;

impl Topology {
    /// The topology in Graphviz' DOT language: members by rank with their lanes, edges in declaration order.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut text = format!("digraph {} {{\n  rankdir=LR;\n", dot(self.name()));
        for (rank, member) in self.group().members().iter().enumerate() {
            let label = match member.lane() {
                Some(lane) => format!("{} ({lane})", member.id()),
                None => member.id().to_string(),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  n{rank} [label={}];", dot(&label));
        }
        for (from, to) in self.rank_edges() {
            let _ = writeln!(text, "  n{from} -> n{to};");
        }
        text.push_str("}\n");
        text
    }

    /// The topology as a Mermaid flowchart: members by rank with their lanes, edges in declaration order.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        let mut text = format!("---\ntitle: {}\n---\nflowchart LR\n", dot(self.name()));
        for (rank, member) in self.group().members().iter().enumerate() {
            let lane = member.lane().map(|lane| format!("<br/>{}", mermaid(lane))).unwrap_or_default();
            let _ = writeln!(text, "  n{rank}[\"{}{lane}\"]", mermaid(member.id()));
        }
        for (from, to) in self.rank_edges() {
            let _ = writeln!(text, "  n{from} --> n{to}");
        }
        text
    }
}

/// A double-quoted string, as DOT and YAML both read it.
fn dot(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Text inside a Mermaid label, where markup is read: everything with a meaning becomes an entity.
fn mermaid(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | ':') {
            safe.push(c);
        } else {
            let _ = write!(safe, "#{};", u32::from(c));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use fak_abi::Id;
    use fak_comm::{Group, GroupSpec, Member};

    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    fn topology() -> Topology {
        let members = vec![Member::new(id("say \"hi\"\\]")), Member::new(id("b")).in_lane(id("docs"))];
        let group = Group::new(GroupSpec::new(id("g"), members)).unwrap();
        Topology::of_ranks(id("re\"view"), group, vec![(1, 0)]).unwrap()
    }

    /// §6.8.
    #[test]
    fn dot_quotes_what_ids_may_hold() {
        let expected = "digraph \"re\\\"view\" {\n  rankdir=LR;\n  n0 [label=\"b (docs)\"];\n  \
                        n1 [label=\"say \\\"hi\\\"\\\\]\"];\n  n1 -> n0;\n}\n";
        assert_eq!(topology().to_dot(), expected);
    }

    #[test]
    fn mermaid_shows_what_ids_may_hold() {
        let expected = "---\ntitle: \"re\\\"view\"\n---\nflowchart LR\n  n0[\"b<br/>docs\"]\n  \
                        n1[\"say #34;hi#34;#92;#93;\"]\n  n1 --> n0\n";
        assert_eq!(topology().to_mermaid(), expected);
    }
}

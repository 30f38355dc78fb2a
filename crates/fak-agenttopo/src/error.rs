//! What can be wrong with a declaration or with what is asked of a topology. A hand-over without an edge is no
//! error: it is refused.

use fak_abi::{Id, json};
use fak_comm::CommError;

/// A topology that cannot be declared, or a question it cannot answer (§6.8, §8).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopoError {
    /// An edge ends at somebody who is no member.
    #[error("edge {edge}: {id:?} is no member of the group")]
    UnknownEndpoint {
        /// Place of the edge in the declaration, from 0.
        edge: usize,
        /// The id that is no member.
        id: Id,
    },
    /// An edge from a member to itself.
    #[error("edge {edge}: from {id:?} to itself")]
    SelfEdge {
        /// Place of the edge in the declaration, from 0.
        edge: usize,
        /// The member.
        id: Id,
    },
    /// An edge that was declared before.
    #[error("edge {edge}: from {from:?} to {to:?} is declared twice")]
    DuplicateEdge {
        /// Place of the second declaration, from 0.
        edge: usize,
        /// Where it starts.
        from: Id,
        /// Where it ends.
        to: Id,
    },
    /// The edges close a cycle.
    #[error("the edges close a cycle: {}", route(.members))]
    Cycle {
        /// The members on it in the order of the edges, the smallest id first; the last leads back to it.
        members: Vec<Id>,
    },
    /// A layer without members.
    #[error("layer {layer} is empty, expected at least one member")]
    EmptyLayer {
        /// Place of the layer, from 0.
        layer: usize,
    },
    /// Somebody who is no member was asked about.
    #[error("{id:?} is no member of the group")]
    NoMember {
        /// The id asked for.
        id: Id,
    },
    /// An in-neighbour's output is missing.
    #[error("no output of {from:?}, which {to:?} combines")]
    MissingOutput {
        /// The in-neighbour.
        from: Id,
        /// The member that combines.
        to: Id,
    },
    /// A topology that does not read as JSON.
    #[error(transparent)]
    Json(#[from] json::Error),
    /// The group or the reduction.
    #[error(transparent)]
    Comm(#[from] CommError),
}

/// At most this many members of a cycle are written out.
const SHOWN: usize = 32;

fn route(members: &[Id]) -> String {
    let mut text = String::new();
    for id in members.iter().take(SHOWN) {
        text.push_str(&id.quoted().to_string());
        text.push_str(" -> ");
    }
    if members.len() > SHOWN {
        text.push_str(&format!("({} more) -> ", members.len() - SHOWN));
    }
    if let Some(first) = members.first() {
        text.push_str(&first.quoted().to_string());
    }
    text
}

//! Declaring a topology and asking it who follows whom. Orders and paths are in `order`, pictures in `render`,
//! enforcement in `enforce`.

use std::collections::HashMap;
use std::sync::Arc;

use fak_abi::Id;
use fak_comm::{Group, GroupSpec, Member};
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::adjacency::Adjacency;
use crate::cycle::find_cycle;
use crate::error::TopoError;

#[derive(Debug)]
struct Inner {
    name: Id,
    group: Group,
    /// In declaration order, as ranks.
    edges: Vec<(u32, u32)>,
    out: Adjacency,
    into: Adjacency,
    /// Every rank after all it follows.
    order: Vec<u32>,
}

/// A named directed acyclic graph over a group (§6.8). Immutable; cloning shares it.
///
/// ```
/// use fak_abi::Id;
/// use fak_agenttopo::Topology;
///
/// let edge = |from, to| Ok::<_, fak_abi::IdError>((Id::new(from)?, Id::new(to)?));
/// let wave = Topology::over(Id::new("wave")?, &[edge("lead", "ann")?, edge("lead", "bob")?])?;
/// assert_eq!(wave.waves().len(), 2);
/// let closed = Topology::over(Id::new("wave")?, &[edge("a", "b")?, edge("b", "a")?]).unwrap_err();
/// assert_eq!(closed.to_string(), r#"the edges close a cycle: "a" -> "b" -> "a""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Topology {
    inner: Arc<Inner>,
}

/// A member's neighbours, in declaration order (§6.8).
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbors<'a> {
    /// Those it takes from.
    pub from: Vec<&'a Member>,
    /// Those it hands to.
    pub to: Vec<&'a Member>,
}

impl Topology {
    /// Declares a topology over `group` by edges between ids.
    ///
    /// # Errors
    ///
    /// The first edge in declaration order that has an unknown endpoint or leads back to its start; then the
    /// first that repeats another; then a cycle, its members in order.
    ///
    /// # Complexity
    ///
    /// Linear in members and edges, with one table look-up an endpoint. No recursion.
    pub fn declare<'a>(
        name: Id,
        group: Group,
        edges: impl IntoIterator<Item = (&'a Id, &'a Id)>,
    ) -> Result<Self, TopoError> {
        let ranks: HashMap<&str, u32> = group.members().iter().map(|m| m.id().as_str()).zip(0..).collect();
        let mut found = Vec::new();
        for (edge, (from, to)) in edges.into_iter().enumerate() {
            let rank = |id: &Id| {
                ranks
                    .get(id.as_str())
                    .copied()
                    .ok_or_else(|| TopoError::UnknownEndpoint { edge, id: id.clone() })
            };
            found.push((rank(from)?, rank(to)?));
        }
        Self::of_ranks(name, group, found)
    }

    /// Declares a topology over the members its edges name, each of weight 1 and in no lane.
    ///
    /// # Errors
    ///
    /// As [`Topology::declare`], and `empty` without edges.
    pub fn over(name: Id, edges: &[(Id, Id)]) -> Result<Self, TopoError> {
        let mut ids: Vec<&Id> = edges.iter().flat_map(|(from, to)| [from, to]).collect();
        ids.sort_unstable();
        ids.dedup();
        let members = ids.into_iter().cloned().map(Member::new).collect();
        let group = Group::new(GroupSpec::new(name.clone(), members))?;
        Self::declare(name, group, edges.iter().map(|(from, to)| (from, to)))
    }

    /// Declares a topology by edges between ranks.
    ///
    /// # Errors
    ///
    /// As [`Topology::declare`]; a rank that is none is named by its number.
    pub fn of_ranks(name: Id, group: Group, edges: Vec<(u32, u32)>) -> Result<Self, TopoError> {
        let id = |rank: u32| group.member(rank as usize).map(Member::id);
        for (edge, (from, to)) in edges.iter().enumerate() {
            let (Some(start), Some(_)) = (id(*from), id(*to)) else {
                let strange = if id(*from).is_none() { *from } else { *to };
                let id = Id::try_from(strange.to_string()).unwrap_or_else(|_| name.clone());
                return Err(TopoError::UnknownEndpoint { edge, id });
            };
            if from == to {
                return Err(TopoError::SelfEdge { edge, id: start.clone() });
            }
        }
        let out = Adjacency::new(group.size(), edges.iter().copied());
        if let Some(edge) = first_repeated(group.size(), &out) {
            let ends = edges.get(edge).and_then(|(from, to)| Some((id(*from)?.clone(), id(*to)?.clone())));
            if let Some((from, to)) = ends {
                return Err(TopoError::DuplicateEdge { edge, from, to });
            }
        }
        let into = Adjacency::new(group.size(), edges.iter().map(|(from, to)| (*to, *from)));
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(group.size(), edges.len());
        for _ in group.members() {
            graph.add_node(());
        }
        for (from, to) in &edges {
            graph.add_edge(NodeIndex::from(*from), NodeIndex::from(*to), ());
        }
        let Ok(order) = toposort(&graph, None) else {
            let members = find_cycle(group.size(), &out, &into).into_iter().filter_map(|r| id(r).cloned());
            return Err(TopoError::Cycle { members: members.collect() });
        };
        let order = order.into_iter().filter_map(|node| u32::try_from(node.index()).ok()).collect();
        Ok(Self { inner: Arc::new(Inner { name, group, edges, out, into, order }) })
    }

    /// A chain in rank order.
    ///
    /// # Errors
    ///
    /// None for a group that could be made; kept for what a declaration may refuse later.
    pub fn linear(name: Id, group: Group) -> Result<Self, TopoError> {
        let ends = group.members().len();
        let edges = (0..).zip(1..).take(ends.saturating_sub(1)).collect();
        Self::of_ranks(name, group, edges)
    }

    /// From `root` to every other member, in rank order.
    ///
    /// # Errors
    ///
    /// [`TopoError::NoMember`] if the root is none.
    pub fn star(name: Id, group: Group, root: &Id) -> Result<Self, TopoError> {
        let no_member = || TopoError::NoMember { id: root.clone() };
        let hub = group.rank(root).and_then(|rank| u32::try_from(rank).ok()).ok_or_else(no_member)?;
        let ranks = (0..).zip(group.members()).map(|(rank, _)| rank);
        let edges = ranks.filter(|rank| *rank != hub).map(|rank| (hub, rank)).collect();
        Self::of_ranks(name, group, edges)
    }

    /// From every member of each layer to every member of the next.
    ///
    /// # Errors
    ///
    /// [`TopoError::EmptyLayer`], and those of [`Topology::declare`].
    pub fn layered(name: Id, group: Group, layers: &[Vec<Id>]) -> Result<Self, TopoError> {
        if let Some(layer) = layers.iter().position(Vec::is_empty) {
            return Err(TopoError::EmptyLayer { layer });
        }
        let pairs = layers.iter().zip(layers.iter().skip(1));
        let edges = pairs.flat_map(|(above, below)| {
            above.iter().flat_map(move |from| below.iter().map(move |to| (from, to)))
        });
        Self::declare(name, group, edges)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Id {
        &self.inner.name
    }

    /// The group it is over.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.inner.group
    }

    /// The edges in declaration order.
    pub fn edges(&self) -> impl Iterator<Item = (&Id, &Id)> {
        self.inner.edges.iter().filter_map(|(from, to)| Some((self.id(*from)?, self.id(*to)?)))
    }

    /// How many edges it has.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.inner.edges.len()
    }

    /// Whom `id` takes from and hands to.
    ///
    /// # Errors
    ///
    /// [`TopoError::NoMember`] if it is none.
    pub fn neighbors(&self, id: &Id) -> Result<Neighbors<'_>, TopoError> {
        let rank = self.rank(id)?;
        let members = |side: &Adjacency| side.ranks(rank).filter_map(|r| self.member(r)).collect();
        Ok(Neighbors { from: members(&self.inner.into), to: members(&self.inner.out) })
    }

    /// The lanes of its members, each once, sorted.
    #[must_use]
    pub fn lanes(&self) -> Vec<Id> {
        self.inner.group.lanes()
    }

    pub(crate) fn rank(&self, id: &Id) -> Result<u32, TopoError> {
        let rank = self.inner.group.rank(id).and_then(|rank| u32::try_from(rank).ok());
        rank.ok_or_else(|| TopoError::NoMember { id: id.clone() })
    }

    pub(crate) fn member(&self, rank: u32) -> Option<&Member> {
        self.inner.group.member(rank as usize)
    }

    pub(crate) fn id(&self, rank: u32) -> Option<&Id> {
        self.member(rank).map(Member::id)
    }

    pub(crate) fn rank_edges(&self) -> &[(u32, u32)] {
        &self.inner.edges
    }

    pub(crate) fn out(&self) -> &Adjacency {
        &self.inner.out
    }

    pub(crate) fn incoming(&self) -> &Adjacency {
        &self.inner.into
    }

    pub(crate) fn order(&self) -> &[u32] {
        &self.inner.order
    }
}

/// Place of the first edge, in declaration order, that repeats an earlier one.
fn first_repeated(size: usize, out: &Adjacency) -> Option<usize> {
    // Whoever marked a rank last; a mark of the same start means the edge was there.
    let mut marks = vec![u32::MAX; size];
    let mut first = None;
    for (from, _) in (0..).zip(0..size) {
        for (to, place) in out.of(from) {
            if let Some(mark) = marks.get_mut(*to as usize) {
                if *mark == from {
                    first = Some(first.map_or(*place, |first: u32| first.min(*place)));
                }
                *mark = from;
            }
        }
    }
    first.map(|place| place as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    fn group(ids: &[&str]) -> Group {
        let members = ids.iter().map(|m| Member::new(id(m)).in_lane(id("docs"))).collect();
        Group::new(GroupSpec::new(id("g"), members)).unwrap()
    }

    fn declare(ids: &[&str], edges: &[(&str, &str)]) -> Result<Topology, TopoError> {
        let edges: Vec<_> = edges.iter().map(|(from, to)| (id(from), id(to))).collect();
        Topology::declare(id("t"), group(ids), edges.iter().map(|(from, to)| (from, to)))
    }

    /// §6.8.
    #[test]
    fn a_bad_edge_is_named_by_its_place() {
        let err = declare(&["a", "b"], &[("a", "b"), ("a", "c")]).unwrap_err();
        assert_eq!(err, TopoError::UnknownEndpoint { edge: 1, id: id("c") });
        assert_eq!(err.to_string(), "edge 1: \"c\" is no member of the group");
        let err = declare(&["a", "b"], &[("a", "b"), ("b", "b")]).unwrap_err();
        assert_eq!(err, TopoError::SelfEdge { edge: 1, id: id("b") });
        let err = declare(&["a", "b", "c"], &[("b", "c"), ("a", "b"), ("a", "c"), ("a", "b"), ("b", "c")]);
        assert_eq!(err.unwrap_err(), TopoError::DuplicateEdge { edge: 3, from: id("a"), to: id("b") });
        let err = Topology::of_ranks(id("t"), group(&["a", "b"]), vec![(0, 7)]).unwrap_err();
        assert_eq!(err, TopoError::UnknownEndpoint { edge: 0, id: id("7") });
    }

    /// §6.8.
    #[test]
    fn neighbours_come_in_declaration_order() {
        let t = declare(&["a", "b", "c", "d"], &[("a", "d"), ("a", "b"), ("c", "d"), ("b", "d"), ("a", "c")])
            .unwrap();
        let ids = |members: &[&Member]| members.iter().map(|m| m.id().to_string()).collect::<Vec<_>>();
        assert_eq!(ids(&t.neighbors(&id("a")).unwrap().to), ["d", "b", "c"]);
        assert_eq!(ids(&t.neighbors(&id("d")).unwrap().from), ["a", "c", "b"]);
        assert!(t.neighbors(&id("a")).unwrap().from.is_empty());
        assert_eq!(t.neighbors(&id("x")).unwrap_err(), TopoError::NoMember { id: id("x") });
        assert_eq!(t.lanes(), [id("docs")]);
        assert_eq!(
            t.edges().map(|(f, t)| format!("{f}{t}")).collect::<Vec<_>>(),
            ["ad", "ab", "cd", "bd", "ac"]
        );
    }

    /// §6.8.
    #[test]
    fn helpers_declare_what_they_say() {
        let edges = |t: Topology| t.edges().map(|(f, t)| format!("{f}{t}")).collect::<Vec<_>>();
        assert_eq!(edges(Topology::linear(id("t"), group(&["c", "a", "b"])).unwrap()), ["ab", "bc"]);
        assert_eq!(edges(Topology::star(id("t"), group(&["c", "a", "b"]), &id("b")).unwrap()), ["ba", "bc"]);
        let layers = [vec![id("a")], vec![id("c"), id("b")], vec![id("d")]];
        let layered = Topology::layered(id("t"), group(&["a", "b", "c", "d"]), &layers).unwrap();
        assert_eq!(edges(layered), ["ac", "ab", "cd", "bd"]);
        let err = Topology::star(id("t"), group(&["a"]), &id("x")).unwrap_err();
        assert_eq!(err, TopoError::NoMember { id: id("x") });
        let err = Topology::layered(id("t"), group(&["a"]), &[vec![id("a")], vec![]]).unwrap_err();
        assert_eq!(err, TopoError::EmptyLayer { layer: 1 });
        assert!(edges(Topology::linear(id("t"), group(&["a"])).unwrap()).is_empty());
        let over = Topology::over(id("t"), &[(id("b"), id("a"))]).unwrap();
        assert_eq!(over.group().size(), 2);
        assert!(matches!(Topology::over(id("t"), &[]), Err(TopoError::Comm(_))));
    }
}

//! The decision: may this request hold a lease beside those that live? A pure function of request, live leases,
//! taxonomy and time (§6.7). It grants nothing and counts nothing.

use std::fmt;
use std::sync::Arc;

use fak_abi::{Id, Principal, Timestamp};

use super::path::{Glob, Meeting, PathFault, Tree};
use super::taxonomy::{Lane, Taxonomy};

/// What somebody wants to lease (§6.7).
#[derive(Clone, Copy, Debug)]
pub enum LaneRequest<'a> {
    /// A lane of the taxonomy, with its tree.
    Lane(&'a str),
    /// Globs outside any lane; none at all asks for everything.
    Tree(&'a [&'a str]),
}

/// What a lease is over (§6.7).
#[derive(Clone, Debug)]
pub struct Region {
    /// The lane, unless the lease is over globs.
    pub lane: Option<Id>,
    /// Whether it admits no other lease beside it.
    pub exclusive: bool,
    /// The paths.
    pub tree: Tree,
}

impl From<&Lane> for Region {
    fn from(lane: &Lane) -> Self {
        Self { lane: Some(lane.name.clone()), exclusive: lane.exclusive, tree: lane.tree.clone() }
    }
}

impl Region {
    /// Why this and `other` may not be held at once, if so.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> Option<Why> {
        if self.lane.is_some() && self.lane == other.lane {
            return Some(Why::SameLane);
        }
        if self.exclusive || other.exclusive {
            return Some(Why::Exclusive);
        }
        let text = |glob: Option<&Glob>| glob.map(|glob| glob.as_str().to_owned());
        self.tree
            .meets(&other.tree)
            .map(|Meeting { ours, theirs }| Why::Overlap { ours: text(ours), theirs: text(theirs) })
    }

    /// Those of `leases` that may not be held beside this, in their order.
    pub(super) fn in_the_way<'a>(&self, leases: impl Iterator<Item = &'a LiveLease>) -> Vec<InTheWay> {
        let conflict = |lease: &LiveLease| {
            self.conflicts(&lease.region).map(|why| InTheWay { lease: lease.clone(), why })
        };
        leases.filter_map(conflict).collect()
    }
}

/// A lease somebody has (§6.7).
#[derive(Clone, Debug)]
pub struct LiveLease {
    /// Its fence, unique in its arbiter.
    pub fence: u64,
    /// Whose it is.
    pub holder: Arc<Principal>,
    /// What it is over.
    pub region: Region,
    /// From this instant on it is expired.
    pub expires: Timestamp,
}

impl LiveLease {
    /// Whether it still counts: expired when `now` is its expiry or later.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires
    }
}

/// Why two leases may not be held at once (§6.7).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Both are over one lane.
    SameLane,
    /// One of them is over a lane that runs alone.
    Exclusive,
    /// Their trees overlap, at these globs; absent on a side that covers everything.
    Overlap {
        /// Glob of the request.
        ours: Option<String>,
        /// Glob of the lease in the way.
        theirs: Option<String>,
    },
}

/// A lease in the way of a request, and why (§6.7).
#[derive(Clone, Debug)]
pub struct InTheWay {
    /// The lease.
    pub lease: LiveLease,
    /// Why it is in the way.
    pub why: Why,
}

impl InTheWay {
    /// As much of it as `asker` may know: of a holder that shares neither fleet nor tenant with it, neither
    /// the name nor the globs (§3.5).
    #[must_use]
    pub fn shown_to(&self, asker: &Principal) -> Conflict {
        let Self { lease, why } = self;
        let known = std::ptr::eq(Arc::as_ptr(&lease.holder), asker) || lease.holder.shares_domain(asker);
        let why = match why {
            Why::Overlap { ours, .. } if !known => Why::Overlap { ours: ours.clone(), theirs: None },
            why => why.clone(),
        };
        let holder = known.then(|| lease.holder.id().clone());
        Conflict { fence: lease.fence, holder, lane: lease.region.lane.clone(), why }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, theirs) = match self {
            Self::SameLane => return f.write_str("they are the same lane"),
            Self::Exclusive => return f.write_str("one of them runs alone"),
            Self::Overlap { ours, theirs } => (ours, theirs),
        };
        let glob = |glob: &Option<String>| {
            glob.as_ref().map_or_else(|| "everything".to_owned(), |g| format!("{g:?}"))
        };
        write!(f, "their trees overlap, by {} and {}", glob(ours), glob(theirs))
    }
}

/// What an agent is told of a lease in its way (§6.7).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Conflict {
    /// The lease's fence, which names it.
    pub fence: u64,
    /// Whose it is; absent where the asker shares neither fleet nor tenant with the holder (§3.5).
    pub holder: Option<Id>,
    /// The lane it is over, if any.
    pub lane: Option<Id>,
    /// Why it is in the way.
    pub why: Why,
}

/// What the decision came to (§6.7). Everything but `Admit` is a refusal.
#[derive(Clone, Debug)]
#[must_use]
pub enum Decision {
    /// Nothing is in the way of a lease over this.
    Admit(Region),
    /// A glob is none: MALFORMED.
    Malformed {
        /// Its place among the globs.
        at: usize,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// No such lane: MISROUTE.
    UnknownLane,
    /// These leases are in the way, each once, oldest first: LEASE_HELD.
    Held(Vec<InTheWay>),
}

/// Decides `request` against the leases in `live` that have not expired at `now` (§6.7): shape, then lane, then
/// conflicts.
pub fn decide<'a>(
    request: LaneRequest<'_>,
    live: impl IntoIterator<Item = &'a LiveLease>,
    taxonomy: &Taxonomy,
    now: Timestamp,
) -> Decision {
    let region = match request {
        LaneRequest::Lane(name) => match taxonomy.lane(name) {
            Some(lane) => Region::from(lane),
            None => return Decision::UnknownLane,
        },
        LaneRequest::Tree(globs) => match read(globs) {
            Ok(tree) => Region { lane: None, exclusive: false, tree },
            Err((at, fault)) => return Decision::Malformed { at, fault },
        },
    };
    let conflicts = region.in_the_way(live.into_iter().filter(|lease| lease.is_live(now)));
    if conflicts.is_empty() { Decision::Admit(region) } else { Decision::Held(conflicts) }
}

fn read(globs: &[&str]) -> Result<Tree, (usize, PathFault)> {
    if globs.len() > super::path::MAX_GLOBS {
        return Err((super::path::MAX_GLOBS, PathFault::TooLong));
    }
    let read = globs.iter().enumerate().map(|(at, glob)| Glob::parse(glob).map_err(|fault| (at, fault)));
    Ok(Tree::new(read.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use fak_abi::{CapSet, KernelSeal, PrincipalSpec};

    use super::*;
    use crate::lanes::{LanePath, LaneSpec, Listing};

    const TABLE: &str = r#"
        [lanes]
        concurrent = ["docs", "model", "route", "bare"]
        exclusive = ["abi"]
        [lanes.trees]
        docs = ["docs/**"]
        model = ["src/model/**"]
        route = ["src/model_route/**"]
        abi = ["src/abi/**"]
    "#;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_micros(ms * 1_000)
    }

    fn principal(id: &str, fleet: Option<&str>) -> Arc<Principal> {
        let spec = PrincipalSpec::agent(Id::new(id).unwrap());
        let spec = PrincipalSpec { fleet: fleet.map(|fleet| Id::new(fleet).unwrap()), ..spec };
        KernelSeal::new().principal(spec, 1, CapSet::NONE)
    }

    fn lease(fence: u64, region: Region, expires: u64) -> LiveLease {
        LiveLease { fence, holder: principal("h", None), region, expires: at(expires) }
    }

    fn admitted(request: LaneRequest<'_>) -> Region {
        let Decision::Admit(region) = decide(request, [], &TABLE.parse().unwrap(), at(0)) else {
            panic!("refused")
        };
        region
    }

    fn held(request: LaneRequest<'_>, live: &[LiveLease], now: u64) -> Vec<u64> {
        match decide(request, live, &TABLE.parse().unwrap(), at(now)) {
            Decision::Held(conflicts) => conflicts.iter().map(|c| c.lease.fence).collect(),
            Decision::Admit(_) => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn exclusive_same_and_overlapping_are_in_the_way_each_once() {
        let live = [
            lease(1, admitted(LaneRequest::Lane("docs")), 10),
            lease(2, admitted(LaneRequest::Lane("model")), 10),
        ];
        assert!(held(LaneRequest::Lane("route"), &live, 0).is_empty());
        assert_eq!(held(LaneRequest::Lane("docs"), &live, 0), [1]);
        assert_eq!(held(LaneRequest::Lane("abi"), &live, 0), [1, 2]);
        assert_eq!(
            held(LaneRequest::Lane("bare"), &live, 0),
            [1, 2],
            "a lane without a tree overlaps everything"
        );
        assert_eq!(held(LaneRequest::Tree(&["docs/a", "src/model/x", "docs/b"]), &live, 0), [1, 2]);
        assert!(held(LaneRequest::Tree(&["src/other/**"]), &live, 0).is_empty());
        assert_eq!(held(LaneRequest::Tree(&[]), &live, 0), [1, 2]);
        let alone = [lease(3, admitted(LaneRequest::Lane("abi")), 10)];
        assert_eq!(held(LaneRequest::Tree(&["elsewhere"]), &alone, 0), [3]);
    }

    #[test]
    fn a_lease_is_in_the_way_until_its_expiry_and_not_at_it() {
        let live = [lease(1, admitted(LaneRequest::Lane("docs")), 10)];
        assert_eq!(held(LaneRequest::Lane("docs"), &live, 9), [1]);
        assert!(held(LaneRequest::Lane("docs"), &live, 10).is_empty());
    }

    #[test]
    fn shape_comes_before_lane_and_lane_before_conflicts() {
        let taxonomy = TABLE.parse().unwrap();
        let live = [lease(1, admitted(LaneRequest::Lane("docs")), 10)];
        let refused = decide(LaneRequest::Tree(&["docs/x", "../up"]), &live, &taxonomy, at(0));
        assert!(matches!(refused, Decision::Malformed { at: 1, fault: PathFault::Parent }));
        assert!(matches!(decide(LaneRequest::Lane("dcos"), &live, &taxonomy, at(0)), Decision::UnknownLane));
        let many = ["a"; 257];
        let decided = |many| decide(LaneRequest::Tree(many), [], &taxonomy, at(0));
        assert!(matches!(decided(&many), Decision::Malformed { at: 256, fault: PathFault::TooLong }));
        assert!(matches!(decided(&["a"; 256]), Decision::Admit(_)));
    }

    #[test]
    fn a_stranger_learns_neither_holder_nor_globs() {
        let seal = KernelSeal::new();
        let of = |id: &str, fleet: &str| {
            let spec = PrincipalSpec::agent(Id::new(id).unwrap()).fleet(Id::new(fleet).unwrap());
            seal.principal(spec, 1, CapSet::NONE)
        };
        let (holder, friend, stranger) = (of("a", "f1"), of("b", "f1"), of("c", "f2"));
        let region = admitted(LaneRequest::Tree(&["plans/secret"]));
        let live = [LiveLease { fence: 1, holder, region, expires: at(9) }];
        let taxonomy = TABLE.parse().unwrap();
        let Decision::Held(found) = decide(LaneRequest::Tree(&["plans"]), &live, &taxonomy, at(0)) else {
            panic!("admitted")
        };
        let found = found.first().unwrap();
        let seen = found.shown_to(&friend);
        assert_eq!(seen.holder, Some(Id::new("a").unwrap()));
        assert!(matches!(seen.why, Why::Overlap { theirs: Some(_), .. }));
        let seen = found.shown_to(&stranger);
        assert_eq!(seen.holder, None);
        assert!(matches!(seen.why, Why::Overlap { theirs: None, .. }));
    }

    /// Every path of at most four components over two names: two globs below meet within it, or nowhere.
    fn universe() -> Vec<String> {
        let mut paths: Vec<String> = vec!["a".into(), "b".into()];
        for depth in 0..3 {
            let longer: Vec<String> = paths
                .iter()
                .filter(|p| p.matches('/').count() == depth)
                .flat_map(|p| [format!("{p}/a"), format!("{p}/b")])
                .collect();
            paths.extend(longer);
        }
        paths
    }

    /// The paths of the universe a glob covers, by walking text: `*` stands for one component or more, `**` too.
    fn expand(globs: &[String]) -> Vec<String> {
        let covers = |glob: &str, path: &str| {
            let head = glob.split('*').next().unwrap_or_default().trim_end_matches('/');
            let below = path == head || head.is_empty() || path.starts_with(&format!("{head}/"));
            // What follows a wildcard in these globs is at most one name, somewhere below.
            let tail = glob.rsplit('*').next().unwrap_or_default().trim_start_matches('/');
            let rest = path.strip_prefix(head).unwrap_or(path);
            if glob.contains('*') && !tail.is_empty() {
                below && rest.split('/').any(|component| component == tail)
            } else {
                below
            }
        };
        universe().into_iter().filter(|path| globs.iter().any(|glob| covers(glob, path))).collect()
    }

    proptest! {
        /// A random taxonomy and a random run of requests: whatever is admitted shares no path of the universe
        /// with anything that lives, and whatever is refused does, or is the same lane, or runs alone.
        #[test]
        fn an_overlap_is_never_admitted(
            trees in proptest::collection::vec(proptest::collection::vec("[ab](/[ab])?(/\\*\\*)?(/[ab])?", 1..3), 2..5),
            alone in 0usize..5,
            asks in proptest::collection::vec((0usize..5, any::<bool>(), 0u64..4), 1..12),
        ) {
            let names: Vec<String> = (0..trees.len()).map(|n| format!("l{n}")).collect();
            let listed = |pick: &dyn Fn(usize) -> bool| names.iter().enumerate()
                .filter(|(n, _)| pick(*n)).map(|(_, name)| Listing::from(name.as_str())).collect::<Vec<_>>();
            let taxonomy = Taxonomy::new(LaneSpec {
                concurrent: listed(&|n| n != alone),
                exclusive: listed(&|n| n == alone),
                trees: names.iter().zip(&trees)
                    .map(|(name, globs)| (name.as_str().into(), globs.iter().map(|g| g.as_str().into()).collect()))
                    .collect(),
            }).unwrap();
            let mut live: Vec<LiveLease> = Vec::new();
            let mut model: Vec<(usize, bool, u64)> = Vec::new();
            for (now, (which, by_tree, ttl)) in (0..).zip(asks) {
                let which = which % trees.len();
                let globs: Vec<&str> = trees[which].iter().map(String::as_str).collect();
                let request = if by_tree { LaneRequest::Tree(&globs) } else { LaneRequest::Lane(&names[which]) };
                let paths = expand(&trees[which]);
                let clash = model.iter().any(|(other, other_by_tree, expires)| {
                    let same = !by_tree && !other_by_tree && *other == which;
                    let single = (!by_tree && which == alone) || (!other_by_tree && *other == alone);
                    let overlap = expand(&trees[*other]).iter().any(|path| paths.contains(path));
                    now < *expires && (same || single || overlap)
                });
                match decide(request, &live, &taxonomy, at(now)) {
                    Decision::Admit(region) => {
                        prop_assert!(!clash);
                        for path in &paths {
                            prop_assert!(region.tree.covers(&LanePath::parse(path).unwrap()));
                        }
                        live.push(lease(now, region, now + ttl));
                        model.push((which, by_tree, now + ttl));
                    }
                    Decision::Held(conflicts) => {
                        prop_assert!(!conflicts.is_empty());
                        prop_assert!(clash);
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
    }
}

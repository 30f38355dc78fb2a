//! Combining what a member takes from: its in-neighbours' outputs, folded in declaration order.

use std::collections::HashMap;

use fak_abi::Id;
use fak_comm::{Output, Reduced, Reduction};

use crate::error::TopoError;
use crate::topology::Topology;

/// A combined value, as a reduction leaves it, with the ids its indices count (§6.8).
#[derive(Clone, Debug, PartialEq)]
pub struct Combined<'a> {
    /// The in-neighbours in declaration order.
    pub from: Vec<&'a Id>,
    /// What the reduction came to; an index in it counts `from`.
    pub reduced: Reduced,
}

impl Topology {
    /// Folds the outputs of the members that `id` takes from, in declaration order (§6.8). `scores`, by member,
    /// are read by `best_of` alone. Pure: whoever holds the bytes has read them.
    ///
    /// # Errors
    ///
    /// [`TopoError::NoMember`]; [`TopoError::MissingOutput`] for the first in-neighbour without an output, or
    /// for `best_of` without a score; those of the reduction, `empty` for a member that takes from nobody.
    pub fn combine_in(
        &self,
        id: &Id,
        reduction: Reduction,
        outputs: &HashMap<Id, &[u8]>,
        scores: &HashMap<Id, f64>,
    ) -> Result<Combined<'_>, TopoError> {
        let from = self.neighbors(id)?.from;
        let mut found = Vec::with_capacity(from.len());
        let mut given = Vec::new();
        for member in &from {
            let missing = || TopoError::MissingOutput { from: member.id().clone(), to: id.clone() };
            let bytes = outputs.get(member.id()).ok_or_else(missing)?;
            found.push(Output { member: member.id(), weight: member.weight(), bytes });
            if reduction == Reduction::BestOf {
                given.push(*scores.get(member.id()).ok_or_else(missing)?);
            }
        }
        let reduced = reduction.fold(&found, &given)?;
        Ok(Combined { from: from.into_iter().map(fak_comm::Member::id).collect(), reduced })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    /// §6.8.
    #[test]
    fn outputs_fold_in_declaration_order_and_a_missing_one_is_an_error() {
        let t =
            Topology::over(id("t"), &[(id("c"), id("z")), (id("a"), id("z")), (id("b"), id("z"))]).unwrap();
        let mut outputs: HashMap<Id, &[u8]> = HashMap::new();
        outputs.insert(id("a"), b"A");
        outputs.insert(id("c"), b"C");
        let none = HashMap::new();
        let err = t.combine_in(&id("z"), Reduction::Concat, &outputs, &none).unwrap_err();
        assert_eq!(err, TopoError::MissingOutput { from: id("b"), to: id("z") });
        outputs.insert(id("b"), b"B");
        let combined = t.combine_in(&id("z"), Reduction::Concat, &outputs, &none).unwrap();
        assert_eq!(combined.reduced, Reduced::Made(b"C\nA\nB".to_vec()));
        assert_eq!(combined.from, [&id("c"), &id("a"), &id("b")]);
        let scores = HashMap::from([(id("a"), 2.0), (id("b"), 2.0), (id("c"), 1.0)]);
        let best = t.combine_in(&id("z"), Reduction::BestOf, &outputs, &scores).unwrap();
        assert_eq!(best.reduced, Reduced::Winner { index: 1, tally: vec![] });
        assert!(t.combine_in(&id("z"), Reduction::BestOf, &outputs, &none).is_err());
        assert!(matches!(t.combine_in(&id("a"), Reduction::First, &outputs, &none), Err(TopoError::Comm(_))));
        assert!(matches!(
            t.combine_in(&id("x"), Reduction::First, &outputs, &none),
            Err(TopoError::NoMember { .. })
        ));
    }
}

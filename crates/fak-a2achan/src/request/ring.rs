//! Who waits for whom by a blocking request (§4.7, I08). A ring of them would wait for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fak_abi::Principal;

/// The blocking requests that are open.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    next: u64,
    waits: BTreeMap<u64, Wait>,
}

#[derive(Debug)]
struct Wait {
    from: Arc<Principal>,
    /// Unknown until somebody has received the request, where anybody may.
    to: Option<Arc<Principal>>,
}

impl Rings {
    /// `from` waits for `to`; `None` if that would close a ring.
    pub(super) fn enter(&mut self, from: &Arc<Principal>, to: Option<Arc<Principal>>) -> Option<u64> {
        if self.closed_by(from, to.clone()).is_some() {
            return None;
        }
        self.next += 1;
        self.waits.insert(self.next, Wait { from: Arc::clone(from), to });
        Some(self.next)
    }

    /// The request has been received by `to`.
    pub(super) fn point(&mut self, id: u64, to: &Arc<Principal>) {
        if let Some(wait) = self.waits.get_mut(&id) {
            wait.to = Some(Arc::clone(to));
        }
    }

    /// The request is answered or given up.
    pub(super) fn leave(&mut self, id: u64) {
        self.waits.remove(&id);
    }

    /// The ring that `from` waiting for `to` would close, from `from` to `from`. Not recursive;
    /// linear in the open blocking requests for each member of the way.
    pub(super) fn closed_by(
        &self,
        from: &Arc<Principal>,
        to: Option<Arc<Principal>>,
    ) -> Option<Vec<Arc<Principal>>> {
        let to = to?;
        let mut ways = vec![vec![Arc::clone(from), to]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            let last = way.last()?;
            if Arc::ptr_eq(last, from) {
                return Some(way);
            }
            if !seen.insert(last.incarnation()) {
                continue;
            }
            for wait in self.waits.values().filter(|wait| Arc::ptr_eq(&wait.from, last)) {
                if let Some(to) = &wait.to {
                    ways.push(way.iter().chain([to]).cloned().collect());
                }
            }
        }
        None
    }
}

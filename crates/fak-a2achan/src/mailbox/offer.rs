//! How a message comes in (§4.3 rows 8 and 10): checked and numbered under the input lock.

use std::sync::Arc;
use std::task::Waker;

use fak_abi::{Principal, Ref, Sequence};

use super::{Input, Mailbox};
use crate::account::Account;
use crate::entry::{Entry, Extra};
use crate::route::Route;
use crate::sync::{Lock as _, Locks};

/// What somebody would like to place here.
pub(crate) struct Offer<'a> {
    /// The sender's account, which answers for the bytes.
    pub(crate) from: &'a Arc<Account>,
    /// The sender's way in, if it is at hand.
    pub(crate) route: Option<&'a Arc<Route>>,
    /// The body as the rungs left it.
    pub(crate) body: &'a Ref,
    /// Whom the rungs took for the recipient.
    pub(crate) recipient: Option<&'a Arc<Principal>>,
}

/// Why it cannot be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// The mailbox is no more.
    End,
    /// The recipient is not who the rungs took it for: they have to be asked again.
    Move,
    /// Row 8: it may not flow to the binder.
    Unreadable,
    /// Row 10: every slot is taken or promised.
    Full,
    /// Row 10, §4.12: the sender has its share of a mailbox for many.
    Share,
    /// §4.12: the sender has too many bytes queued.
    Bytes,
}

impl<L: Locks> Mailbox<L> {
    /// Whom a send here resolves to; one load while nobody is bound.
    pub(crate) fn recipient(&self) -> Option<Arc<Principal>> {
        if !self.is_bound() {
            return None;
        }
        self.input.lock().recipient().cloned()
    }

    #[inline]
    fn check(&self, input: &mut Input, offer: &Offer<'_>) -> Result<Arc<Route>, Block> {
        if input.end.is_some() {
            return Err(Block::End);
        }
        let binder = input.recipient();
        if binder.map(Arc::as_ptr) != offer.recipient.map(Arc::as_ptr) {
            return Err(Block::Move);
        }
        if binder.is_some_and(|binder| !offer.body.would_flow_to(binder)) {
            return Err(Block::Unreadable);
        }
        if !self.has_room(input) {
            return Err(Block::Full);
        }
        let route = match offer.route {
            Some(route) => Arc::clone(route),
            None => self.route_of(input, offer.from),
        };
        if !route.has_share(self.share) {
            return Err(Block::Share);
        }
        if !route.admits(offer.body.len() as u64) {
            return Err(Block::Bytes);
        }
        Ok(route)
    }

    #[inline]
    pub(super) fn has_room(&self, input: &mut Input) -> bool {
        let taken = |input: &Input| input.accepted.saturating_sub(input.gone_seen) + input.reserved;
        if taken(input) >= self.capacity {
            input.gone_seen = self.gone();
        }
        taken(input) < self.capacity
    }

    pub(super) fn route_of(&self, input: &mut Input, from: &Arc<Account>) -> Arc<Route> {
        let incarnation = from.principal().incarnation();
        if let Some((recent, route)) = &input.recent
            && *recent == incarnation
        {
            return Arc::clone(route);
        }
        let route = self.search_route(input, from, incarnation);
        input.recent = Some((incarnation, Arc::clone(&route)));
        route
    }

    fn search_route(&self, input: &mut Input, from: &Arc<Account>, incarnation: u64) -> Arc<Route> {
        if let Some(route) = input.routes.get(&incarnation) {
            return Arc::clone(route);
        }
        if input.routes.len() == input.routes.capacity() {
            // Before the table grows: nobody else holds these, and nothing of theirs is queued.
            input.routes.retain(|_, route| route.queued() > 0 || Arc::strong_count(route) > 1);
        }
        let route = Route::new(Arc::clone(from.principal()), Arc::clone(&self.to), Some(Arc::clone(from)));
        from.adopt(&route);
        input.routes.insert(incarnation, Arc::clone(&route));
        route
    }

    /// The sender's way in, to keep at hand.
    pub(crate) fn route(&self, from: &Arc<Account>) -> Arc<Route> {
        self.route_of(&mut self.input.lock(), from)
    }

    /// Queues what was let in. Made where it is queued: an entry that is built first and moved then
    /// is read back before its parts have reached memory.
    #[inline]
    fn place(
        &self,
        input: &mut Input,
        route: Arc<Route>,
        body: &Ref,
        extra: Option<Box<Extra>>,
        numbers: &Sequence,
    ) -> (u64, Option<Waker>) {
        input.accepted += 1;
        input.version += 1;
        route.enter(body.len());
        if extra.as_ref().is_some_and(|extra| extra.expires.is_some()) {
            self.note_timed();
        }
        let wake = input.rouse(body);
        let seq = numbers.next();
        if input.is_empty() {
            input.single = Some(Entry { seq, route, body: body.clone(), extra });
        } else {
            input.queue.extend(input.single.take());
            input.queue.push_back(Entry { seq, route, body: body.clone(), extra });
        }
        (seq, wake)
    }

    /// Places `body`, numbered under the lock. On success the waiter to wake, if any.
    #[inline]
    pub(crate) fn offer(
        &self,
        offer: &Offer<'_>,
        extra: Option<Box<Extra>>,
        numbers: &Sequence,
    ) -> Result<(u64, Option<Waker>), Block> {
        let mut input = self.input.lock();
        let route = self.check(&mut input, offer)?;
        Ok(self.place(&mut input, route, offer.body, extra, numbers))
    }

    /// What would refuse this offer now.
    pub(crate) fn would_block(&self, offer: &Offer<'_>) -> Option<Block> {
        self.check(&mut self.input.lock(), offer).err()
    }

    /// Promises a slot, after the same checks. It has to be filled or given back.
    pub(crate) fn reserve(&self, offer: &Offer<'_>) -> Result<Arc<Route>, Block> {
        let mut input = self.input.lock();
        let route = self.check(&mut input, offer)?;
        input.reserved += 1;
        // What is reserved takes its sender's share and bytes as if it were queued (§4.12).
        route.enter(offer.body.len());
        Ok(route)
    }

    /// Gives a promised slot back.
    pub(crate) fn unreserve(&self, route: &Route, bytes: usize) {
        {
            let mut input = self.input.lock();
            input.reserved = input.reserved.saturating_sub(1);
            route.unenter(bytes);
        }
        self.pass_space();
    }

    /// Fills a promised slot. Only what changed since can still refuse it: the slot is then given
    /// back.
    pub(crate) fn fill(
        &self,
        offer: &Offer<'_>,
        extra: Option<Box<Extra>>,
        numbers: &Sequence,
    ) -> Result<(u64, Option<Waker>), Block> {
        let mut input = self.input.lock();
        input.reserved = input.reserved.saturating_sub(1);
        if let Some(route) = offer.route {
            route.unenter(offer.body.len());
        }
        if input.end.is_some() {
            return Err(Block::End);
        }
        if input.recipient().map(Arc::as_ptr) != offer.recipient.map(Arc::as_ptr) {
            return Err(Block::Move);
        }
        let route = match offer.route {
            Some(route) => Arc::clone(route),
            None => self.route_of(&mut input, offer.from),
        };
        Ok(self.place(&mut input, route, offer.body, extra, numbers))
    }
}

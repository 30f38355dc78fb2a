//! The fold: one walk over a chain, the most restrictive conclusive opinion wins (§3.2).
//! What an act does with the answer is in `kernel`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fak_abi::{Claim, Desk, Opinion, Reason, Ref, Refusal, RungName, Testimony, ToolCall, WitnessResolver};

use crate::chain::{Chain, Rung};
use crate::sites;

/// Stamped on refusals that no rung made.
pub(crate) const EMPTY_POLICY: RungName = "empty-policy";
pub(crate) const ALL_DEFER: RungName = "all-defer";

/// What a fold comes to.
pub(crate) enum Folded {
    Allow(RungName),
    Transform(Ref, RungName),
    Deny(Refusal, RungName),
    /// A rung panicked: a denial that must also be reported.
    Panic(RungName),
}

/// What a walk comes to, if not to a plain allow. Nothing that would have to be dropped.
#[derive(Clone, Copy)]
pub(crate) enum Walk {
    /// Nobody had an opinion.
    Nobody,
    Deny(Refusal, RungName),
    /// Something uncommon was said. It is to be asked once more, by [`walk_rarely`].
    Rare,
    Panic(RungName),
}

/// The opinions of a walk, where some are uncommon.
#[derive(Default)]
struct Rare {
    allow: Option<RungName>,
    indeterminate: Option<RungName>,
    transform: Option<(Ref, RungName)>,
    quarantine: Option<RungName>,
    claims: Vec<(Box<Claim>, RungName)>,
}

/// Walks `chain`: asks each rung until one denies. The first rung that allowed, if nobody had more
/// to say than allow or defer; else `rest` says what it comes to.
///
/// The common answer is one pointer, and a refusal is written once, where the caller wants it:
/// this is the hot path, and copies are most of what there is to save.
#[inline(always)]
pub(crate) fn walk<'a>(
    chain: &'a Chain,
    call: &ToolCall<'_>,
    desk: &Desk<'_>,
    rest: &mut Walk,
) -> Option<&'a Rung> {
    // One landing pad for the whole walk; the cell says which rung was being asked.
    let asked: Cell<Option<&Rung>> = Cell::new(None);
    catch_unwind(AssertUnwindSafe(|| step(chain, call, desk, &asked, rest))).unwrap_or_else(|_| {
        *rest = Walk::Panic(asked.get().map_or(EMPTY_POLICY, |rung| rung.name));
        None
    })
}

#[inline(always)]
fn step<'a>(
    chain: &'a Chain,
    call: &ToolCall<'_>,
    desk: &Desk<'_>,
    asked: &Cell<Option<&'a Rung>>,
    rest: &mut Walk,
) -> Option<&'a Rung> {
    let mut allow = None;
    for rung in &chain.rungs {
        asked.set(Some(rung));
        match rung.judge.judge(call, desk) {
            Opinion::Defer => {}
            Opinion::Allow => {
                allow.get_or_insert(rung);
            }
            Opinion::Deny(refusal) => {
                *rest = Walk::Deny(refusal, rung.name);
                return None;
            }
            _ => {
                *rest = Walk::Rare;
                return None;
            }
        }
    }
    allow
}

/// Walks `chain` and weighs every kind of opinion. Rungs only read, so asking one again is free of
/// consequence; the answers that count are these.
#[cold]
fn walk_rarely(
    chain: &Chain,
    call: &ToolCall<'_>,
    desk: &Desk<'_>,
    asked: &Cell<RungName>,
) -> Result<Rare, Folded> {
    let mut rare = Rare::default();
    for rung in &chain.rungs {
        asked.set(rung.name);
        if let Some(refusal) = rare.keep(rung.judge.judge(call, desk), rung.name, call) {
            return Err(Folded::Deny(refusal, rung.name));
        }
    }
    Ok(rare)
}

/// What a walk amounts to, once everything uncommon is weighed and claims are resolved.
pub(crate) fn conclude(
    walk: Walk,
    chain: &Chain,
    call: &ToolCall<'_>,
    desk: &Desk<'_>,
    witnesses: &[Box<dyn WitnessResolver>],
) -> Folded {
    match walk {
        Walk::Deny(refusal, by) => Folded::Deny(refusal, by),
        Walk::Panic(by) => Folded::Panic(by),
        Walk::Nobody if chain.rungs.is_empty() => deny(Reason::DefaultDeny, sites::EMPTY, EMPTY_POLICY),
        Walk::Nobody => deny(Reason::DefaultDeny, sites::ALL_DEFER, ALL_DEFER),
        Walk::Rare => {
            let asked = Cell::new(EMPTY_POLICY);
            let weighed = || match walk_rarely(chain, call, desk, &asked) {
                Ok(rare) => weigh(rare, call, witnesses, &asked),
                Err(refused) => refused,
            };
            catch_unwind(AssertUnwindSafe(weighed)).unwrap_or_else(|_| Folded::Panic(asked.get()))
        }
    }
}

impl Rare {
    /// Keeps an opinion, or refuses because of it.
    fn keep(&mut self, opinion: Opinion, by: RungName, call: &ToolCall<'_>) -> Option<Refusal> {
        match opinion {
            Opinion::Allow => {
                self.allow.get_or_insert(by);
            }
            Opinion::Indeterminate => {
                self.indeterminate.get_or_insert(by);
            }
            Opinion::Quarantine => {
                self.quarantine.get_or_insert(by);
            }
            Opinion::RequireWitness(claim) => self.claims.push((claim, by)),
            Opinion::Transform(args) => {
                if self.transform.is_some() {
                    return Some(Refusal::new(Reason::Malformed, sites::TWO_TRANSFORMS.site()));
                }
                if !within_limits(call.body(), &args) {
                    return Some(Refusal::new(Reason::TrustViolation, sites::TRANSFORM_LIMIT.site()));
                }
                self.transform = Some((args, by));
            }
            Opinion::Deny(refusal) => return Some(refusal),
            Opinion::Defer => {}
        }
        None
    }
}

/// A transform may not lower taint, widen scope, change the owner, or shed the mark of being made
/// from others' parts. A call without a body may only be given one that is private.
fn within_limits(before: Option<&Ref>, after: &Ref) -> bool {
    use fak_abi::ShareScope::Agent;
    before.is_some_and(|before| {
        after.is_owned_by(before.owner())
            && after.taint() >= before.taint()
            // Fleet and tenant are incomparable: only the same scope or the narrowest is not wider.
            && (after.scope() == before.scope() || after.scope() == Agent)
            && (after.is_derived() || !before.is_derived())
    })
}

/// The uncommon opinions, most restrictive first.
#[cold]
fn weigh(
    rare: Rare,
    call: &ToolCall<'_>,
    witnesses: &[Box<dyn WitnessResolver>],
    asked: &Cell<RungName>,
) -> Folded {
    let Rare { allow, indeterminate, transform, quarantine, claims } = rare;
    // A refutation anywhere outweighs a claim that is merely unconfirmed (§3.4).
    let (mut witnessed, mut unconfirmed) = (None, None);
    for (claim, by) in &claims {
        asked.set(by);
        match testify(claim, call, witnesses) {
            None => {
                witnessed.get_or_insert(*by);
            }
            Some(refusal) if refusal.reason == Reason::TrustViolation => return Folded::Deny(refusal, by),
            Some(refusal) => {
                unconfirmed.get_or_insert((refusal, *by));
            }
        }
    }
    if let Some((refusal, by)) = unconfirmed {
        return Folded::Deny(refusal, by);
    }
    if let Some(by) = quarantine {
        return deny(Reason::TrustViolation, sites::QUARANTINE, by);
    }
    if let Some((args, by)) = transform {
        return Folded::Transform(args, by);
    }
    // A claim that was confirmed is as good as an allow of the rung that asked for it.
    match (allow.or(witnessed), indeterminate) {
        (Some(by), _) => Folded::Allow(by),
        (None, Some(by)) => deny(Reason::DefaultDeny, sites::INDETERMINATE, by),
        (None, None) => deny(Reason::DefaultDeny, sites::ALL_DEFER, ALL_DEFER),
    }
}

/// §3.4: confirmed by some resolver and refuted by none, or the refusal.
pub(crate) fn testify(
    claim: &Claim,
    call: &ToolCall<'_>,
    witnesses: &[Box<dyn WitnessResolver>],
) -> Option<Refusal> {
    let mut confirmed = false;
    for witness in witnesses {
        match witness.resolve(claim, call) {
            Testimony::Refute => {
                return Some(Refusal::new(Reason::TrustViolation, sites::REFUTED.site()));
            }
            Testimony::Confirm => confirmed = true,
            Testimony::Abstain => {}
        }
    }
    (!confirmed).then(|| Refusal::new(Reason::Unwitnessed, sites::UNWITNESSED.site()))
}

fn deny(reason: Reason, site: &'static fak_abi::SiteInfo, by: RungName) -> Folded {
    Folded::Deny(Refusal::new(reason, site.site()), by)
}

/// Asks only the floor about a transformed call: what it refuses stays refused (§3.2, §4.3 row 7).
#[cold]
pub(crate) fn refold_floor(chain: &Chain, call: &ToolCall<'_>, desk: &Desk<'_>) -> Option<Folded> {
    chain.rungs.iter().filter(|rung| rung.floor).find_map(|rung| match ask(rung, call, desk) {
        Some(Opinion::Deny(refusal)) => Some(Folded::Deny(refusal, rung.name)),
        None => Some(Folded::Panic(rung.name)),
        Some(_) => None,
    })
}

/// One rung's opinion, `None` if it panicked.
pub(crate) fn ask(rung: &Rung, call: &ToolCall<'_>, desk: &Desk<'_>) -> Option<Opinion> {
    catch_unwind(AssertUnwindSafe(|| rung.judge.judge(call, desk))).ok()
}

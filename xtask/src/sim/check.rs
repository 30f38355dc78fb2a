//! What must hold after every step, whatever it was, and what must hold at the end.

use fak_abi::OwnedAddress;

use super::acts::Sim;
use super::fault::{Fault, Step, ensure, same};
use super::model::{Books, Key};
use super::real::broken;

/// After every step.
pub(crate) fn after_step(sim: &mut Sim, at: usize) -> Step {
    if let Some(leak) = sim.real.leak.found() {
        return Err(Fault::new(format!("§9: a body's text shows up in {leak}")));
    }
    sim.model.sweep();
    let tally = sim.real.bus.stats();
    ensure!(tally.is_conserved(), "§4.10: the books do not balance: {tally:?}");
    let product = Books {
        sent: tally.sent,
        received: tally.received,
        held: tally.held,
        dropped: tally.dropped,
        skipped: tally.skipped,
        dead: tally.dead,
        queued: tally.queued,
    };
    let model = Books { queued: sim.model.queued(), ..sim.model.books };
    same("§4.10: the books", &product, &model)?;
    ensure!(!sim.model.lanes_meet(), "§6.7: two leases that meet are granted at once: {:?}", sim.model.lanes);
    for at in 0..sim.real.barriers.len() {
        sim.barrier_stands(at)?;
    }
    if at.is_multiple_of(16) {
        depths(sim)?;
        sim.real.audit.drain().map_err(broken)?;
    }
    Ok(())
}

/// Every mailbox is as full as the model's, and none is fuller than it may be.
fn depths(sim: &Sim) -> Step {
    if sim.model.closed {
        return Ok(());
    }
    let depths = sim.real.bus.depths();
    let named: Vec<String> = depths.iter().map(|depth| depth.at.to_string()).collect();
    let gone = sim
        .model
        .boxes
        .keys()
        .filter(|key| key.locale != "inbox")
        .map(Key::text)
        .filter(|key| !named.iter().any(|name| name.replace('"', "") == *key));
    let gone: Vec<String> = gone.collect();
    ensure!(gone.is_empty(), "§4.10: the mailboxes {gone:?} are gone; the product has {named:?}");
    for depth in depths {
        ensure!(depth.queued <= sim.model.setup.capacity as u64, "§4.3 row 10: above capacity: {depth:?}");
        let OwnedAddress::Channel(key) = &depth.at else { continue };
        let locale = key.locale().name();
        let locale =
            ["in_kernel", "session", "window"].into_iter().find(|name| *name == locale).unwrap_or_default();
        let known = sim.model.boxes.get(&Key { locale, id: key.id().as_str().to_owned() });
        let Some(known) = known else {
            return Err(Fault::new(format!("the model knows of no mailbox {depth:?}")));
        };
        same("a depth", &(depth.queued, depth.received), &(known.all().count() as u64, known.received))?;
    }
    Ok(())
}

/// At the end of an episode.
pub(crate) fn at_end(sim: &mut Sim) -> Step {
    depths(sim)?;
    dead_letters(sim)?;
    journal(sim)?;
    sim.real.audit.drain().map_err(broken)?;
    let log = &sim.real.audit.sink().bytes;
    let verified = fak_adjudicate::verify_audit(&log[..], Some(&sim.real.audit.checkpoint()));
    ensure!(verified.is_ok(), "§3.6: the audit log does not verify: {verified:?}");
    sim.real.leak.look("the audit log", &String::from_utf8_lossy(log));
    sim.real
        .leak
        .found()
        .map_or(Ok(()), |leak| Err(Fault::new(format!("§3.6: a body's text shows up in {leak}"))))
}

/// §4.10: every dead letter of the model is on the host's shelf, with its cause, and a sender sees its own alone.
fn dead_letters(sim: &mut Sim) -> Step {
    let shelf = sim.real.bus.dead_letters();
    let mut product: Vec<_> =
        shelf.iter().map(|letter| (letter.from.id().as_str().to_owned(), letter.cause.name())).collect();
    let model = sim.model.dead.iter();
    let mut model: Vec<_> = model
        .map(|letter| {
            let id = sim.model.agent(letter.from).map(|agent| agent.id.clone()).unwrap_or_default();
            (id, letter.cause)
        })
        .collect();
    let crowded = model.len() > 256;
    product.sort();
    model.sort();
    if !crowded {
        same("§4.10: the dead letters", &product, &model)?;
    }
    for endpoint in &sim.real.agents {
        let me = endpoint.agent().principal();
        let foreign =
            endpoint.dead_letters().into_iter().find(|letter| letter.from.incarnation() != me.incarnation());
        ensure!(foreign.is_none(), "§4.10: {me:?} sees a dead letter of another: {foreign:?}");
    }
    Ok(())
}

/// §5.10: the journal verifies, and has an entry for every accepted patch.
fn journal(sim: &Sim) -> Step {
    let task = super::acts::record::task()?;
    let mut text = Vec::new();
    sim.real.store.journal(&task, &mut text).map_err(broken)?;
    let verified = fak_sharedtask::verify_journal(&text[..], &fak_sharedtask::VerifyOptions::default());
    ensure!(verified.is_ok(), "§5.10: the journal does not verify: {verified:?}");
    let revisions = sim.real.store.revision(&task).map(|(number, _)| number);
    same("§5.2: revisions", &revisions, &Some(sim.model.record.accepted))
}

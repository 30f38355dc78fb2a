//! Two agents meet at a name (§4.3, §4.4). Either may come first; a private body does not cross; a third of another fleet, who
//! has every right to receive, gets nothing and disturbs nothing.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::{error::Error, thread};

use fak_a2achan::{Bus, BusConfig, Delivery};
use fak_abi::{AgentHandle, Capability::*, ChannelKey, Id, Locale, PrincipalSpec, ShareScope};
use fak_adjudicate::Kernel;

fn main() -> Result<(), Box<dyn Error>> {
    let bus = Bus::new(BusConfig::default())?;
    let kernel = Kernel::builder().driver(bus.driver()).build()?;
    let attach = |name, fleet| -> Result<AgentHandle, Box<dyn Error>> {
        let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new(fleet)?);
        Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
    };
    let (alpha, bravo, eve) = (attach("alpha", "f1")?, attach("bravo", "f1")?, attach("eve", "f2")?);
    let [a, b, e] = [&alpha, &bravo, &eve].map(|agent| bus.endpoint(agent));
    let work = ChannelKey::new(Locale::InKernel, "work")?;

    // What an agent makes is its own until it says otherwise, and saying so is an act.
    let draft = alpha.mint("build the release");
    println!("alpha sends a private body: {}", a.send(&work, &draft));
    let order = alpha.widen(&draft, ShareScope::Fleet).ok()?;
    println!("alpha sends it widened: {}", a.send(&work, &order));

    // The sender came first. A receiver of another fleet is refused, and the message keeps its place.
    println!("eve receives: {}", told(&eve, &e.try_recv(&work)));
    println!("bravo receives: {}", told(&bravo, &b.try_recv(&work)));

    // The receiver comes first: it waits, on a thread of its own, until there is something for it.
    let reply = bravo.widen(&bravo.mint("on it"), ShareScope::Fleet).ok()?;
    let heard = thread::scope(|scope| {
        let waiting = scope.spawn(|| pollster::block_on(a.recv(&work)));
        println!("bravo sends: {}", b.send(&work, &reply));
        waiting.join()
    });
    println!("alpha receives: {}", told(&alpha, &heard.map_err(|_| "the waiting thread panicked")?));

    // The books say what became of every message.
    let books = bus.stats();
    println!(
        "sent {}, received {}, refused acts {}, queued {}",
        books.sent, books.received, books.denied, books.queued
    );
    println!("nothing is unaccounted for: {}", books.is_conserved());
    Ok(())
}

fn told(reader: &AgentHandle, delivery: &Delivery) -> String {
    match delivery {
        Delivery::Message(message) => {
            let text = reader.read(message.body()).allowed().unwrap_or_default();
            let (from, body) = (message.from().id(), message.body());
            format!(
                "{:?} from {from}, {}, for the {}",
                String::from_utf8_lossy(&text),
                body.taint(),
                body.scope()
            )
        }
        Delivery::Refuse(verdict) => verdict.to_string(),
        other => format!("{other:?}"),
    }
}

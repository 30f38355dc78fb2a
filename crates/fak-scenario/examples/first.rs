//! The program of the project's README: two agents, one message, one refusal (§4.3, §4.4, §2.4).
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use fak_a2achan::{Bus, BusConfig, Delivery};
use fak_abi::{Capability::*, ChannelKey, Id, IdError, Locale, PrincipalSpec, ShareScope};
use fak_adjudicate::Kernel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bus = Bus::new(BusConfig::default())?;
    let kernel = Kernel::builder().driver(bus.driver()).build()?;
    let builder = |name| Ok::<_, IdError>(PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("builders")?));
    let alpha = kernel.attach(builder("alpha")?.caps([A2aSend, RefWiden]))?;
    let bravo = kernel.attach(builder("bravo")?.caps([A2aRecv]))?;
    let (alpha_end, bravo_end) = (bus.endpoint(&alpha), bus.endpoint(&bravo));
    let work = ChannelKey::new(Locale::InKernel, "work")?;

    // What alpha makes is private to alpha: it does not cross. A refusal is no error but a verdict, which says what to do.
    let draft = alpha.mint("build the release");
    println!("{}", alpha_end.send(&work, &draft));

    // Sharing it is an act of its own. Then bravo gets it, as untrusted as it was.
    let order = alpha.widen(&draft, ShareScope::Fleet).ok()?;
    println!("{}", alpha_end.send(&work, &order));
    let Delivery::Message(message) = bravo_end.try_recv(&work) else { return Err("nothing".into()) };
    let text = bravo.read(message.body()).ok()?;
    let (from, said) = (message.from().id(), String::from_utf8_lossy(&text));
    println!("{from} says {said:?}, which is {}", message.body().taint());
    Ok(())
}

//! Two tenants in one process (§2.4, §3.1, §4.12): on one kernel the flow rule keeps their values apart, and limits keep one from
//! exhausting the other; two kernels share nothing at all.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::{error::Error, sync::Arc};

use fak_a2achan::{Bus, BusConfig};
use fak_abi::{AgentHandle, Capability::*, ChannelKey, Id, Locale, PrincipalSpec, Ref, Refused, ShareScope};
use fak_adjudicate::Kernel;

fn main() -> Result<(), Box<dyn Error>> {
    let bus = Bus::new(BusConfig { capacity: 64, ..BusConfig::default() })?;
    let kernel = Kernel::builder().driver(bus.driver()).build()?;
    let acme = attach(&kernel, "acme-1", "acme")?;
    let acme_too = attach(&kernel, "acme-2", "acme")?;
    let zeta = attach(&kernel, "zeta-1", "zeta")?;
    let desk = ChannelKey::new(Locale::InKernel, "desk")?;
    let news = ChannelKey::new(Locale::InKernel, "news")?;

    // One desk for both: each receives what is its tenant's, past what is not.
    println!("acme sends: {}", bus.endpoint(&acme).send(&desk, &shared(&acme, "acme's order")?));
    println!("zeta sends: {}", bus.endpoint(&zeta).send(&desk, &shared(&zeta, "zeta's order")?));
    for agent in [&zeta, &acme_too] {
        let message = bus.endpoint(agent).try_recv(&desk).message().ok_or("nothing for it")?;
        let text = agent.read(message.body()).ok()?;
        println!("{} receives {:?}", agent.principal().id(), String::from_utf8_lossy(&text));
    }

    // One topic for both: a publication skips whom it is not for, and says how many.
    let mut zetas = bus.endpoint(&zeta).subscribe(&news).ok()?;
    let mut acmes = bus.endpoint(&acme_too).subscribe(&news).ok()?;
    let publication = bus.endpoint(&acme).publish(&news, &shared(&acme, "acme's news")?);
    println!("acme publishes: {} copy, {} skipped", publication.fanout, publication.skipped);
    println!(
        "acme-2 got it: {}, zeta-1 got it: {}",
        acmes.try_recv().message().is_some(),
        zetas.try_recv().message().is_some()
    );

    // A value that was handed around outside the bus still does not open.
    let secret = shared(&acme, "acme's secret")?;
    println!("zeta reads acme's value: {}", zeta.read(&secret).verdict());

    // A greedy tenant fills its share of the desk, not the desk.
    let order = shared(&acme, "again")?;
    let accepted = (0..100).take_while(|_| bus.endpoint(&acme).send(&desk, &order).is_allow()).count();
    println!(
        "acme floods the desk: {accepted} of 64 places, then {}",
        bus.endpoint(&acme).send(&desk, &order)
    );
    println!("zeta still sends: {}", bus.endpoint(&zeta).send(&desk, &shared(&zeta, "one more")?));

    // Another kernel: a handle of the one is nobody in the other, whatever names they share.
    let other_bus = Bus::new(BusConfig::default())?;
    let other = Kernel::builder().driver(other_bus.driver()).build()?;
    let twin = attach(&other, "acme-1", "acme")?;
    println!(
        "acme's twin sends on the first bus: {}",
        bus.endpoint(&twin).send(&desk, &shared(&twin, "let me in")?)
    );
    println!("acme's twin reads acme's value: {}", twin.read(&secret).verdict());
    Ok(())
}

fn attach(kernel: &Arc<Kernel>, name: &str, tenant: &str) -> Result<AgentHandle, Box<dyn Error>> {
    let spec = PrincipalSpec::agent(Id::new(name)?).tenant(Id::new(tenant)?);
    Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
}

fn shared(owner: &AgentHandle, text: &'static str) -> Result<Ref, Refused> {
    owner.widen(&owner.mint(text), ShareScope::Tenant).ok()
}

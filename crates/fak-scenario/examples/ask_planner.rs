//! A worker asks a planner (§4.7): the planner leases the question (§4.4) and answers it, once; an answer that comes after the
//! deadline is a dead letter; and who lost the lease may not answer any more. Time is a clock that moves by hand.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::{error::Error, sync::Arc, time::Duration};

use fak_a2achan::{Bus, BusConfig, Delivery, Endpoint, LeasedMessage, PendingReply, RequestOptions};
use fak_abi::{
    AgentHandle, Capability::*, ChannelKey, Clock as _, Id, Locale, PrincipalSpec, Ref, Refused, Rider,
    ShareScope, Timestamp,
};
use fak_adjudicate::{Kernel, ManualClock};

const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::at(Timestamp::from_micros(0));
    let bus = Bus::new(BusConfig::default())?;
    let kernel = Kernel::builder().driver(bus.driver()).time(Arc::new(clock.clone())).build()?;
    let attach = |name| -> Result<AgentHandle, Box<dyn Error>> {
        let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("f1")?);
        Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
    };
    let (worker, planner, deputy) = (attach("worker")?, attach("planner")?, attach("deputy")?);
    let [asking, planning, standing_in] = [&worker, &planner, &deputy].map(|agent| bus.endpoint(agent));
    let desk = ChannelKey::new(Locale::InKernel, "planner-desk")?;

    // A question, and its answer. The right to answer is the question as it was received, and is used up by answering.
    let mut answer = ask((&asking, &clock), &desk, "which module first?")?;
    let question = lease(&planning, &desk, None)?;
    println!("planner leases {:?}", read(&planner, question.message().body())?);
    let reply = shared(&planner, "the parser")?;
    println!("planner answers: {}", planning.reply(question.message(), &reply));
    println!("and once more: {}", planning.reply(question.message(), &reply));
    println!("planner is done with the question: {}", question.ack());
    println!("worker gets {}", told(&worker, &answer.try_take())?);

    // The deadline passes: the worker is told so and goes on. What the planner says then reaches nobody, and is not lost silently.
    let mut answer = ask((&asking, &clock), &desk, "merge today?")?;
    let question = lease(&planning, &desk, Some(2 * PATIENCE))?;
    clock.advance(PATIENCE);
    println!("worker, after {} s: {}", PATIENCE.as_secs(), told(&worker, &answer.try_take())?);
    println!("planner answers late: {}", planning.reply(question.message(), &shared(&planner, "yes")?));
    println!("planner is done with the question: {}", question.ack());
    for letter in planning.dead_letters() {
        println!("dead letter of {}: {}", letter.from.id(), letter.cause.name());
    }

    // The lease ends before the deadline: the question goes back and a deputy takes it. The planner's answer is refused, so that
    // there are never two.
    let mut answer = ask((&asking, &clock), &desk, "which branch?")?;
    let lost = lease(&planning, &desk, Some(PATIENCE / 3))?;
    clock.advance(PATIENCE / 2);
    let question = lease(&standing_in, &desk, None)?;
    println!("planner, too slow: {}", planning.reply(lost.message(), &shared(&planner, "main")?));
    println!("deputy answers: {}", standing_in.reply(question.message(), &shared(&deputy, "release")?));
    println!("deputy is done with the question: {}", question.ack());
    println!("worker gets {}", told(&worker, &answer.try_take())?);

    let books = bus.stats();
    println!(
        "sent {}, received {}, dead {}, queued {}",
        books.sent, books.received, books.dead, books.queued
    );
    Ok(())
}

fn ask(
    (asking, clock): (&Endpoint, &ManualClock),
    desk: &ChannelKey,
    text: &'static str,
) -> Result<PendingReply, Box<dyn Error>> {
    let rider = Rider { deadline: Some(clock.now().after(PATIENCE)), ..Rider::default() };
    let options = RequestOptions { rider: Some(&rider), ..RequestOptions::default() };
    let question = shared(asking.agent(), text)?;
    Ok(asking.request(desk, &question, &options).ok()?)
}

fn lease(
    desk_of: &Endpoint,
    desk: &ChannelKey,
    time: Option<Duration>,
) -> Result<LeasedMessage, Box<dyn Error>> {
    Ok(desk_of.try_recv_leased(desk, time).message().ok_or("nothing is asked")?)
}

fn shared(owner: &AgentHandle, text: &'static str) -> Result<Ref, Refused> {
    owner.widen(&owner.mint(text), ShareScope::Fleet).ok()
}

fn read(reader: &AgentHandle, body: &Ref) -> Result<String, Box<dyn Error>> {
    let text = reader.read(body).ok()?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn told(reader: &AgentHandle, delivery: &Delivery) -> Result<String, Box<dyn Error>> {
    Ok(match delivery {
        Delivery::Message(message) => {
            format!("{:?} from {}", read(reader, message.body())?, message.from().id())
        }
        other => other.to_string(),
    })
}

//! Calls (§2.5): what is put into one comes out of it, and out of the copy that outlives it.

use fak_abi::{
    Act, Address, Cancel, CapSet, Capability, ChannelKey, Locale, MetaValue, OwnedAddress, Refusal, Rider,
    Site, Status, Timestamp, Tool, ToolCall, ToolResult, Verdict,
};

use crate::support::{Stub, crew, id, refusal};

/// §1.4, §3.3: a token under an act's name is known as the act; any other is the host's own.
#[test]
fn a_token_knows_what_it_names() {
    let stub = Stub::new();
    let own = stub.seal.tool(id("office/print"), Some(9));
    assert_eq!((own.act(), own.index(), own.name()), (None, Some(9), &id("office/print")));
    assert!(own.tag() == stub.seal.tag());
    let act = stub.seal.tool(id("a2a.publish"), None);
    assert_eq!((act.act(), act.index()), (Some(Act::Publish), None));

    assert_eq!((Tool::from(&own).name(), Tool::from(&own).act()), ("office/print", None));
    assert_eq!((Tool::from(Act::Bind).name(), Tool::from(Act::Bind).act()), ("a2a.bind", Some(Act::Bind)));
}

#[test]
fn a_call_says_what_it_was_given() {
    let stub = Stub::new();
    let caps = CapSet::of(&[Capability::A2aSend]);
    let (agent, peer) = (stub.agent(crew("a", caps), 1), stub.agent(crew("b", CapSet::NONE), 2));
    let (body, key, cancel) =
        (agent.mint("four"), ChannelKey::new(Locale::InKernel, "w").unwrap(), Cancel::new());
    let rider = Rider {
        deadline: Some(Timestamp::from_micros(5)),
        cancel: Some(cancel.clone()),
        meta: [(id("cost"), MetaValue::Number(0.5))].into(),
    };
    let bare = ToolCall::new(&agent, Act::Send);
    assert_eq!((bare.tool(), bare.target(), bare.caps()), (Tool::Act(Act::Send), Address::None, caps));
    assert!(bare.body().is_none() && bare.resolved().is_none() && !bare.has_rider());
    assert!(bare.deadline().is_none() && bare.meta("cost").is_none() && !bare.is_cancelled());

    let full = bare
        .retool(Act::Publish)
        .args(&body)
        .address(Address::Channel(&key))
        .recipient(Some(peer.principal()))
        .rider(Some(&rider));
    let owned = full.to_owned(41);
    assert_eq!(owned.seq(), 41);
    for call in [full, owned.view()] {
        assert_eq!(
            (call.tool(), call.target(), call.caps()),
            (Tool::Act(Act::Publish), Address::Channel(&key), caps)
        );
        assert_eq!((call.principal().id(), call.resolved().unwrap().id()), (&id("a"), &id("b")));
        assert_eq!(call.body().unwrap().digest(), body.digest());
        assert!(call.has_rider());
        assert_eq!(call.deadline(), Some(Timestamp::from_micros(5)));
        assert_eq!((call.meta("cost"), call.meta("price")), (Some(&MetaValue::Number(0.5)), None));
        assert!(!call.is_cancelled());
        assert_eq!(format!("{call:?}"), r##"agent "a"#1 a2a.publish in_kernel:"w""##);
    }
    // §2.5: whoever no longer wants it says so to every copy.
    cancel.cancel();
    assert!(full.is_cancelled() && owned.view().is_cancelled());

    // What an accepted transform leaves is the same call of other arguments.
    let shorter = owned.with_args(agent.mint("two"));
    assert_eq!((shorter.view().body().unwrap().len(), shorter.seq()), (3, 41));
    assert_eq!(shorter.view().target(), Address::Channel(&key));

    let token = stub.seal.tool(id("office/print"), Some(1));
    let outside = ToolCall::new(&agent, &token).to_owned(0);
    assert_eq!(outside.view().tool().name(), "office/print");
}

/// §2.5: nothing of an address is lost between the borrowed and the kept form.
#[test]
fn an_address_is_kept_whole() {
    let (key, name) = (ChannelKey::new(Locale::Session, "s").unwrap(), id("n"));
    for (address, kept, plain, shown) in [
        (Address::None, OwnedAddress::None, "", "-"),
        (Address::Channel(&key), OwnedAddress::Channel(key.clone()), "session:s", r#"session:"s""#),
        (Address::Task(&name), OwnedAddress::Task(name.clone()), "task:n", r#"task:"n""#),
        (Address::Cell(&name), OwnedAddress::Cell(name.clone()), "cell:n", r#"cell:"n""#),
        (Address::Lane(&name), OwnedAddress::Lane(name.clone()), "lane:n", r#"lane:"n""#),
        (Address::Group(&name, 3), OwnedAddress::Group(name.clone(), 3), "group:n", r##"group:"n"#3"##),
        (Address::Malformed, OwnedAddress::Malformed, "malformed", "(malformed address)"),
    ] {
        assert_eq!(address.to_owned(), kept);
        assert_eq!(kept.view(), address);
        let mut text = String::new();
        address.write_plain(&mut text).unwrap();
        assert_eq!(text, plain);
        assert_eq!((address.to_string(), kept.to_string()), (shown.to_owned(), shown.to_owned()));
    }
    assert_eq!((key.locale(), key.id()), (Locale::Session, &id("s")));
    assert_eq!(key, ChannelKey::with_id(Locale::Session, id("s")));
}

/// §2.5, §3.3: how far a call has come, and what it brings.
#[test]
fn a_result_says_how_far_it_came() {
    let stub = Stub::new();
    let made = stub.agent(crew("a", CapSet::NONE), 1).mint("x");
    let done = ToolResult::ok(Some(made.clone()));
    assert_eq!((done.status, done.payload.map(|body| body.digest())), (Status::Ok, Some(made.digest())));
    assert!(done.refused.is_none());
    let failed = ToolResult::error();
    assert!(failed.status == Status::Error && failed.payload.is_none() && failed.refused.is_none());
    let waits = ToolResult::pending();
    assert!(waits.status == Status::Pending && waits.payload.is_none() && waits.refused.is_none());
    let refused = ToolResult::refuse(Verdict::deny(refusal(), "stub"));
    assert!(refused.status == Status::Error && refused.payload.is_none());
    assert_eq!(
        refused.refused.unwrap().refusal().map(|Refusal { site, .. }| *site),
        Some(Site::new("stub/no"))
    );
}

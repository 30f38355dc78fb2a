//! The arguments of the acts on channels.

use fak_abi::json::{Cursor, Fields};

use super::{
    Parsed, closed,
    names::{Kept, Names},
    parts::{address, body, inbox, optional_count, optional_text, text},
};
use crate::act::{ChannelAct, CorrectionSpec, StatusSpec};

pub(super) fn act(names: &mut Names, name: &str, fields: &mut Fields<'_>) -> Parsed<Option<ChannelAct>> {
    Ok(Some(match name {
        "send" => ChannelAct::Send {
            to: address(fields.required("to")?)?,
            body: body(names, fields.required("body")?)?,
            key: optional_text(fields, "key")?,
            ttl_ms: optional_count(fields, "ttl_ms")?,
        },
        "recv" => ChannelAct::Recv { from: inbox(names, fields)? },
        "recv_leased" => ChannelAct::RecvLeased {
            from: inbox(names, fields)?,
            name: names.give(Kept::Leased, fields.required("as")?)?,
            deadline_ms: optional_count(fields, "deadline_ms")?,
        },
        "consume" => ChannelAct::Consume { name: names.kept(Kept::Leased, fields.required("as")?)? },
        "drop" => ChannelAct::Drop { name: names.kept(Kept::Leased, fields.required("as")?)? },
        "publish" => ChannelAct::Publish {
            topic: address(fields.required("topic")?)?,
            body: body(names, fields.required("body")?)?,
        },
        "subscribe" => ChannelAct::Subscribe {
            topic: address(fields.required("topic")?)?,
            name: names.give(Kept::Inbox, fields.required("as")?)?,
        },
        "unsubscribe" => {
            ChannelAct::Unsubscribe { inbox: names.kept(Kept::Inbox, fields.required("inbox")?)? }
        }
        "open" => ChannelAct::Open { at: address(fields.required("at")?)? },
        "bind" => ChannelAct::Bind { at: address(fields.required("at")?)? },
        "unbind" => ChannelAct::Unbind { at: address(fields.required("at")?)? },
        "request" => ChannelAct::Request {
            to: address(fields.required("to")?)?,
            body: body(names, fields.required("body")?)?,
            name: {
                let name = names.give(Kept::Request, fields.required("as")?)?;
                names.keep(Kept::Inbox, &name);
                name
            },
            blocking: match fields.optional("blocking") {
                Some(flag) => flag.boolean()?,
                None => false,
            },
            deadline_ms: optional_count(fields, "deadline_ms")?,
        },
        "reply" => ChannelAct::Reply {
            to_request: names.kept(Kept::Saved, fields.required("to_request")?)?,
            body: body(names, fields.required("body")?)?,
        },
        "await" => ChannelAct::Await { name: names.kept(Kept::Request, fields.required("as")?)? },
        "compact" => ChannelAct::Compact {
            body: body(names, fields.required("body")?)?,
            name: names.give(Kept::Saved, fields.required("as")?)?,
        },
        "resume" => ChannelAct::Resume { window: text(fields, "window")? },
        "status" => ChannelAct::Status { status: status(fields.required("status")?)? },
        "correct" => ChannelAct::Correct {
            request: correction(fields.required("request")?)?,
            name: correction_name(names, fields)?,
        },
        "receive_correction" => ChannelAct::ReceiveCorrection { name: correction_name(names, fields)? },
        "ack" => ChannelAct::Ack { action: text(fields, "action")?, name: correction_name(names, fields)? },
        "observe" => ChannelAct::Observe { name: correction_name(names, fields)? },
        _ => return Ok(None),
    }))
}

/// `as` of a correction's acts: the first use gives the name.
fn correction_name(names: &mut Names, fields: &mut Fields<'_>) -> Parsed<Option<String>> {
    fields.optional("as").map(|cursor| names.give(Kept::Correction, cursor)).transpose()
}

fn status(cursor: Cursor<'_>) -> Parsed<StatusSpec> {
    let mut fields =
        closed(cursor, &["worker_id", "issue", "task_id", "lane", "live", "seq", "last_action"])?;
    Ok(StatusSpec {
        worker_id: optional_text(&mut fields, "worker_id")?,
        issue: fields.required("issue")?.i64()?,
        task_id: optional_text(&mut fields, "task_id")?.unwrap_or_default(),
        lane: text(&mut fields, "lane")?,
        live: match fields.optional("live") {
            Some(live) => live.boolean()?,
            None => true,
        },
        seq: fields.required("seq")?.u64()?,
        last_action: optional_text(&mut fields, "last_action")?.unwrap_or_default(),
    })
}

fn correction(cursor: Cursor<'_>) -> Parsed<CorrectionSpec> {
    let mut fields = closed(
        cursor,
        &[
            "orchestrator_id",
            "worker_id",
            "issue",
            "task_id",
            "lane",
            "message",
            "status_digest",
            "max_bytes",
        ],
    )?;
    Ok(CorrectionSpec {
        orchestrator_id: optional_text(&mut fields, "orchestrator_id")?,
        worker_id: text(&mut fields, "worker_id")?,
        issue: fields.required("issue")?.i64()?,
        task_id: optional_text(&mut fields, "task_id")?.unwrap_or_default(),
        lane: text(&mut fields, "lane")?,
        message: text(&mut fields, "message")?,
        status_digest: optional_text(&mut fields, "status_digest")?,
        max_bytes: optional_count(&mut fields, "max_bytes")?,
    })
}

//! The arguments of the acts on channels.

use fak_abi::json::{Cursor, Fields};

use super::{
    Parsed, closed,
    names::{Kept, Names},
    parts::{address, body, inbox, optional_count, optional_text, text},
};
use crate::act::{ActionSpec, ChannelAct, CorrectionSpec, StatusSpec};

pub(super) fn act(names: &mut Names, name: &str, fields: &mut Fields<'_>) -> Parsed<Option<ChannelAct>> {
    Ok(Some(match name {
        "send" => ChannelAct::Send {
            to: address(names, fields.required("to")?)?,
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
            topic: address(names, fields.required("topic")?)?,
            body: body(names, fields.required("body")?)?,
        },
        "subscribe" => ChannelAct::Subscribe {
            topic: address(names, fields.required("topic")?)?,
            name: names.give(Kept::Inbox, fields.required("as")?)?,
        },
        "unsubscribe" => {
            ChannelAct::Unsubscribe { inbox: names.kept(Kept::Inbox, fields.required("inbox")?)? }
        }
        "open" => ChannelAct::Open { at: address(names, fields.required("at")?)? },
        "bind" => ChannelAct::Bind { at: address(names, fields.required("at")?)? },
        "unbind" => ChannelAct::Unbind { at: address(names, fields.required("at")?)? },
        "request" => ChannelAct::Request {
            to: address(names, fields.required("to")?)?,
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
            to_request: names.message(fields.required("to_request")?)?,
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
            name: correction_name(fields)?,
        },
        "receive_correction" => ChannelAct::ReceiveCorrection { name: correction_name(fields)? },
        "ack" => {
            ChannelAct::Ack { action: action(fields.required("action")?)?, name: correction_name(fields)? }
        }
        "observe" => ChannelAct::Observe { name: correction_name(fields)? },
        _ => return Ok(None),
    }))
}

/// `as` of a correction's acts: the first use gives the name; without it there is one correction at a time.
fn correction_name(fields: &mut Fields<'_>) -> Parsed<String> {
    Ok(optional_text(fields, "as")?.unwrap_or_default())
}

/// A worker's next action: a summary, or an object of it and what it says otherwise than the correction.
fn action(cursor: Cursor<'_>) -> Parsed<ActionSpec> {
    if let Some(summary) = cursor.value().as_str() {
        return Ok(ActionSpec { summary: summary.to_owned(), ..ActionSpec::default() });
    }
    let known = ["summary", "worker_id", "issue", "task_id", "lane", "correction_id", "status_digest"];
    let mut fields = closed(cursor, &known)?;
    Ok(ActionSpec {
        summary: text(&mut fields, "summary")?,
        worker_id: optional_text(&mut fields, "worker_id")?,
        issue: fields.optional("issue").map(Cursor::i64).transpose()?,
        task_id: optional_text(&mut fields, "task_id")?,
        lane: optional_text(&mut fields, "lane")?,
        correction_id: optional_text(&mut fields, "correction_id")?,
        status_digest: optional_text(&mut fields, "status_digest")?,
    })
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
        seq: fields.required("seq")?.i64()?,
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

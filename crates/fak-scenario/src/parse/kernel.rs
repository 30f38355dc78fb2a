//! The arguments of the acts on the kernel.

use fak_abi::{
    ShareScope,
    json::{Cursor, Fields},
};

use super::{
    Parsed, Source,
    names::{Kept, Names},
    parts::{BODY, address, body, subject, text, word},
};
use crate::act::{CallArgs, Evidence, KernelAct};

pub(super) fn act(
    source: &Source<'_>,
    names: &Names,
    name: &str,
    fields: &mut Fields<'_>,
) -> Parsed<Option<KernelAct>> {
    Ok(Some(match name {
        "widen" => KernelAct::Widen {
            what: subject(names, fields)?,
            scope: word(fields.required("scope")?, "scope", ShareScope::ALL, ShareScope::name)?,
        },
        "trust" => KernelAct::Trust {
            what: subject(names, fields)?,
            evidence: fields.required("evidence")?.one_of(&[
                ("confirmed", Evidence::Confirmed),
                ("refuted", Evidence::Refuted),
                ("none", Evidence::None),
            ])?,
        },
        "read" => KernelAct::Read { name: names.kept(Kept::Saved, fields.required("ref")?)? },
        "pool_put" => KernelAct::PoolPut { body: body(names, fields.required("body")?)? },
        "pool_get" => KernelAct::PoolGet { text: text(fields, "text")? },
        "call" => KernelAct::Call {
            tool: fields.required("tool")?.non_empty()?.to_owned(),
            args: fields.optional("args").map(|cursor| args(source, names, cursor)).transpose()?,
            meta: match fields.optional("meta") {
                Some(cursor) => {
                    cursor.object()?;
                    Some(source.raw(cursor))
                }
                None => None,
            },
            address: fields.optional("address").map(|at| address(names, at)).transpose()?,
        },
        "detach" => KernelAct::Detach { agent: names.agent(fields.required("agent")?)? },
        "attach" => KernelAct::Attach { agent: names.agent(fields.required("agent")?)? },
        "who" => KernelAct::Who,
        "held" => KernelAct::Held,
        "tick" => KernelAct::Tick { ms: fields.required("ms")?.u64()? },
        "audit" => KernelAct::Audit,
        "stats" => KernelAct::Stats,
        _ => return Ok(None),
    }))
}

/// A body if it looks like one, otherwise whatever JSON the tool takes.
fn args(source: &Source<'_>, names: &Names, cursor: Cursor<'_>) -> Parsed<CallArgs> {
    let looks = cursor.value().as_object().is_some_and(|members| {
        members.iter().all(|member| BODY.contains(&&*member.name))
            && members.iter().any(|member| matches!(&*member.name, "text" | "base64" | "ref"))
    });
    Ok(if looks { CallArgs::Body(body(names, cursor)?) } else { CallArgs::Json(source.raw(cursor)) })
}

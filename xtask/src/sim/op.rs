//! The steps of an episode as data: which things they touch is said by small numbers that are read modulo what there is,
//! so that a trace stays meaningful when steps are taken out of it.

use super::rng::Rng;

/// One step. Numbers name things modulo how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Attach { name: u8, shape: u8 },
    Detach { name: u8 },
    Mint { agent: u8, padding: u8 },
    Widen { agent: u8, body: u8, scope: u8 },
    Raise { agent: u8, body: u8 },
    Derive { agent: u8, first: u8, second: u8 },
    Read { agent: u8, body: u8 },
    Send { agent: u8, key: u8, body: u8, ttl: u8, again: u8 },
    Burst { agent: u8, key: u8, body: u8, times: u8 },
    TryRecv { agent: u8, key: u8 },
    Wait { agent: u8, key: u8, deadline: u8 },
    Poll { task: u8 },
    Cancel { task: u8 },
    Drop { task: u8 },
    Settle { order: u8 },
    Bind { agent: u8, key: u8 },
    Unbind { agent: u8, key: u8 },
    DropBinding { binding: u8 },
    Keep { binding: u8 },
    Open { key: u8 },
    Publish { agent: u8, key: u8, body: u8 },
    Subscribe { agent: u8, key: u8 },
    Unsubscribe { sub: u8 },
    DropSub { sub: u8 },
    Pull { sub: u8 },
    WaitSub { sub: u8, deadline: u8 },
    Advance { by: u8 },
    Mood { rung: u8, mood: u8 },
    Door { door: u8 },
    Shaky { on: bool },
    Refill { sends: u8, recvs: u8 },
    Reload { policy: u8 },
    Explain { agent: u8, key: u8, body: u8 },
    Close,
}

impl Op {
    /// A step, at random.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let mut b = || rng.byte();
        let (x, y, z) = (b(), b(), b());
        match rng.below(1000) {
            0..40 => Self::Attach { name: x, shape: y },
            40..55 => Self::Detach { name: x },
            55..115 => Self::Mint { agent: x, padding: y },
            115..185 => Self::Widen { agent: x, body: y, scope: z },
            185..192 => Self::Raise { agent: x, body: y },
            192..200 => Self::Derive { agent: x, first: y, second: z },
            200..230 => Self::Read { agent: x, body: y },
            230..390 => Self::Send { agent: x, key: y, body: z, ttl: rng.byte(), again: rng.byte() },
            390..400 => Self::Burst { agent: x, key: y, body: z, times: rng.byte() },
            400..500 => Self::TryRecv { agent: x, key: y },
            500..570 => Self::Wait { agent: x, key: y, deadline: z },
            570..610 => Self::Poll { task: x },
            610..618 => Self::Cancel { task: x },
            618..630 => Self::Drop { task: x },
            630..690 => Self::Settle { order: x },
            690..725 => Self::Bind { agent: x, key: y },
            725..735 => Self::Unbind { agent: x, key: y },
            735..745 => Self::DropBinding { binding: x },
            745..749 => Self::Keep { binding: x },
            749..753 => Self::Open { key: x },
            753..803 => Self::Publish { agent: x, key: y, body: z },
            803..833 => Self::Subscribe { agent: x, key: y },
            833..839 => Self::Unsubscribe { sub: x },
            839..845 => Self::DropSub { sub: x },
            845..885 => Self::Pull { sub: x },
            885..905 => Self::WaitSub { sub: x, deadline: y },
            905..935 => Self::Advance { by: x },
            935..957 => Self::Mood { rung: x, mood: if y < 128 { 0 } else { y } },
            957..965 => Self::Door { door: x },
            965..968 => Self::Shaky { on: x < 64 },
            968..980 => Self::Refill { sends: x, recvs: y },
            980..988 => Self::Reload { policy: x },
            988..999 => Self::Explain { agent: x, key: y, body: z },
            _ if x < 32 => Self::Close,
            _ => Self::Settle { order: x },
        }
    }
}

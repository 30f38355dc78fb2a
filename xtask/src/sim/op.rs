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
    Lease { agent: u8, key: u8, time: u8 },
    WaitLease { agent: u8, key: u8, deadline: u8, time: u8 },
    Ack { guard: u8 },
    Return { guard: u8 },
    Request { agent: u8, key: u8, body: u8, deadline: u8 },
    Reply { agent: u8, request: u8, body: u8 },
    TakeAnswer { request: u8 },
    DropRequest { request: u8 },
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
    CellWrite { agent: u8, cell: u8, body: u8, expected: u8 },
    CellDelete { agent: u8, cell: u8, scope: u8 },
    CellGet { agent: u8, cell: u8, scope: u8 },
    LaneLease { agent: u8, lane: u8, time: u8 },
    LaneToken { agent: u8, token: u8, what: u8 },
    Patch { agent: u8, scope: u8, base: u8, what: u8 },
    View { agent: u8 },
    Status { agent: u8, what: u8, how: u8 },
    Correct { agent: u8, worker: u8, how: u8 },
    ReceiveCorrection { agent: u8 },
    AckCorrection { agent: u8, steer: u8, how: u8 },
    Observe { agent: u8, steer: u8 },
    Compact { agent: u8, body: u8, tasks: u8 },
    Resume { agent: u8, window: u8 },
    Hand { agent: u8, group: u8, body: u8, how: u8 },
    Complete { pending: u8 },
    Withdraw { pending: u8 },
    RecvGroup { agent: u8, group: u8 },
    Gather { agent: u8, group: u8, body: u8, how: u8 },
    OpenBarrier { agent: u8, group: u8 },
    Arrive { agent: u8, barrier: u8, how: u8 },
    Depart { agent: u8, barrier: u8, member: u8 },
    WaitBarrier { agent: u8, barrier: u8, deadline: u8 },
    DecideHeld { agent: u8, held: u8, how: u8 },
    WatchTask { agent: u8 },
    NextWatched { watch: u8, how: u8 },
    WatchCells { agent: u8, scope: u8 },
    NextTold { watch: u8, how: u8 },
    SendWait { agent: u8, key: u8, body: u8, deadline: u8 },
    Copy { agent: u8, body: u8 },
    PoolPut { agent: u8, body: u8 },
    PoolGet { agent: u8, body: u8 },
    Unpin { pin: u8 },
    LeaseSub { sub: u8, time: u8 },
    WaitLeaseSub { sub: u8, deadline: u8, time: u8 },
    LeaseAnswer { request: u8, time: u8 },
    LeaseGroup { agent: u8, group: u8, time: u8 },
    Topology { seed: u8 },
    Split { agent: u8, group: u8, how: u8, time: u8 },
    Starve { how: u8, seed: u8 },
    Close,
}

impl Op {
    /// A step, at random.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        match rng.below(20) {
            8 => return Self::pooled(rng),
            9 if rng.one_in(2) => return Self::wider(rng),
            0..4 => return Self::layered(rng),
            4..8 => return Self::steered(rng),
            _ => {}
        }
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
            230..255 => Self::Request { agent: x, key: y, body: z, deadline: rng.byte() },
            255..275 => Self::Reply { agent: x, request: y, body: z },
            275..290 => Self::TakeAnswer { request: x },
            290..293 => Self::DropRequest { request: x },
            293..390 => Self::Send { agent: x, key: y, body: z, ttl: rng.byte(), again: rng.byte() },
            390..400 => Self::Burst { agent: x, key: y, body: z, times: rng.byte() },
            400..460 => Self::TryRecv { agent: x, key: y },
            460..490 => Self::Lease { agent: x, key: y, time: z },
            490..505 => Self::Ack { guard: x },
            505..515 => Self::Return { guard: x },
            515..525 => Self::WaitLease { agent: x, key: y, deadline: z, time: rng.byte() },
            525..570 => Self::Wait { agent: x, key: y, deadline: z },
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
            935..957 => Self::Mood { rung: x, mood: if y < 190 { 0 } else { y } },
            957..965 => Self::Door { door: x },
            965..968 => Self::Shaky { on: x < 64 },
            968..980 => Self::Refill { sends: x, recvs: y },
            980..988 => Self::Reload { policy: x },
            988..999 => Self::Explain { agent: x, key: y, body: z },
            _ if x < 32 => Self::Close,
            _ => Self::Settle { order: x },
        }
    }

    /// A step of the pool.
    fn pooled(rng: &mut Rng) -> Self {
        let (agent, body) = (rng.byte(), rng.byte());
        match rng.below(12) {
            0..3 => Self::Copy { agent, body },
            3..6 => Self::PoolPut { agent, body },
            6..8 => Self::Unpin { pin: body },
            _ => Self::PoolGet { agent, body },
        }
    }

    /// A step of guards beside those of mailboxes, of topologies and of splits.
    fn wider(rng: &mut Rng) -> Self {
        let (agent, x, y, z) = (rng.byte(), rng.byte(), rng.byte(), rng.byte());
        match rng.below(100) {
            0..30 => Self::LeaseSub { sub: x, time: y },
            30..42 => Self::WaitLeaseSub { sub: x, deadline: y, time: z },
            42..62 => Self::LeaseAnswer { request: x, time: y },
            62..76 => Self::LeaseGroup { agent, group: x, time: y },
            76..84 => Self::Topology { seed: x },
            _ => Self::Split { agent, group: x, how: y, time: z },
        }
    }

    /// A step of what several have to do together.
    fn steered(rng: &mut Rng) -> Self {
        let (agent, x, y, z) = (rng.byte(), rng.byte(), rng.byte(), rng.byte());
        match rng.below(1000) {
            0..110 => Self::Status { agent, what: x, how: y },
            110..200 => Self::Correct { agent, worker: x, how: y },
            200..280 => Self::ReceiveCorrection { agent },
            280..350 => Self::AckCorrection { agent, steer: x, how: y },
            350..390 => Self::Observe { agent, steer: x },
            390..430 => Self::Compact { agent, body: x, tasks: y },
            430..480 => Self::Resume { agent, window: x },
            480..550 => Self::Hand { agent, group: x, body: y, how: z },
            550..570 => Self::Complete { pending: x },
            570..580 => Self::Withdraw { pending: x },
            580..640 => Self::RecvGroup { agent, group: x },
            640..670 => Self::Gather { agent, group: x, body: y, how: z },
            670..690 => Self::OpenBarrier { agent, group: x },
            690..760 => Self::Arrive { agent, barrier: x, how: y },
            760..780 => Self::Depart { agent, barrier: x, member: y },
            780..810 => Self::WaitBarrier { agent, barrier: x, deadline: y },
            810..840 => Self::DecideHeld { agent, held: x, how: y },
            840..860 => Self::WatchTask { agent },
            860..895 => Self::NextWatched { watch: x, how: y },
            895..905 => Self::WatchCells { agent, scope: x },
            905..935 => Self::NextTold { watch: x, how: y },
            935..990 => Self::SendWait { agent, key: x, body: y, deadline: z },
            _ => Self::Starve { how: x, seed: y },
        }
    }

    /// True if all that this step does goes through the kernel or is nothing but a look: an audit log that takes no more
    /// refuses it.
    pub(crate) const fn is_refusable(self) -> bool {
        !matches!(
            self,
            Self::Starve { .. }
                | Self::Close
                | Self::Explain { .. }
                | Self::SendWait { .. }
                | Self::Advance { .. }
                | Self::WatchTask { .. }
                | Self::NextWatched { .. }
                | Self::Hand { .. }
                | Self::Gather { .. }
        )
    }

    /// A step of the layers beside the channels.
    fn layered(rng: &mut Rng) -> Self {
        let (agent, x, y, z) = (rng.byte(), rng.byte(), rng.byte(), rng.byte());
        match rng.below(100) {
            0..25 => Self::CellWrite { agent, cell: x, body: y, expected: z },
            25..30 => Self::CellDelete { agent, cell: x, scope: y },
            30..40 => Self::CellGet { agent, cell: x, scope: y },
            40..55 => Self::LaneLease { agent, lane: x, time: y },
            55..75 => Self::LaneToken { agent, token: x, what: y },
            75..92 => Self::Patch { agent, scope: x, base: y, what: z },
            _ => Self::View { agent },
        }
    }
}

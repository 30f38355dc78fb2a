//! The paths by name.

use crate::{channels, decide, groups, record};

/// A world in which an act can be done so many times.
pub struct Run(Box<dyn FnMut(u64)>);

impl Run {
    /// What the world does; the number is how often.
    pub fn new(act: impl FnMut(u64) + 'static) -> Self {
        Self(Box::new(act))
    }

    /// What is done once, whatever it is.
    pub fn each(mut act: impl FnMut() + 'static) -> Self {
        Self::new(move |times| (0..times).for_each(|_| act()))
    }

    /// Does it so many times.
    pub fn go(&mut self, times: u64) {
        (self.0)(times);
    }
}

/// One path.
pub struct Path {
    /// Its name on the command line.
    pub name: &'static str,
    /// Makes the world in one size: of what, each path says.
    pub make: fn(u64) -> Run,
    /// How often the act can be done in one world.
    pub most: u64,
}

/// Every path.
pub const PATHS: &[Path] = &[
    // Size: rungs.
    path("bare", decide::bare),
    path("decide", decide::rungs),
    // Size: rungs scoped to other tools, beside one that is not.
    path("decide-elsewhere", decide::elsewhere),
    // Size: rules of the policy that name other tools, beside ten that do not.
    path("policy", decide::policy),
    path("refused-capability", channels::refused_capability),
    path("refused-private", channels::refused_private),
    // Size: channels; the acts go round them.
    path("send-recv", channels::send_recv),
    path("send-recv-by-key", channels::send_recv_by_key),
    path("send-recv-one-of", channels::send_recv_one_of),
    path("tokio-send-recv", channels::tokio_send_recv),
    Path { name: "send", make: channels::send, most: channels::QUEUED - 1 },
    Path { name: "recv", make: channels::recv, most: channels::QUEUED },
    path("ping-pong", channels::ping_pong),
    path("tokio-ping-pong", channels::tokio_ping_pong),
    // Size: subscribers.
    path("publish", channels::publish),
    path("tokio-publish", channels::tokio_publish),
    path("request", channels::request),
    path("tokio-request", channels::tokio_request),
    Path { name: "audited-send-recv", make: channels::audited_send_recv, most: channels::AUDITED },
    // Size: notes that are there.
    Path { name: "append", make: record::append, most: record::PATCHES },
    path("view", record::view),
    path("encode-and-hash", record::encode_and_hash),
    // Size: entries.
    path("verify", record::verify),
    path("sha256-journal", record::sha256),
    // Size: members.
    path("group", groups::group),
    path("sort", groups::sort),
    path("barrier", groups::barrier),
    // Size: edges, over a fifth as many members.
    path("declare", groups::declare),
    path("petgraph", groups::petgraph),
];

const fn path(name: &'static str, make: fn(u64) -> Run) -> Path {
    Path { name, make, most: u64::MAX }
}

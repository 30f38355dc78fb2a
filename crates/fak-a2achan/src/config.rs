//! How a bus is set up: capacities, addressing and what one principal may take (§4.3, §4.12).

use std::time::Duration;

use thiserror::Error;

/// Whether a name has to be made known before it is sent to (§4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Addressing {
    /// Either side of a rendezvous may come first.
    #[default]
    Open,
    /// A key that was never opened, bound, attached or subscribed to is refused MISROUTE.
    Declared,
}

/// What one principal may take of a bus, so that it cannot exhaust what another needs (§4.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Mailboxes it made by being the first to use their key, and topics likewise.
    pub mailboxes: u32,
    /// Bytes of its bodies that are queued in mailboxes.
    pub queued_bytes: u64,
    /// Subscriptions it has.
    pub subscriptions: u32,
    /// Waits it has, for messages and for room.
    pub waits: u32,
    /// Messages it has leased.
    pub leases: u32,
    /// Requests it has open.
    pub requests: u32,
    /// Windows it has minted and not resumed.
    pub windows: u32,
    /// Idempotency keys that are remembered (§4.13).
    pub remembered_keys: u32,
    /// Dead letters of its messages that are kept.
    pub dead_letters: u32,
    /// Messages held from it that are kept.
    pub held: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mailboxes: 4_096,
            queued_bytes: 64 << 20,
            subscriptions: 4_096,
            waits: 4_096,
            leases: 1_024,
            requests: 1_024,
            windows: 256,
            remembered_keys: 1_024,
            dead_letters: 256,
            held: 256,
        }
    }
}

/// How a bus is set up (§4.3).
///
/// ```
/// use fak_a2achan::{Bus, BusConfig};
/// let bus = Bus::new(BusConfig { capacity: 64, ..BusConfig::default() })?;
/// # let _ = bus;
/// # Ok::<(), fak_a2achan::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusConfig {
    /// Messages a mailbox or inbox holds, reserved slots counted; from 1 to
    /// [`BusConfig::MAX_CAPACITY`].
    pub capacity: usize,
    /// The largest inline body, in bytes.
    pub max_body_bytes: usize,
    /// Whether keys have to be declared.
    pub addressing: Addressing,
    /// How long a leased message stays with its holder unless it says otherwise (§4.4).
    pub lease: Duration,
    /// How often a leased message may be put back before it becomes a dead letter (§4.4).
    pub redeliveries: u32,
    /// Dead letters that are kept in all, whoever sent them.
    pub dead_letters: usize,
    /// Held messages that are kept in all.
    pub held: usize,
    /// What one principal may take.
    pub limits: Limits,
}

impl Default for BusConfig {
    fn default() -> Self {
        Self {
            capacity: 1_024,
            max_body_bytes: 1 << 20,
            addressing: Addressing::Open,
            lease: Duration::from_secs(30),
            redeliveries: 5,
            dead_letters: 16_384,
            held: 16_384,
            limits: Limits::default(),
        }
    }
}

impl BusConfig {
    /// The most messages that a mailbox may be made to hold.
    pub const MAX_CAPACITY: usize = 1 << 24;

    pub(crate) fn check(self) -> Result<Self, ConfigError> {
        if self.capacity == 0 {
            return Err(ConfigError::Capacity);
        }
        if self.capacity > Self::MAX_CAPACITY {
            return Err(ConfigError::Bound(self.capacity));
        }
        Ok(self)
    }

    /// Messages of one sender that a mailbox holds at most: three quarters of it, for mailboxes
    /// large enough to be shared (§4.12).
    pub(crate) const fn share(&self) -> u64 {
        let capacity = self.capacity as u64;
        if capacity < 64 { capacity } else { capacity - capacity / 4 }
    }
}

/// A setup that cannot work (§4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A mailbox that holds nothing could never pass a message (I16).
    #[error("the capacity of a mailbox must be at least 1")]
    Capacity,
    /// A mailbox without a bound could grow until the process dies (I14).
    #[error("the capacity of a mailbox must be at most {max}, not {0}", max = BusConfig::MAX_CAPACITY)]
    Bound(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_of_capacity_nothing_is_a_configuration_error() {
        let config = BusConfig { capacity: 0, ..BusConfig::default() };
        assert_eq!(config.check(), Err(ConfigError::Capacity));
    }

    #[test]
    fn a_mailbox_without_a_bound_is_a_configuration_error() {
        let config = |capacity| BusConfig { capacity, ..BusConfig::default() };
        assert!(config(BusConfig::MAX_CAPACITY).check().is_ok());
        let error = config(usize::MAX).check().unwrap_err();
        assert_eq!(error, ConfigError::Bound(usize::MAX));
        assert!(error.to_string().contains("at most 16777216, not 18446744073709551615"), "{error}");
    }

    #[test]
    fn a_share_is_three_quarters_of_a_large_mailbox_and_all_of_a_small_one() {
        let share = |capacity| BusConfig { capacity, ..BusConfig::default() }.share();
        assert_eq!([share(1), share(63), share(64), share(1024)], [1, 63, 48, 768]);
    }
}

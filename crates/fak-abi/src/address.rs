//! What an act addresses: a channel, a task, a cell, a lane or a group (§2.5, §4.1).

use std::fmt;

use crate::closed::closed_enum;
use crate::id::{Id, IdError};

closed_enum! {
    /// The three kinds of channel (§4.1): one mailbox, addressed differently.
    pub enum Locale: u8, "locale", "in_kernel, session, window" {
        /// A rendezvous name.
        InKernel = 0 => "in_kernel",
        /// A peer's trace id.
        Session = 1 => "session",
        /// A continuation id.
        Window = 2 => "window",
    }
}

/// The name of a mailbox (§4.1). Equal iff both parts are: the locale is part of the identity.
///
/// ```
/// use fak_abi::{ChannelKey, Locale};
/// let key: ChannelKey = "in_kernel:work".parse()?;
/// assert_eq!(key, ChannelKey::new(Locale::InKernel, "work")?);
/// assert_eq!(key.to_string(), "in_kernel:\"work\"");
/// # Ok::<(), fak_abi::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelKey {
    locale: Locale,
    id: Id,
}

/// Text that is not an address (§4.1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The part after the colon is not an id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The part before the colon is not a locale.
    #[error(transparent)]
    Locale(#[from] crate::closed::UnknownName),
    /// There is no colon.
    #[error("not an address: expected \"locale:id\", such as in_kernel:work")]
    Shape,
}

impl ChannelKey {
    /// Names a mailbox.
    ///
    /// # Errors
    /// [`AddressError::Id`] if `id` is not an id.
    pub fn new(locale: Locale, id: &str) -> Result<Self, AddressError> {
        Ok(Self { locale, id: Id::new(id)? })
    }

    /// Names a mailbox by an id that was already checked.
    #[must_use]
    pub const fn with_id(locale: Locale, id: Id) -> Self {
        Self { locale, id }
    }

    /// Which kind of channel.
    #[must_use]
    #[inline]
    pub const fn locale(&self) -> Locale {
        self.locale
    }

    /// Its name.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> &Id {
        &self.id
    }
}

impl fmt::Display for ChannelKey {
    /// With the id quoted, so that it cannot run into the text around it (§4.1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.locale, self.id.quoted())
    }
}

impl std::str::FromStr for ChannelKey {
    type Err = AddressError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (locale, id) = s.split_once(':').ok_or(AddressError::Shape)?;
        Self::new(locale.parse()?, id)
    }
}

/// What an act addresses, borrowed (§2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Address<'a> {
    /// Nothing.
    #[default]
    None,
    /// A channel, topic or inbox.
    Channel(&'a ChannelKey),
    /// A shared record.
    Task(&'a Id),
    /// A cell of the space.
    Cell(&'a Id),
    /// A lane.
    Lane(&'a Id),
    /// A group, and the rank within it.
    Group(&'a Id, u32),
    /// What was given was no address at all: the floor answers MALFORMED and the act is audited
    /// (§4.1, §4.3 row 1). The text itself is not kept.
    Malformed,
}

impl Address<'_> {
    /// An owned copy; bumps counts, copies no text.
    #[must_use]
    pub fn to_owned(self) -> OwnedAddress {
        match self {
            Self::None => OwnedAddress::None,
            Self::Channel(key) => OwnedAddress::Channel(key.clone()),
            Self::Task(id) => OwnedAddress::Task(id.clone()),
            Self::Cell(id) => OwnedAddress::Cell(id.clone()),
            Self::Lane(id) => OwnedAddress::Lane(id.clone()),
            Self::Group(id, rank) => OwnedAddress::Group(id.clone(), rank),
            Self::Malformed => OwnedAddress::Malformed,
        }
    }

    /// Writes the form that policy globs match and audit lines carry: `locale:id`, `task:id`,
    /// `cell:key`, `lane:name`, `group:name`, unquoted; nothing for no address.
    ///
    /// # Errors
    /// What `out` answers.
    pub fn write_plain(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let (family, id) = match self {
            Self::None => return Ok(()),
            Self::Malformed => return out.write_str("malformed"),
            Self::Channel(key) => (key.locale.name(), &key.id),
            Self::Task(id) => ("task", *id),
            Self::Cell(id) => ("cell", *id),
            Self::Lane(id) => ("lane", *id),
            Self::Group(id, _) => ("group", *id),
        };
        out.write_str(family)?;
        out.write_char(':')?;
        out.write_str(id)
    }
}

impl fmt::Display for Address<'_> {
    /// For people: the id quoted (§4.1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("-"),
            Self::Malformed => f.write_str("(malformed address)"),
            Self::Channel(key) => fmt::Display::fmt(key, f),
            Self::Task(id) => write!(f, "task:{}", id.quoted()),
            Self::Cell(id) => write!(f, "cell:{}", id.quoted()),
            Self::Lane(id) => write!(f, "lane:{}", id.quoted()),
            Self::Group(id, rank) => write!(f, "group:{}#{rank}", id.quoted()),
        }
    }
}

/// An [`Address`] that outlives the call (§2.5).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum OwnedAddress {
    /// Nothing.
    #[default]
    None,
    /// A channel, topic or inbox.
    Channel(ChannelKey),
    /// A shared record.
    Task(Id),
    /// A cell of the space.
    Cell(Id),
    /// A lane.
    Lane(Id),
    /// A group, and the rank within it.
    Group(Id, u32),
    /// What was given was no address.
    Malformed,
}

impl OwnedAddress {
    /// A borrowed view.
    #[must_use]
    #[inline]
    pub const fn view(&self) -> Address<'_> {
        match self {
            Self::None => Address::None,
            Self::Channel(key) => Address::Channel(key),
            Self::Task(id) => Address::Task(id),
            Self::Cell(id) => Address::Cell(id),
            Self::Lane(id) => Address::Lane(id),
            Self::Group(id, rank) => Address::Group(id, *rank),
            Self::Malformed => Address::Malformed,
        }
    }
}

impl fmt::Display for OwnedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.view(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_is_part_of_the_identity() {
        let a: ChannelKey = "session:x".parse().unwrap();
        let b: ChannelKey = "window:x".parse().unwrap();
        assert_ne!(a, b);
    }

    #[test]
    fn what_is_no_key_is_a_typed_error() {
        assert_eq!("work".parse::<ChannelKey>(), Err(AddressError::Shape));
        assert!(matches!("lobby:x".parse::<ChannelKey>(), Err(AddressError::Locale(_))));
        assert!(matches!("session:".parse::<ChannelKey>(), Err(AddressError::Id(IdError::Empty))));
        // A colon in the id is fine; a line break is not (I07).
        assert!("session:a:b]".parse::<ChannelKey>().is_ok());
        assert!(matches!("session:a\nb".parse::<ChannelKey>(), Err(AddressError::Id(_))));
    }
}

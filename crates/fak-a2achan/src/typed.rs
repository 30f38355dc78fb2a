//! Values in, values out: a channel whose bodies are JSON of one type. Provenance stays with the
//! message; widening is still the sender's own, adjudicated act.

use std::marker::PhantomData;

use fak_abi::{Outcome, ShareScope, Verdict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::channel::Channel;
use crate::delivery::Delivery;
use crate::message::Message;

/// A channel of values; see [`Channel::typed`] (§4.3).
///
/// ```
/// # use fak_a2achan::{Bus, BusConfig};
/// # use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, ShareScope};
/// # use fak_adjudicate::Kernel;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let bus = Bus::new(BusConfig::default())?;
/// # let kernel = Kernel::builder().driver(bus.driver()).build()?;
/// # let attach = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
/// #     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?);
/// #     Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
/// # };
/// # let (alpha, bravo) = (attach("alpha")?, attach("bravo")?);
/// # let work = ChannelKey::new(Locale::InKernel, "work")?;
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).ok()?;
/// #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Job {
///     number: u32,
/// }
///
/// let jobs = |agent| bus.endpoint(agent).channel(&work).typed::<Job>();
/// assert!(jobs(&alpha).send(&Job { number: 7 }, ShareScope::Fleet)?.is_allow());
/// let job = jobs(&bravo).try_recv().message().ok_or("nothing")?;
/// assert_eq!(job.value?, Job { number: 7 });
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Typed<T> {
    channel: Channel,
    values: PhantomData<fn(T) -> T>,
}

/// A value that was received, and the message it came in.
#[derive(Debug)]
pub struct TypedMessage<T> {
    /// The value, or why the body is none.
    pub value: Result<T, TypedError>,
    /// The message: sender, scope and taint.
    pub message: Message,
}

/// A value that cannot be written, or a body that is no value.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TypedError {
    /// The value cannot be written as JSON.
    #[error("the value cannot be written as json")]
    Write(#[source] serde_json::Error),
    /// The body is not the JSON of such a value. What it says is not repeated.
    #[error("the body is no such value (line {line}, column {column})")]
    Read {
        /// The line of the body, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The body may not be read.
    #[error("the body may not be read: {0}")]
    Refuse(Verdict),
}

impl Channel {
    /// This channel, of values instead of bodies.
    #[must_use]
    pub const fn typed<T>(self) -> Typed<T> {
        Typed { channel: self, values: PhantomData }
    }
}

impl<T> Typed<T> {
    /// The channel.
    #[must_use]
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }
}

impl<T: Serialize> Typed<T> {
    /// Writes a value, widens it to `scope` and sends it (§2.4, §4.3). What refuses either act is
    /// the verdict.
    ///
    /// # Errors
    /// [`TypedError::Write`] if the value cannot be written; nothing is sent then.
    pub fn send(&self, value: &T, scope: ShareScope) -> Result<Verdict, TypedError> {
        let bytes = serde_json::to_vec(value).map_err(TypedError::Write)?;
        let agent = self.channel.endpoint().agent();
        let body = agent.mint(bytes);
        if scope == ShareScope::Agent {
            return Ok(self.channel.send(&body));
        }
        Ok(match agent.widen(&body, scope) {
            Outcome::Allow { value: body, .. } => self.channel.send(&body),
            Outcome::Refuse(verdict) => verdict,
        })
    }
}

impl<T: DeserializeOwned> Typed<T> {
    /// Receives a value if one is there (§4.4).
    pub fn try_recv(&self) -> Delivery<TypedMessage<T>> {
        self.read(self.channel.try_recv())
    }

    /// Waits for a value (§4.4).
    ///
    /// # Cancel safety
    /// As [`Channel::recv`].
    pub async fn recv(&self) -> Delivery<TypedMessage<T>> {
        self.read(self.channel.recv().await)
    }

    fn read(&self, delivery: Delivery) -> Delivery<TypedMessage<T>> {
        let message = match delivery {
            Delivery::Message(message) => message,
            Delivery::Empty => return Delivery::Empty,
            Delivery::Hold(notice) => return Delivery::Hold(notice),
            Delivery::Refuse(verdict) => return Delivery::Refuse(verdict),
            Delivery::End(end) => return Delivery::End(end),
        };
        let value = match self.channel.endpoint().agent().read(message.body()) {
            Outcome::Allow { value: bytes, .. } => serde_json::from_slice(&bytes)
                .map_err(|error| TypedError::Read { line: error.line(), column: error.column() }),
            Outcome::Refuse(verdict) => Err(TypedError::Refuse(verdict)),
        };
        Delivery::Message(TypedMessage { value, message })
    }
}

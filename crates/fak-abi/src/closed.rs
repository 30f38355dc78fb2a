//! One macro for the closed vocabularies: a number, a name and a parser each, written once.
//! What the words mean lives with the types.

use thiserror::Error;

/// A word that is not in a closed vocabulary.
///
/// Outside data never falls back to a default (§2.1): an unknown taint, scope, locale, kind,
/// capability or reason is this error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown {what} {given:?}, expected one of {expected}")]
pub struct UnknownName {
    /// Which vocabulary was asked.
    pub what: &'static str,
    /// The word that was given, cut to 64 characters.
    pub given: String,
    /// The words it could have been, comma separated.
    pub expected: &'static str,
}

impl UnknownName {
    pub(crate) fn new(what: &'static str, given: &str, expected: &'static str) -> Self {
        Self { what, given: given.chars().take(64).collect(), expected }
    }
}

/// Declares a closed enum with stable discriminants and names.
macro_rules! closed_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $repr:ty, $what:literal, $expected:literal {
            $( $(#[$vmeta:meta])* $variant:ident = $code:literal => $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($repr)]
        pub enum $name {
            $( $(#[$vmeta])* $variant = $code, )+
        }

        impl $name {
            /// Every member, in the order of its codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable number, frozen by the golden file.
            #[must_use]
            pub const fn code(self) -> $repr {
                self as $repr
            }

            /// The stable name, as written in data.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::closed::UnknownName;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                match s {
                    $( $text => Ok(Self::$variant), )+
                    _ => Err($crate::closed::UnknownName::new($what, s, $expected)),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use closed_enum;

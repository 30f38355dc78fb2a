//! What a step says that found something: the clause in words, what the model says, what the product did.

use std::fmt;

/// A disagreement between product and model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) String);

/// What a step answers.
pub(crate) type Step = Result<(), Fault>;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Fault {
    /// A fault in these words.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Fails with words unless something holds.
macro_rules! ensure {
    ($holds:expr, $($words:tt)+) => {
        if !$holds {
            return Err($crate::sim::fault::Fault::new(format!($($words)+)));
        }
    };
}
pub(crate) use ensure;

/// The two must be the same.
pub(crate) fn same<T: PartialEq + fmt::Debug>(what: &str, product: &T, model: &T) -> Step {
    ensure!(product == model, "{what}: the product says {product:?}, the model {model:?}");
    Ok(())
}

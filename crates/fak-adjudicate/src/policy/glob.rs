//! Globs: literal text and `*`, any run of characters. Nothing else is special.

/// A pattern, sorted by how much work it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    pattern: Box<str>,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Any,
    Exact,
    /// Literal text and one `*` at its end.
    Prefix,
    General,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        let shape = match pattern.strip_suffix('*') {
            Some("") => Shape::Any,
            Some(prefix) if !prefix.contains('*') => Shape::Prefix,
            None if !pattern.contains('*') => Shape::Exact,
            _ => Shape::General,
        };
        Self { pattern: pattern.into(), shape }
    }

    /// Cost: the product of the lengths at worst, their sum for one `*`.
    #[inline]
    pub(super) fn matches(&self, text: &str) -> bool {
        let (pattern, text) = (self.pattern.as_bytes(), text.as_bytes());
        match self.shape {
            Shape::Any => true,
            Shape::Exact => same(pattern, text),
            Shape::Prefix => {
                let literal = pattern.split_last().map_or(pattern, |(_, literal)| literal);
                text.get(..literal.len()).is_some_and(|head| same(literal, head))
            }
            Shape::General => glob(pattern, text.iter().copied()),
        }
    }

    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    pub(super) fn is_exact(&self) -> bool {
        self.shape == Shape::Exact
    }

    /// True for literal text and one `*` at its end.
    pub(super) fn is_prefix(&self) -> bool {
        self.shape == Shape::Prefix
    }

    /// True for nothing but `*`.
    pub(super) fn is_any(&self) -> bool {
        self.shape == Shape::Any
    }

    /// True only if everything that `other` matches, this matches too: a `*` of `other` can only be
    /// taken up by one of this.
    pub(super) fn covers(&self, other: &Self) -> bool {
        glob(self.pattern.as_bytes(), other.pattern.bytes())
    }

    /// What [`Glob::covers`] costs at worst, in bytes looked at.
    pub(super) fn cost_of_covering(&self, other: &Self) -> u64 {
        let (mine, theirs) = (self.pattern.len() as u64, other.pattern.len() as u64);
        let again = self.shape == Shape::General && self.pattern.matches('*').nth(1).is_some();
        if again { mine.saturating_mul(theirs) } else { mine.saturating_add(theirs) }
    }

    /// The text before the first `*`.
    pub(super) fn literal(&self) -> &str {
        self.pattern.split('*').next().unwrap_or_default()
    }
}

/// Equality that looks at the ends first: most of what is compared differs there, and comparing two
/// bytes is cheaper than a call.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.first() == b.first() && a.last() == b.last() && a == b
}

/// Matches by going back to the last `*` only: no recursion, no allocation.
fn glob(pattern: &[u8], text: impl Iterator<Item = u8> + Clone) -> bool {
    let (mut pattern, mut text) = (pattern.iter(), text);
    let mut star = None;
    loop {
        let mut ahead = pattern.clone();
        let wanted = ahead.next();
        if wanted == Some(&b'*') {
            star = Some((ahead.clone(), text.clone()));
            pattern = ahead;
            continue;
        }
        let mut rest = text.clone();
        match (wanted, rest.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if *wanted == found => (pattern, text) = (ahead, rest),
            // The text ends too early, and giving a star more of it only makes that worse.
            (Some(_), None) => return false,
            _ => match &mut star {
                None => return false,
                Some((after, from)) => {
                    if from.next().is_none() {
                        return false;
                    }
                    (pattern, text) = (after.clone(), from.clone());
                }
            },
        }
    }
}

/// A glob over `family:id`, which is matched without writing that text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddressGlob {
    whole: Glob,
    split: Option<(Box<str>, Glob)>,
}

impl AddressGlob {
    pub(super) fn new(pattern: &str) -> Self {
        let split = pattern
            .split_once(':')
            .filter(|(family, _)| !family.contains('*'))
            .map(|(family, id)| (family.into(), Glob::new(id)));
        Self { whole: Glob::new(pattern), split }
    }

    /// By the text itself, whatever the pattern.
    pub(super) fn matches(&self, family: &str, id: &str) -> bool {
        let text = family.bytes().chain(std::iter::once(b':')).chain(id.bytes());
        glob(self.whole.pattern.as_bytes(), text)
    }

    /// Family and id apart, where the pattern spells the family out.
    pub(super) fn split(&self) -> Option<(&str, &Glob)> {
        self.split.as_ref().map(|(family, id)| (&**family, id))
    }

    pub(super) const fn whole(&self) -> &Glob {
        &self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, by recursion on short texts.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|n| naive(rest, &text[n..])),
            Some((c, rest)) => text.split_first().is_some_and(|(t, tail)| t == c && naive(rest, tail)),
        }
    }

    proptest! {
        #[test]
        fn as_the_definition(pattern in "[ab*:]{0,8}", family in "[ab]{0,3}", id in "[ab:]{0,6}") {
            let text = format!("{family}:{id}");
            let expected = naive(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(Glob::new(&pattern).matches(&text), expected);
            prop_assert_eq!(AddressGlob::new(&pattern).matches(&family, &id), expected);
        }

        #[test]
        fn what_is_covered_is_matched(a in "[ab*]{0,6}", b in "[ab*]{0,6}", text in "[ab]{0,7}") {
            let (a, b) = (Glob::new(&a), Glob::new(&b));
            if a.covers(&b) && b.matches(&text) {
                prop_assert!(a.matches(&text), "{a:?} covers {b:?} but not {text}");
            }
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = "*a".repeat(200);
        assert!(!Glob::new(&format!("{pattern}b")).matches(&"a".repeat(256)));
    }
}

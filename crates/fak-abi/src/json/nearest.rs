//! The nearest known name to a mistyped one.

/// The known name nearest to `name`, if one is near enough to suggest: at most one edit per three characters, and at
/// least one. An edit inserts, removes, replaces or swaps neighbours; case is ignored. Ties go to the smaller name.
/// Names above 256 characters have no neighbour. Cost: the product of the lengths, per known name.
///
/// ```
/// use fak_abi::json::nearest;
/// assert_eq!(nearest("boddy", ["address", "body"]), Some("body"));
/// assert_eq!(nearest("vlaue", ["op", "path", "value"]), Some("value"));
/// assert_eq!(nearest("ttl", ["to", "ttl_ms"]), Some("ttl_ms"));
/// assert_eq!(nearest("zebra", ["op", "path"]), None);
/// ```
#[must_use]
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).take(257).collect();
    if name.len() > 256 {
        return None;
    }
    let mut best: Option<(usize, &'k str)> = None;
    for candidate in known {
        let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).take(257).collect();
        // `ttl` for `ttl_ms`, `worker` for `worker_id`: the short ending was left out.
        let is_stem =
            letters.strip_prefix(&*name).is_some_and(|rest| rest.first() == Some(&'_') && rest.len() <= 4);
        let allowed = (name.len().max(letters.len()) / 3).max(1);
        if letters.len() > 256 || (!is_stem && name.len().abs_diff(letters.len()) > allowed) {
            continue;
        }
        let found = (if is_stem { 1 } else { distance(&name, &letters) }, candidate);
        if found.0 <= allowed && best.is_none_or(|best| found < best) {
            best = Some(found);
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edit distance with swaps of neighbours (optimal string alignment), over three rows.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut last = None;
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        let mut left = i + 1;
        row.push(left);
        let mut previous = None;
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], k: usize| row.get(k).copied().unwrap_or(usize::MAX / 2);
            let replace = at(&above, j) + usize::from(x != y);
            let mut cost = replace.min(at(&above, j + 1) + 1).min(left + 1);
            if last == Some(y) && previous == Some(x) && j > 0 {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
            left = cost;
            previous = Some(y);
        }
        last = Some(x);
        before = above;
        above = row;
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(a: &str, b: &str) -> usize {
        distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
    }

    #[test]
    fn distances() {
        assert_eq!(d("", ""), 0);
        assert_eq!(d("", "abc"), 3);
        assert_eq!(d("kitten", "sitting"), 3);
        assert_eq!(d("vlaue", "value"), 1);
        assert_eq!(d("enginer", "engineer"), 1);
    }

    #[test]
    fn ties_go_to_the_smaller_name_whatever_the_order() {
        assert_eq!(nearest("bat", ["cat", "bad"]), Some("bad"));
        assert_eq!(nearest("bat", ["bad", "cat"]), Some("bad"));
        assert_eq!(nearest("SCOPE", ["scope"]), Some("scope"));
        assert_eq!(nearest(&"x".repeat(300), ["x"]), None);
        assert_eq!(nearest("a", []), None);
    }
}

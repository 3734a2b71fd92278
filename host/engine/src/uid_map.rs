//! A map by UID: sorted, and in one piece, because each event looks at all pods, while few come and go.

use alloc::vec::Vec;
use core::mem;

use crate::Uid;

/// See the module.
#[derive(Debug)]
pub(crate) struct UidMap<T>(Vec<(Uid, T)>);

impl<T> UidMap<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    fn place(&self, uid: &Uid) -> Result<usize, usize> {
        let first = uid.first_bytes();
        let place = self.0.partition_point(|(known, _)| known.first_bytes() < first);
        match self.0.get(place) {
            Some((known, _)) if known == uid => Ok(place),
            // Another one begins like it.
            Some((known, _)) if known.first_bytes() == first => {
                self.0.binary_search_by(|(known, _)| known.cmp(uid))
            }
            _ => Err(place),
        }
    }

    pub(crate) fn get(&self, uid: &Uid) -> Option<&T> {
        let (_, value) = self.0.get(self.place(uid).ok()?)?;
        Some(value)
    }

    pub(crate) fn get_mut(&mut self, uid: &Uid) -> Option<&mut T> {
        let place = self.place(uid).ok()?;
        let (_, value) = self.0.get_mut(place)?;
        Some(value)
    }

    pub(crate) fn contains_key(&self, uid: &Uid) -> bool {
        self.place(uid).is_ok()
    }

    /// Returns what was there.
    pub(crate) fn insert(&mut self, uid: Uid, value: T) -> Option<T> {
        match self.place(&uid) {
            Ok(place) => self.0.get_mut(place).map(|(_, old)| mem::replace(old, value)),
            Err(place) => {
                self.0.insert(place, (uid, value));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, uid: &Uid) -> Option<T> {
        let place = self.place(uid).ok()?;
        Some(self.0.remove(place).1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Uid, &T)> {
        self.0.iter().map(|(uid, value)| (uid, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Uid, &mut T)> {
        self.0.iter_mut().map(|(uid, value)| (&*uid, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Uid> {
        self.0.iter().map(|(uid, _)| uid)
    }

    /// All that it has, with what another one has for the same UID.
    pub(crate) fn beside<'a, U>(
        &'a self,
        other: &'a UidMap<U>,
    ) -> impl Iterator<Item = (&'a T, Option<&'a U>)> {
        let mut others = other.0.iter().peekable();
        self.0.iter().map(move |(uid, value)| {
            while others.next_if(|(other, _)| other < uid).is_some() {}
            let same = others.next_if(|(other, _)| other == uid);
            (value, same.map(|(_, other)| other))
        })
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<T> Default for UidMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Of several with one UID, the last.
impl<T> FromIterator<(Uid, T)> for UidMap<T> {
    fn from_iter<I: IntoIterator<Item = (Uid, T)>>(pairs: I) -> Self {
        let mut map = Self::new();
        for (uid, value) in pairs {
            map.insert(uid, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::UidMap;
    use crate::Uid;

    /// Some begin alike, as no real ones do, and some are shorter than what is compared first.
    const TEXTS: [&str; 9] = [
        "",
        "u1",
        "u12",
        "abcdefgh",
        "abcdefgh-1",
        "abcdefgh-12",
        "abcdefgh-2",
        "abcdefgi",
        "z0000000-0",
    ];

    #[test]
    fn it_does_what_a_tree_does() {
        let (mut map, mut tree) = (UidMap::new(), BTreeMap::new());
        let mut number: usize = 7;
        for step in 0..3_000 {
            number = (number * 1_103 + 12_345) % 65_536;
            let uid = Uid::new(TEXTS[number / 16 % TEXTS.len()]);
            if number.is_multiple_of(3) {
                assert_eq!(map.remove(&uid), tree.remove(&uid));
            } else {
                assert_eq!(map.insert(uid.clone(), step), tree.insert(uid.clone(), step));
            }
            assert!(map.iter().eq(&tree), "{step}");
            for text in TEXTS {
                let uid = Uid::new(text);
                assert_eq!(map.get(&uid), tree.get(&uid), "{step}: {text}");
            }
        }
    }

    #[test]
    fn two_of_them_are_read_side_by_side() {
        let of = |places: &[usize]| -> UidMap<usize> {
            let pairs = places.iter().map(|place| (Uid::new(TEXTS[*place]), *place));
            pairs.collect()
        };
        let beside = |one: &[usize], other: &[usize]| -> Vec<(usize, Option<usize>)> {
            let (one, other) = (of(one), of(other));
            let pairs = one.beside(&other);
            pairs.map(|(one, other)| (*one, other.copied())).collect()
        };
        assert_eq!(
            beside(&[6, 1, 4], &[0, 4, 5, 6, 8]),
            [(4, Some(4)), (6, Some(6)), (1, None)]
        );
        assert_eq!(beside(&[1, 8], &[]), [(1, None), (8, None)]);
        assert_eq!(beside(&[], &[1]), []);
    }
}

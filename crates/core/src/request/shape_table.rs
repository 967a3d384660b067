//! The shapes of a site's requests and the types that were found, in words that threads share.
//!
//! An arrival reads its type: the few rules that the loop has published are tried in their order, so it needs no table. Its
//! shape is looked up too, so that its release can add the logarithm of its service time to the sums of that shape, from which
//! the loop finds the types (`control/deadline/found_types.rs`). The table is bounded: [`SHAPES`] shapes of one site. A request
//! whose shape finds no room is given its type and teaches nothing; the loop makes room ([`CrowdedPrefixes`]).
//!
//! A shape is known by its key, in one of [`WINDOW`] slots that follow from it, so a lookup reads at most that many words. A
//! new shape takes a lock to be written, once. A handle has the number of its slot and how often that slot was given away, so
//! that a long request does not teach the shape that came after its own.
//!
//! Rules are words of their own, and a request may meet some old and some new ones: it is given the type that it had, or
//! will have.

use crate::model::{Moments, log_time};
use crate::request::RequestView;
use crate::request::shape::{
    CrowdedPrefixes, LONGEST, LONGEST_NAME, ROOT, ShapeParts, Tokens, any_below, key, normalize,
};
use crate::sync::lock::Lock;
use alloc::{string::String, vec::Vec};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The slots of shapes. The first is not used: its handle means none.
pub(crate) const SHAPES: usize = 256;
/// The slots in which a key may be.
const WINDOW: usize = 8;
/// The most types that are found at one site.
pub(crate) const MOST_FOUND: usize = 8;
/// The most prefixes whose segments are not all distinguished, and the most segments in all that are distinguished there.
pub(crate) const MOST_CROWDED: usize = 16;
pub(crate) const MOST_APART: usize = 64;

/// The table of one site.
pub(crate) struct ShapeTable {
    levels: usize,
    slots: Vec<ShapeSlot>,
    /// By slot and level ([`packed`]).
    sums: Vec<AtomicU64>,
    texts: Lock<Vec<ShapeText>>,
    rules: [AtomicU64; MOST_FOUND],
    crowded: [AtomicU32; MOST_CROWDED],
    apart: [AtomicU32; MOST_APART],
}

#[derive(Default)]
struct ShapeSlot {
    /// Zero: free.
    key: AtomicU64,
    /// How often the slot was given away.
    uses: AtomicU32,
}

/// What is written of a shape when it is new: its type if no rule holds, its tokens, and its normalized text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ShapeText {
    pub(crate) root: u16,
    pub(crate) tokens: Tokens,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query_key: String,
}

/// A type that was found: the requests of another type that have a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeRule {
    pub(crate) number: u8,
    pub(crate) parent: u8,
    pub(crate) kind: u8,
    pub(crate) token: u32,
}

impl TypeRule {
    fn packed(self) -> u64 {
        let TypeRule { number, parent, kind, token } = self;
        u64::from(token) << 32 | u64::from(kind) << 24 | u64::from(parent) << 16 | u64::from(number) << 8 | 1
    }

    fn unpacked(word: u64) -> Option<TypeRule> {
        let rule = TypeRule {
            number: (word >> 8) as u8,
            parent: (word >> 16) as u8,
            kind: (word >> 24) as u8,
            token: (word >> 32) as u32,
        };
        (word & 1 == 1).then_some(rule)
    }
}

/// The type of a request with these tokens, which is of the type `root` if no rule holds.
pub(crate) fn type_of(rules: impl Iterator<Item = TypeRule>, tokens: &Tokens, root: u16) -> u16 {
    rules.fold(root, |own, rule| {
        let holds = u16::from(rule.parent) == own && tokens[usize::from(rule.kind)] == rule.token;
        if holds { rule.number.into() } else { own }
    })
}

/// Requests, logarithms of times and their squares in one word, so that one addition counts a request. The sums of 8,191
/// requests fit.
fn packed(log: u64) -> u64 {
    1 << COUNT_SHIFT | log << SUM_SHIFT | (log * log)
}

const COUNT_SHIFT: u32 = 50;
const SUM_SHIFT: u32 = 29;
/// The number of requests that one sample of the loop counts at most. The field has room above it for the requests that
/// other threads count at the same moment.
const ENOUGH: u64 = 8000;

impl CrowdedPrefixes for ShapeTable {
    fn is_apart(&self, parent: u32, child: u32) -> bool {
        let holds = |words: &[AtomicU32], token: u32| {
            let given = words.iter().map(|word| word.load(Ordering::Relaxed)).take_while(|word| *word != 0);
            given.into_iter().any(|word| word == token)
        };
        !holds(&self.crowded, parent) || holds(&self.apart, child)
    }
}

impl ShapeTable {
    pub(crate) fn new(levels: usize) -> Self {
        let (mut slots, mut sums, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        texts.resize_with(SHAPES, ShapeText::with_room);
        slots.resize_with(SHAPES, ShapeSlot::default);
        sums.resize_with(SHAPES * levels, AtomicU64::default);
        ShapeTable {
            levels,
            slots,
            sums,
            texts: Lock::new(texts),
            rules: Default::default(),
            crowded: Default::default(),
            apart: [const { AtomicU32::new(0) }; MOST_APART],
        }
    }

    /// The type of a request, which is `root` if no rule holds, and the handle of its shape.
    pub(crate) fn type_and_shape(&self, request: &impl RequestView, root: u16) -> (u16, u16) {
        let parts = ShapeParts::of(request);
        let tokens = parts.tokens(self);
        let rules = self.rules.iter().map_while(|word| TypeRule::unpacked(word.load(Ordering::Relaxed)));
        let request_type = type_of(rules, &tokens, root);
        (request_type, self.handle(root, &parts, &tokens))
    }

    /// The handle of a shape; zero where there is no room for it.
    pub(crate) fn handle(&self, root: u16, parts: &ShapeParts<'_>, tokens: &Tokens) -> u16 {
        let key = shape_key(tokens, root);
        let slot = self.find(key).unwrap_or_else(|| self.insert(key, root, parts, tokens));
        let uses = self.slots[slot].uses.load(Ordering::Relaxed);
        if slot == 0 { 0 } else { (uses as u16) << 8 | slot as u16 }
    }

    fn window(key: u64) -> impl Iterator<Item = usize> {
        // The key gives the first slot of its window. The others follow it, and after the last slot comes the first again.
        let home = ((key >> 32) * (SHAPES as u64 - 1)) >> 32;
        (1 + home as usize..).take(WINDOW).map(|slot| if slot < SHAPES { slot } else { slot - (SHAPES - 1) })
    }

    fn find(&self, key: u64) -> Option<usize> {
        Self::window(key).find(|slot| self.key(*slot) == key)
    }

    fn free(&self, key: u64) -> Option<usize> {
        Self::window(key).find(|slot| self.key(*slot) == 0)
    }

    #[cold]
    fn insert(&self, key: u64, root: u16, parts: &ShapeParts<'_>, tokens: &Tokens) -> usize {
        if self.free(key).is_none() {
            return 0;
        }
        let mut texts = self.texts.lock();
        // Another thread may have been first.
        if let Some(slot) = self.find(key) {
            return slot;
        }
        let Some(slot) = self.free(key) else { return 0 };
        texts[slot].write(root, parts, tokens);
        let words = &self.sums[slot * self.levels..][..self.levels];
        words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.slots[slot].uses.fetch_add(1, Ordering::Relaxed);
        self.slots[slot].key.store(key, Ordering::Release);
        slot
    }

    /// Adds the service time of a request that had this handle at its arrival.
    pub(crate) fn note(&self, handle: u16, level: u8, us: u64) {
        let slot = usize::from(handle & 0xff);
        if slot == 0 || self.slots[slot].uses.load(Ordering::Relaxed) as u8 != (handle >> 8) as u8 {
            return;
        }
        let level = usize::from(level.max(1)).min(self.levels) - 1;
        let word = &self.sums[slot * self.levels + level];
        if word.load(Ordering::Relaxed) >> COUNT_SHIFT < ENOUGH {
            word.fetch_add(packed(log_time(us)), Ordering::Relaxed);
        }
    }

    /// The key of the shape in a slot; zero where there is none.
    pub(crate) fn key(&self, slot: usize) -> u64 {
        self.slots[slot].key.load(Ordering::Acquire)
    }

    pub(crate) fn text(&self, slot: usize) -> ShapeText {
        self.texts.lock()[slot].clone()
    }

    /// Takes the sums of a slot since the last call.
    pub(crate) fn take(&self, slot: usize, level: usize) -> Moments {
        let word = &self.sums[slot * self.levels + level];
        if word.load(Ordering::Relaxed) == 0 {
            return Moments::default();
        }
        let word = word.swap(0, Ordering::Relaxed);
        let part = |shift: u32, end: u32| ((word >> shift) & ((1 << (end - shift)) - 1)) as f64;
        Moments { n: part(COUNT_SHIFT, 63), sum: part(SUM_SHIFT, COUNT_SHIFT), squares: part(0, SUM_SHIFT) }
    }

    /// Gives a slot away.
    pub(crate) fn remove(&self, slot: usize) {
        let _texts = self.texts.lock();
        self.slots[slot].uses.fetch_add(1, Ordering::Relaxed);
        self.slots[slot].key.store(0, Ordering::Release);
    }

    /// Publishes the rules.
    pub(crate) fn set_rules(&self, rules: impl Iterator<Item = TypeRule>) {
        set(&self.rules, rules.map(TypeRule::packed), |word, value| word.store(value, Ordering::Relaxed));
    }

    /// Publishes below which prefixes not all segments are distinguished, and which are.
    pub(crate) fn set_crowded(&self, crowded: &[u32], apart: &[u32]) {
        let store = |word: &AtomicU32, value| word.store(value, Ordering::Relaxed);
        set(&self.apart, apart.iter().copied(), store);
        set(&self.crowded, crowded.iter().copied(), store);
    }
}

/// Stores values, and zero in the words after them.
fn set<W, V: Default>(words: &[W], values: impl Iterator<Item = V>, store: impl Fn(&W, V)) {
    let values = values.chain(core::iter::repeat_with(V::default));
    words.iter().zip(values).for_each(|(word, value)| store(word, value));
}

/// The key of a shape: its tokens, and its type if no rule holds.
fn shape_key(tokens: &Tokens, root: u16) -> u64 {
    (key(tokens) ^ u64::from(root)).max(1)
}

impl ShapeText {
    /// Texts are written in place, so that a new shape allocates nothing.
    fn with_room() -> Self {
        let room = String::with_capacity;
        ShapeText {
            method: room(LONGEST_NAME),
            path: room(LONGEST + 1),
            query_key: room(LONGEST_NAME),
            ..ShapeText::default()
        }
    }

    fn write(&mut self, root: u16, parts: &ShapeParts<'_>, tokens: &Tokens) {
        self.root = root;
        for (text, part) in [(&mut self.method, parts.method), (&mut self.query_key, parts.query_key)] {
            text.clear();
            text.push_str(part);
        }
        self.path.clear();
        self.path.push_str(parts.path);
        self.follow(*tokens);
    }

    /// Takes other tokens, and writes the path as they distinguish it.
    pub(crate) fn follow(&mut self, tokens: Tokens) {
        let mut written = [0; LONGEST + 1];
        let (mut length, mut parent) = (0, ROOT);
        let mut push = |byte: u8| {
            if let Some(next) = written.get_mut(length) {
                (*next, length) = (byte, length + 1);
            }
        };
        for (segment, token) in self.parts().segments().zip(&tokens) {
            push(b'/');
            if *token == any_below(parent) {
                push(b'*');
            } else {
                // The targets of requests are ASCII; a log may have others.
                normalize(segment, |byte| push(if byte.is_ascii() { byte } else { b'?' }));
            }
            parent = *token;
        }
        self.path.clear();
        self.path.extend(written[..length].iter().map(|byte| char::from(*byte)));
        self.tokens = tokens;
    }

    pub(crate) fn parts(&self) -> ShapeParts<'_> {
        ShapeParts { method: &self.method, path: &self.path, query_key: &self.query_key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::shape::METHOD;

    fn parts(path: &str) -> ShapeParts<'_> {
        ShapeParts { method: "GET", path, query_key: "" }
    }

    fn handle(table: &ShapeTable, path: &str) -> u16 {
        let parts = parts(path);
        table.handle(1, &parts, &parts.tokens(table))
    }

    #[test]
    fn a_shape_keeps_its_slot_and_its_sums() {
        let table = ShapeTable::new(2);
        let item = handle(&table, "/item/123/report");
        assert_eq!(handle(&table, "/item/77/report"), item);
        assert_ne!(handle(&table, "/item/77"), item);
        for us in [1000, 1000, 4000] {
            table.note(item, 1, us);
        }
        table.note(item, 2, 1024);
        // A reload may have left fewer levels, and a request without a shape teaches nothing.
        table.note(item, 7, 1024);
        table.note(0, 1, 1024);
        let slot = usize::from(item & 0xff);
        let text = table.text(slot);
        assert_eq!((text.path.as_str(), text.method.as_str(), text.root), ("/item/*/report", "GET", 1));
        assert_eq!(text.tokens, parts("/item/5/report").tokens(&table));
        let logs = [79.0, 79.0, 95.0];
        let (sum, squares) = (logs.iter().sum(), logs.iter().map(|log| log * log).sum());
        assert_eq!(table.take(slot, 0), Moments { n: 3.0, sum, squares });
        assert_eq!(table.take(slot, 1), Moments { n: 2.0, sum: 160.0, squares: 12_800.0 });
        assert_eq!(table.take(slot, 0), Moments::default());
    }

    #[test]
    fn a_request_of_a_shape_that_is_gone_teaches_no_other() {
        let table = ShapeTable::new(1);
        let old = handle(&table, "/a");
        let slot = usize::from(old & 0xff);
        table.remove(slot);
        let new = handle(&table, "/a");
        assert_eq!(usize::from(new & 0xff), slot, "the key has its own slots");
        table.note(old, 1, 1000);
        assert_eq!(table.take(slot, 0), Moments::default());
        table.note(new, 1, 1000);
        assert_eq!(table.take(slot, 0).n, 1.0);
    }

    #[test]
    fn sums_of_very_many_requests_do_not_overflow() {
        let table = ShapeTable::new(1);
        let own = handle(&table, "/a");
        for _ in 0..20_000 {
            table.note(own, 1, u64::MAX);
        }
        let most = ENOUGH as f64;
        let expected = Moments { n: most, sum: most * 255.0, squares: most * 255.0 * 255.0 };
        assert_eq!(table.take(usize::from(own & 0xff), 0), expected);
    }

    #[test]
    fn a_full_table_gives_types_and_takes_no_shape() {
        let table = ShapeTable::new(1);
        let name = |n: u32| alloc::format!("/{}{}{}", letter(n), letter(n / 26), letter(n / 676));
        let handles: Vec<u16> = (0..5000).map(|n| handle(&table, &name(n))).collect();
        assert!((1..SHAPES).filter(|slot| table.key(*slot) != 0).count() > SHAPES * 9 / 10);
        assert_eq!(handles[4999], 0);
        let parts = parts("/new/path");
        let tokens = parts.tokens(&table);
        let rule =
            |number, parent, kind: usize| TypeRule { number, parent, kind: kind as u8, token: tokens[kind] };
        let rules = [rule(4, 1, METHOD), rule(5, 4, 0), rule(6, 1, 0)];
        table.set_rules(rules.into_iter());
        let words = || table.rules.iter().map_while(|word| TypeRule::unpacked(word.load(Ordering::Relaxed)));
        assert_eq!(words().collect::<Vec<_>>(), rules);
        assert_eq!(type_of(words(), &tokens, 1), 5, "the first that holds, then what is found within it");
        assert_eq!(type_of(words(), &tokens, 0), 0, "a rule holds within its parent alone");
    }

    fn letter(n: u32) -> char {
        char::from(b'a' + (n % 26) as u8)
    }

    #[test]
    fn below_a_crowded_prefix_only_some_are_distinguished() {
        let table = ShapeTable::new(1);
        let tokens = |path: &str| parts(path).tokens(&table);
        let (user, admin) = (tokens("/user")[0], tokens("/user/admin")[1]);
        table.set_crowded(&[user], &[admin]);
        assert_eq!(tokens("/user/bob/report"), tokens("/user/*/report"));
        assert_ne!(tokens("/user/admin"), tokens("/user/bob"));
        assert_ne!(tokens("/blog/bob"), tokens("/blog/eve"));
        let own = handle(&table, "/user/bob/page-17");
        assert_eq!(table.text(usize::from(own & 0xff)).path, "/user/*/page-*");
    }
}

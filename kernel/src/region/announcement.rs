//! An announcement: words of one process that any process may read at any time, and that are written many times.
//!
//! | word | writer | readers | value | what it publishes |
//! |---|---|---|---|---|
//! | 0 | one process | all | the announcement's number, not 0; 0 while it is written | the other words, and all that the writer did before |
//! | 1, 2, … | the same process | all | the announcement's values | that word 0 was 0 before |
//!
//! A reader that finds the same number before and after the values has read that announcement's values: a reader of a
//! later announcement's value also sees that the number has been cleared since.

use super::Counter;

/// Writes an announcement of this number, which is not 0, over the last one. `word` returns the word of an index;
/// values without a word are left out.
pub fn post<'w, C: Counter + 'w>(word: impl Fn(usize) -> Option<&'w C>, number: u64, values: &[u64]) {
    let store = |at, value| word(at).into_iter().for_each(|word| word.store_release(value));
    store(0, 0);
    for (at, value) in (1..).zip(values) {
        store(at, *value);
    }
    // publishes: the values, and all that the writer did before
    store(0, number);
}

/// The number of the announcement that is there now; `None` before the first one, and while one is written.
// pairs with: post
pub fn number<'w, C: Counter + 'w>(word: impl Fn(usize) -> Option<&'w C>) -> Option<u64> {
    Some(word(0)?.load_acquire().unchecked()).filter(|&number| number != 0)
}

/// The values of the announcement of this number; `None` if there is another one by now. They are another process's
/// words: the caller must check them.
pub fn values<'w, const N: usize, C: Counter + 'w>(
    word: impl Fn(usize) -> Option<&'w C>,
    number: u64,
) -> Option<[u64; N]> {
    let load = |at| word(at).map_or(0, |word| word.load_acquire().unchecked());
    let values = core::array::from_fn(|at| load(at + 1));
    (load(0) == number).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Word;

    #[test]
    fn an_announcement_is_read_whole_or_not_at_all() {
        let words = [const { Word::zero() }; 3];
        let word = |at: usize| words.get(at);
        assert_eq!(number(word), None, "before the first one");
        post(word, 7, &[5, 6, 9]);
        assert_eq!(number(word), Some(7));
        assert_eq!(values(word, 7), Some([5, 6, 0]), "what there is no word for is left out");
        assert_eq!(values::<1, _>(word, 6), None);
        post(word, 8, &[1, 2]);
        assert_eq!((number(word), values(word, 8), values::<2, _>(word, 7)), (Some(8), Some([1, 2]), None));
        Counter::store_release(&words[0], 0);
        assert_eq!(number(word), None, "one is written just now");
        assert_eq!(number(|_| None::<&Word>), None);
    }

    /// The number is cleared first and stored last.
    #[test]
    fn a_number_stands_for_its_own_words() {
        let words = [const { Word::zero() }; 2];
        let asked = core::cell::RefCell::new(std::vec::Vec::new());
        post(
            |at| {
                asked.borrow_mut().push(at);
                words.get(at)
            },
            3,
            &[4],
        );
        assert_eq!(asked.into_inner(), [0, 1, 0]);
    }
}

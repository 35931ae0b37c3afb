//! A notice: words of one process that anyone may read at any time, and that are written again and again.
//!
//! | word | writer | readers | value | what it publishes |
//! |---|---|---|---|---|
//! | 0 | one | all | the notice's number, not 0; 0 while it is written | the other words, and all that the writer did before |
//! | 1, 2, … | the same | all | what it says | that word 0 was 0 before |
//!
//! Who finds one number before and after has read the words of that notice: who reads a word of a later one finds, with
//! it, that the number has been cleared since.

use super::Counter;

/// Writes a notice of this number, which is not 0, over the last one. `word` has the words, by index; what it has not is left
/// out.
pub fn post<'w, C: Counter + 'w>(word: impl Fn(usize) -> Option<&'w C>, number: u64, values: &[u64]) {
    let store = |at, value| word(at).into_iter().for_each(|word| word.store_release(value));
    store(0, 0);
    for (at, value) in (1..).zip(values) {
        store(at, *value);
    }
    // publishes: the values, and what they tell of
    store(0, number);
}

/// The number of the notice that is there now; `None` before the first one, and while one is written.
// pairs with: post
pub fn number<'w, C: Counter + 'w>(word: impl Fn(usize) -> Option<&'w C>) -> Option<u64> {
    Some(word(0)?.load_acquire().unchecked()).filter(|&number| number != 0)
}

/// What the notice of this number says; `None` if it is another one by now. Words of whoever wrote them: to be checked.
pub fn values<'w, const N: usize, C: Counter + 'w>(
    word: impl Fn(usize) -> Option<&'w C>,
    number: u64,
) -> Option<[u64; N]> {
    let load = |at| word(at).map_or(0, |word| word.load_acquire().unchecked());
    let values = core::array::from_fn(|at| load(at + 1));
    (load(0) == number).then_some(values)
}

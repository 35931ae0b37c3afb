//! Byte strings by number: the same bytes always have the same token.

use super::hash::Table;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// The number of a byte string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token(pub(crate) u64);

/// All byte strings that a model has copied, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payloads {
    tokens: Table<Rc<[u8]>, u64>,
    strings: Vec<Rc<[u8]>>,
}

impl Payloads {
    /// The token of these bytes.
    pub(crate) fn token(&mut self, bytes: &[u8]) -> Token {
        if let Some(&token) = self.tokens.get(bytes) {
            return Token(token);
        }
        let (token, string) = (self.strings.len() as u64, Rc::from(bytes));
        self.tokens.insert(Rc::clone(&string), token);
        self.strings.push(string);
        Token(token)
    }

    /// The bytes of a token; empty for a number that is not a token.
    pub(crate) fn bytes(&self, token: Token) -> &[u8] {
        self.strings.get(token.0 as usize).map_or(&[], |string| string)
    }
}

/// Numbers that live as long as the program, since machines without a lifetime refer to them.
pub(crate) fn forever(numbers: Vec<u64>) -> &'static [u64] {
    static ALL: Mutex<BTreeSet<&'static [u64]>> = Mutex::new(BTreeSet::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(&numbers[..]) {
        return known;
    }
    let numbers: &'static [u64] = Box::leak(numbers.into());
    all.insert(numbers);
    numbers
}

//! Bytes of the start-up's messages: little-endian words and counted byte strings.
//!
//! Messages come from other processes: every read is checked, and a count in a message allocates no more than the
//! message has bytes for.

/// Appends to a message.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn word(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn words(self, values: &[u64]) -> Self {
        values.iter().fold(self.word(values.len() as u64), |writer, value| writer.word(*value))
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self = self.word(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Reads a message from its start; `None` where it ends too early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    pub(crate) fn number<N: TryFrom<u64>>(&mut self) -> Option<N> {
        N::try_from(self.word()?).ok()
    }

    pub(crate) fn words(&mut self) -> Option<Vec<u64>> {
        let count: usize = self.number()?;
        let mut words = Vec::with_capacity(count.min(self.0.len() / 8));
        for _ in 0..count {
            words.push(self.word()?);
        }
        Some(words)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len: usize = self.number()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_no_more() {
        let message = Writer::default().word(7).words(&[1, 2]).bytes(b"abc").0;
        let mut reader = Reader(&message);
        assert_eq!(reader.word(), Some(7));
        assert_eq!(reader.words(), Some(vec![1, 2]));
        assert_eq!(reader.bytes(), Some(&b"abc"[..]));
        assert_eq!(reader.word(), None);
    }

    #[test]
    fn counts_beyond_the_message_are_refused() {
        let lie = Writer::default().word(u64::MAX).0;
        assert_eq!(Reader(&lie).words(), None);
        assert_eq!(Reader(&lie).bytes(), None);
        assert_eq!(Reader(&lie).number::<u32>(), None);
    }
}

//! LogP (Culler and others 1993) and LogGP's G (Alexandrov and others 1995), as paper P4 uses them.

use crate::{Bound, ModelError};

/// The parameters; their number of processes P is each formula's argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogP {
    latency: f64,
    send: f64,
    receive: f64,
    gap: f64,
    byte_gap: f64,
}

impl LogP {
    /// Paper P4's parameters, of its figure 6 (it names no unit).
    pub const PAPER: Self = Self { latency: 125.6, send: 0.43, receive: 123.8, gap: 0.22, byte_gap: 0.0 };

    /// Cache lines between cores of a present-day server, in nanoseconds: see [`crate::segment::Machine::typical`].
    pub(crate) const TYPICAL: Self = Self { latency: 50.0, send: 5.0, receive: 15.0, gap: 20.0, byte_gap: 0.1 };

    /// L, o_s, o_r and g, all in one unit. G is 0: messages are as short as a flag.
    ///
    /// # Errors
    /// One of them is negative, absurd or not a number, or a message takes no time at all.
    pub fn new(latency: f64, send: f64, receive: f64, gap: f64) -> Result<Self, ModelError> {
        ModelError::time("latency (L)", latency)?;
        ModelError::time("send overhead (os)", send)?;
        ModelError::time("receive overhead (or)", receive)?;
        ModelError::time("gap (g)", gap)?;
        ModelError::check("os + L + or", send + latency + receive, Bound::Above(0.0))?;
        Ok(Self { latency, send, receive, gap, byte_gap: 0.0 })
    }

    /// The same with LogGP's G, the time between two bytes of a message.
    ///
    /// # Errors
    /// G is negative, absurd or not a number.
    pub fn with_byte_gap(self, byte_gap: f64) -> Result<Self, ModelError> {
        ModelError::time("gap per byte (G)", byte_gap)?;
        Ok(Self { byte_gap, ..self })
    }

    /// L.
    pub fn latency(&self) -> f64 {
        self.latency
    }

    /// o_s.
    pub fn send(&self) -> f64 {
        self.send
    }

    /// o_r.
    pub fn receive(&self) -> f64 {
        self.receive
    }

    /// g.
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// G.
    pub fn byte_gap(&self) -> f64 {
        self.byte_gap
    }

    /// One short message, from the start of its send to the end of its receive: o_s + L + o_r.
    pub fn message(&self) -> f64 {
        self.send + self.latency + self.receive
    }

    /// One message of `bytes` bytes in LogGP: o_s + (bytes − 1)·G + L + o_r.
    pub fn message_of(&self, bytes: u64) -> f64 {
        self.message() + bytes.saturating_sub(1) as f64 * self.byte_gap
    }

    /// f_s = max{o_s, g}: between two messages sent by one process.
    pub fn send_interval(&self) -> f64 {
        self.send.max(self.gap)
    }

    /// f_r = max{o_r, g}: between two messages received by one process.
    pub fn receive_interval(&self) -> f64 {
        self.receive.max(self.gap)
    }

    /// t_s = t_r = max{g, o_s + L + o_r}: a step of a chain of messages.
    pub fn step(&self) -> f64 {
        self.message().max(self.gap)
    }

    /// A process sends `n` messages: o_s + (n − 1)·max{o_s, g}.
    ///
    /// # Errors
    /// `n` is 0.
    pub fn send_all(&self, n: u64) -> Result<f64, ModelError> {
        ModelError::count("messages (n)", n, 1)?;
        Ok(self.send + (n - 1) as f64 * self.send_interval())
    }

    /// A process receives `n` messages, from the first one's sending, as the paper prints it:
    /// o_s + L + o_r + (n − 1)·max{o_s, g}, where one sender is the bottleneck.
    ///
    /// # Errors
    /// `n` is 0.
    pub fn receive_all(&self, n: u64) -> Result<f64, ModelError> {
        ModelError::count("messages (n)", n, 1)?;
        Ok(self.message() + (n - 1) as f64 * self.send_interval())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
    }

    #[test]
    fn the_papers_parameters() {
        let paper = LogP::PAPER;
        assert_eq!(LogP::new(125.6, 0.43, 123.8, 0.22), Ok(paper));
        close(paper.message(), 249.83); // 0.43 + 125.6 + 123.8
        close(paper.send_interval(), 0.43); // max(0.43, 0.22)
        close(paper.receive_interval(), 123.8); // max(123.8, 0.22)
        close(paper.step(), 249.83); // max(0.22, 249.83)
        close(paper.send_all(5).unwrap(), 2.15); // 0.43 + 4 · 0.43
        close(paper.receive_all(5).unwrap(), 251.55); // 249.83 + 4 · 0.43
    }

    #[test]
    fn a_gap_above_all_else_counts() {
        let slow = LogP::new(2.0, 1.0, 3.0, 10.0).unwrap();
        close(slow.message(), 6.0);
        close(slow.step(), 10.0);
        close(slow.send_all(3).unwrap(), 21.0); // 1 + 2 · 10
        close(slow.with_byte_gap(0.5).unwrap().message_of(9), 10.0); // 6 + 8 · 0.5
        close(slow.with_byte_gap(0.5).unwrap().message_of(0), 6.0);
    }

    #[test]
    fn the_special_case_of_equal_overheads() {
        // o_s = o_r = o ≥ g: f_r = f_s = o, t_r = t_s = 2·o + L.
        let equal = LogP::new(7.0, 2.0, 2.0, 1.0).unwrap();
        assert_eq!((equal.send_interval(), equal.receive_interval(), equal.step()), (2.0, 2.0, 11.0));
    }

    #[test]
    fn absurd_parameters_are_named() {
        let of = |l, s, r, g| LogP::new(l, s, r, g).unwrap_err().to_string();
        assert_eq!(of(-1.0, 0.0, 0.0, 0.0), "latency (L) is -1, must be at least 0");
        assert_eq!(of(1.0, f64::NAN, 0.0, 0.0), "send overhead (os) is NaN, must be at least 0");
        assert_eq!(of(1.0, 0.0, f64::INFINITY, 0.0), "receive overhead (or) is inf, must be at most 1000000000000000");
        assert_eq!(of(1.0, 0.0, 0.0, -0.5), "gap (g) is -0.5, must be at least 0");
        assert_eq!(of(0.0, 0.0, 0.0, 1.0), "os + L + or is 0, must be above 0");
        assert_eq!(LogP::PAPER.send_all(0).unwrap_err().to_string(), "messages (n) is 0, must be at least 1");
        assert!(LogP::PAPER.with_byte_gap(-1.0).is_err());
    }
}

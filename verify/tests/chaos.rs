//! The fuzzers' bodies on pseudo-random bytes: a fixed set of inputs, the same in every run.

use unisono_verify::chaos;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.next() % most).map(|_| self.next() as u8).collect()
    }
}

/// Runs `body` on `count` inputs, or on one in `UNISONO_CHAOS_ONE_IN` of them; an input that fails is printed, to be
/// kept as a regression.
fn many(count: u64, most: u64, body: fn(&[u8])) {
    let one_in = std::env::var("UNISONO_CHAOS_ONE_IN").ok().and_then(|one_in| one_in.parse().ok()).unwrap_or(1);
    for seed in (0..count).step_by(one_in) {
        let input = Random(seed).bytes(most);
        if let Err(panic) = std::panic::catch_unwind(|| body(&input)) {
            eprintln!("seed {seed}: {input:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn any_interleaving_ends_with_the_right_data() {
    many(6000, 1500, chaos::interleave);
}

#[test]
fn a_hostile_peer_gets_errors_or_wrong_data_and_no_more() {
    many(6000, 2000, chaos::corrupt);
}

#[test]
fn any_poison_reads_within_its_bounds() {
    many(6000, 3000, chaos::poison);
}

#[test]
fn any_bytes_are_refused_or_attached_within_bounds() {
    many(4000, 300, |bytes| {
        chaos::attach(bytes);
    });
    // Headers with parameters that are mostly good, and memory that may be large enough.
    let mut attached = 0;
    for seed in 0..8000 {
        let mut random = Random(seed);
        let mut pick = |of: &[u64]| of[random.next() as usize % of.len()];
        let ranks = pick(&[1, 2, 5, 1 << 20, 1 << 32]);
        let page = pick(&[256, 4096, 1 << 30, 100]);
        let queue = [pick(&[2, 16, 1 << 31, 3]), pick(&[1, 4, 1 << 31, 0]), pick(&[64, 4096, 1 << 40, u64::MAX - 63])];
        let cico = pick(&[0, 1]) * pick(&[1, 6, 1 << 31]);
        let mail = pick(&[0, 1]) * pick(&[1, 8, 64]);
        let papers = [cico, cico, cico.min(1)];
        let mailboxes = [mail, mail.min(2), mail * pick(&[8, 1 << 17, 3])];
        let words = [&[0, 0, 0, 0, ranks, page][..], &queue, &papers, &mailboxes].concat();
        let mut input = vec![2 + (seed & 1) as u8];
        input.extend(words.iter().flat_map(|word: &u64| word.to_le_bytes()));
        input.resize(input.len() + pick(&[0, 100, 20_000]) as usize, 0);
        attached += u32::from(chaos::attach(&input));
    }
    assert!(attached > 100, "only {attached} inputs got past the checks");
}

/// Inputs that once failed, or that reach a place that random bytes seldom do.
#[test]
fn regressions() {
    // Lines above 2³¹: their next power of two left 32 bits.
    let mut header = vec![2; 121];
    for (word, value) in [(4, 2), (5, 4096), (6, 0xFFFF_FFFFu64), (7, 4), (8, 64)] {
        header[1 + 8 * word..][..8].copy_from_slice(&value.to_le_bytes());
    }
    assert!(!chaos::attach(&header));
    for input in [&[][..], &[0], &[255; 400], &[3; 40]] {
        chaos::interleave(input);
        chaos::corrupt(input);
        chaos::attach(input);
        chaos::poison(input);
    }
}

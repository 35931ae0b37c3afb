//! The explorer on messages through mailboxes: all interleavings of two and three processes, and faults that it must
//! find.

use unisono_kernel::region::Layout;
use unisono_verify::explore::{Letter, Limits, Mail, Mutation, Operation, Program, Word, explore, run};

/// Two fragments and a half.
const LONG: Letter = Letter { from: 0, to: 1, tag: 1, len: 20 };
const SHORT: Letter = Letter { len: 8, ..LONG };
const NOTHING: Letter = Letter { len: 0, tag: 2, ..LONG };
const OTHER: Letter = Letter { tag: 3, len: 11, ..LONG };
const BACK: Letter = Letter { from: 1, to: 0, ..LONG };

const fn mail(letters: &'static [Letter]) -> Mail {
    Mail { letters, falling: false }
}

const fn falling(letters: &'static [Letter]) -> Mail {
    Mail { letters, falling: true }
}

/// So many messages, in so many slots.
fn program(ranks: u32, (messages, slots): (u32, u32), mail: Mail) -> Program {
    Program::new(ranks, 1, vec![Operation::Mail(mail)]).with_mailboxes(messages, slots)
}

fn checked(program: Program, mutation: Mutation) -> Vec<String> {
    let report = run(explore, [program].into_iter(), mutation, Limits::default(), 1);
    assert!(report.cut.is_empty() && report.skipped == 0, "{report}");
    report.failures
}

fn sound(ranks: u32, shape: (u32, u32), mail: Mail) {
    assert_eq!(checked(program(ranks, shape, mail), Mutation::None), [""; 0]);
}

const SHAPES: [(u32, u32); 4] = [(1, 1), (1, 2), (2, 1), (2, 2)];

#[test]
fn two_ranks() {
    for shape in SHAPES {
        for letters in [&[LONG] as &[_], &[SHORT, SHORT, SHORT], &[LONG, NOTHING, SHORT], &[LONG, BACK]] {
            sound(2, shape, mail(letters));
        }
    }
}

/// Receives in another order than the messages were sent: mailboxes of two messages hold the first one back.
#[test]
fn two_ranks_in_other_orders() {
    for slots in [1, 2] {
        for letters in [&[LONG, NOTHING] as &[_], &[SHORT, OTHER], &[LONG, OTHER, NOTHING], &[OTHER, BACK, LONG]] {
            sound(2, (2, slots), falling(letters));
        }
    }
}

#[test]
fn three_ranks() {
    const ON: Letter = Letter { from: 1, to: 2, ..LONG };
    const BEYOND: Letter = Letter { from: 2, to: 0, ..SHORT };
    for shape in SHAPES {
        for letters in [
            &[LONG, ON] as &[_],
            &[SHORT, Letter { to: 2, ..SHORT }, BEYOND],
            &[BEYOND, Letter { from: 1, to: 0, ..SHORT }],
        ] {
            sound(3, shape, mail(letters));
        }
    }
}

/// One message of a mailbox at a time: a process that receives the second and third one first waits for itself.
#[test]
fn a_mailbox_of_one_message_keeps_the_order() {
    let stuck = checked(program(2, (1, 1), falling(&[SHORT, OTHER, NOTHING])), Mutation::None);
    assert!(stuck.len() == 1 && stuck[0].contains("another length"), "{stuck:?}");
}

fn is_sequence(layout: &Layout, word: Word) -> bool {
    let mailbox = layout.mailbox(0, 1).expect("there are mailboxes");
    (0..2).any(|slot| mailbox.sequence(0, slot).offset() == word.offset)
}

fn is_taken(layout: &Layout, word: Word) -> bool {
    layout.mailbox(0, 1).expect("there are mailboxes").acked(0).offset() == word.offset
}

#[test]
fn faults_are_found() {
    let lies = unisono_kernel::region::mailboxes::count;
    for (mutation, faults) in [
        (Mutation::Lose(is_sequence, None), &["deadlock"] as &[_]),
        (Mutation::Lose(is_taken, None), &["deadlock"]),
        (Mutation::Deafen(is_sequence), &["lost wake-up", "deadlock", "in spite"]),
        (Mutation::Deafen(is_taken), &["lost wake-up", "deadlock", "in spite"]),
        // Taken before it was: the slot is written under its reader, or with what is not to be read yet.
        (Mutation::Forge(is_taken, lies(0, 1)), &["S2: rank 1 has not released"]),
        // More than there is.
        (Mutation::Forge(is_taken, lies(9, 0)), &["error 5"]),
        (Mutation::Forge(is_sequence, lies(0, 3)), &["error 5"]),
        // There before it is.
        (Mutation::Forge(is_sequence, lies(0, 1)), &["S3: nothing is published", "deadlock"]),
    ] {
        let program = || program(2, (1, 1), mail(&[LONG]));
        let found = checked(program(), mutation);
        assert_eq!(found.len(), 1, "not found: {faults:?}");
        assert!(faults.iter().any(|fault| found[0].contains(fault)), "{faults:?}: {}", found[0]);
        println!("{}", found[0].lines().next().unwrap_or_default());
    }
}

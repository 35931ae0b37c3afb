//! From rules to text.

use std::fmt;
use unisono_kernel::table::{Rule, Span};

/// A rule as a line of a file.
#[derive(Clone, Copy, Debug)]
pub struct Line<'r>(pub &'r Rule);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { collective, bytes, ranks, levels, commutative, crowded, plan } = self.0;
        write!(f, "{} {collective:<14}", plan.over().name())?;
        let wide = |span: &Span<u32>| Span::new(u64::from(span.least), u64::from(span.most));
        let counts = Span::new(1, u64::from(u32::MAX));
        range(f, "bytes", *bytes, Span::<u64>::ANY)?;
        range(f, "ranks", wide(ranks), counts)?;
        range(f, "levels", wide(levels), counts)?;
        for (name, condition) in [("commutative", commutative), ("crowded", crowded)] {
            if let Some(wanted) = condition {
                write!(f, " {name} {}", if *wanted { "yes" } else { "no" })?;
            }
        }
        write!(f, " use {plan}")
    }
}

/// A condition; nothing if the range includes all values.
fn range(f: &mut fmt::Formatter<'_>, name: &str, span: Span<u64>, any: Span<u64>) -> fmt::Result {
    match (span.least == any.least, span.most == any.most) {
        (true, true) => Ok(()),
        (true, false) if span.most == any.least => write!(f, " {name} {}", span.most),
        (true, false) => write!(f, " {name} ..{}", span.most),
        (false, true) => write!(f, " {name} {}..", span.least),
        (false, false) if span.least == span.most => write!(f, " {name} {}", span.least),
        (false, false) => write!(f, " {name} {}..{}", span.least, span.most),
    }
}

//! How a rank's pages are placed on its NUMA node: by first touch, and on request by `mbind` too.
//!
//! First touch places pages on the node where the owner runs at that moment. A memory policy on the range itself
//! applies whichever process touches a page at whichever time, also to pages that are given back and touched again.
//! Containers often forbid the call; then first touch decides, and the refusal is reported.

use crate::error::PosixError;
use crate::sys;
use core::fmt;

/// Environment variable: `none`, `preferred` or `bind`, which overrides the option. Later communicators' memory, which
/// nobody touches in advance, always has a policy: `preferred`, or `bind` ([`crate::placement`]).
pub const MBIND: &str = "UNISONO_MBIND";

/// A policy for each rank's own range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Only first touch.
    #[default]
    FirstTouch,
    /// `MPOL_PREFERRED`: the owner's node, or another one if it is full.
    Preferred,
    /// `MPOL_BIND`: only the owner's node. If that is full, the start-up fails or the kernel kills a process.
    Bind,
}

impl Policy {
    /// By name: `none`, `preferred` or `bind`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::FirstTouch),
            "preferred" => Some(Self::Preferred),
            "bind" => Some(Self::Bind),
            _ => None,
        }
    }

    /// The environment's value, else this one.
    ///
    /// # Errors
    /// The environment's value is none of these.
    pub fn decide(self) -> Result<Self, PosixError> {
        sys::setting(MBIND, "none, preferred or bind", Self::from_name).map(|found| found.unwrap_or(self))
    }

    /// The kernel's number for it.
    pub(crate) const fn mode(self) -> Option<i32> {
        match self {
            Self::FirstTouch => None,
            Self::Preferred => Some(sys::MPOL_PREFERRED),
            Self::Bind => Some(sys::MPOL_BIND),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstTouch => "none",
            Self::Preferred => "preferred",
            Self::Bind => "bind",
        })
    }
}

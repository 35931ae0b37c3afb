//! Rank arithmetic: who talks to whom. No region, no message in here.

pub mod tree;

//! Verification of the machines.

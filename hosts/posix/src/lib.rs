//! Unisono between processes of one machine.

//! The simulator: times, schedules, parameters.

mod parameters;
mod schedules;
mod scripts;
mod segment;
mod times;

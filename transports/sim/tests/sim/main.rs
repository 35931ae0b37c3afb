//! The simulator: times, schedules, parameters.

mod parameters;
mod published;
mod rivals;
mod schedules;
mod scripts;
mod segment;
mod times;

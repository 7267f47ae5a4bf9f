//! Tests of the whole engine.

mod backup;
pub(crate) mod basic;
mod bulk;
mod cold;
mod crash;
mod damage;
mod durability;
mod early;
mod frames;
mod full;
mod growth;
mod limits;
mod load;
mod locks;
mod misplaced;
mod model;
mod moves;
mod panics;
mod prepared;
mod salvage;
mod samples;
mod space;
mod spill;
mod threads;
mod throttle;

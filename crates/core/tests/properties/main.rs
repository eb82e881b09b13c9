//! Laws that hold for every input. One program for all of them: it is linked once.

mod allocatable;
mod cgroup;
mod config;
mod cron;
mod eviction;
mod lifecycle;
mod limit_range;
mod preemption;
mod quantity;
mod queue;
mod scheduler_configuration;
mod scheduling;
mod selector;
mod taint;
mod threshold;

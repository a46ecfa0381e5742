//! [`Reading`]: everything that was measured, at one moment.

use crate::histogram::BOUNDS;
use crate::names::{self, Instrument};

/// Everything that was measured, at one moment.
#[derive(Debug, Default)]
pub struct Reading {
    pub(crate) samples: Vec<(&'static Instrument, Sample)>,
}

/// One series of an instrument.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Names and values; what is empty was left out.
    pub labels: Vec<(&'static str, String)>,
    /// What it shows.
    pub value: Value,
}

/// What an instrument shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number of things.
    Whole(u64),
    /// Any number.
    Number(f64),
    /// How many there were in each bucket, and their sum.
    Histogram {
        /// The last has what is above all [bounds](Instrument::bounds).
        counts: [u64; BOUNDS.len() + 1],
        /// In the unit of the instrument.
        sum: f64,
    },
}

/// Longer values are cut, in characters: nobody reads them, and everybody keeps them.
pub(crate) const LONGEST: usize = 128;

impl Reading {
    /// Adds a series. Labels without a value are left out, long values are cut.
    pub fn add(&mut self, instrument: &'static Instrument, labels: &[(&'static str, &str)], value: Value) {
        debug_assert!(labels.iter().all(|(name, _)| instrument.attributes.contains(name)), "{labels:?}");
        let there = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels = there.map(|(name, value)| (*name, value.chars().take(LONGEST).collect())).collect();
        self.samples.push((instrument, Sample { labels, value }));
    }

    /// The same for a number of things without labels.
    pub fn whole(&mut self, instrument: &'static Instrument, value: u64) {
        self.add(instrument, &[], Value::Whole(value));
    }

    /// Adds what the system says of this process, where it says so.
    pub fn add_process(&mut self) {
        let Some(process) = Process::read() else { return };
        self.whole(names::MEMORY, process.memory);
        self.whole(names::DESCRIPTORS, process.descriptors);
        self.add(names::CPU, &[], Value::Number(process.cpu_seconds));
    }

    /// The series of each instrument that has any, in the order of [`names::ALL`].
    pub fn series(&self) -> impl Iterator<Item = (&'static Instrument, Vec<&Sample>)> {
        names::ALL.iter().filter_map(|instrument| {
            let of_it = self.samples.iter().filter(|(of, _)| of == instrument);
            let samples: Vec<&Sample> = of_it.map(|(_, sample)| sample).collect();
            (!samples.is_empty()).then_some((*instrument, samples))
        })
    }
}

/// What Linux says of a process.
struct Process {
    memory: u64,
    descriptors: u64,
    cpu_seconds: f64,
}

impl Process {
    /// `None` where there is no `/proc`.
    fn read() -> Option<Process> {
        // Of every Linux that Rust runs on.
        const PAGE: u64 = 4096;
        const TICKS: f64 = 100.0;
        let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
        let pages: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program is in parentheses, and may have any characters.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut rest = rest.split_whitespace().skip(11);
        let mut ticks = || rest.next()?.parse::<f64>().ok();
        let (user, system) = (ticks()?, ticks()?);
        let descriptors = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        Some(Process { memory: pages * PAGE, descriptors, cpu_seconds: (user + system) / TICKS })
    }
}

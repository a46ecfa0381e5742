//! [`Pause`]: how long whoever follows something that broke off waits before the next attempt.

use std::time::Duration;

/// A pause that doubles up to a bound with every failure in a row.
#[derive(Debug, Clone, Copy)]
pub struct Pause {
    first: Duration,
    most: Duration,
    now: Duration,
}

impl Pause {
    /// One that begins with `first` and grows to `most`.
    pub const fn new(first: Duration, most: Duration) -> Pause {
        Pause { first, most, now: first }
    }

    /// How long to wait now.
    pub fn get(&self) -> Duration {
        self.now
    }

    /// It failed again.
    pub fn failed(&mut self) {
        self.now = (self.now * 2).min(self.most);
    }

    /// It works.
    pub fn reset(&mut self) {
        self.now = self.first;
    }

    /// The other side asks for another pause.
    pub fn set(&mut self, asked: Duration) {
        self.now = asked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_its_bound() {
        let seconds = Duration::from_secs;
        let mut pause = Pause::new(seconds(1), seconds(5));
        let grown = [1, 2, 3, 4].map(|_| {
            pause.failed();
            pause.get().as_secs()
        });
        assert_eq!(grown, [2, 4, 5, 5]);
        pause.reset();
        assert_eq!(pause.get(), seconds(1));
        pause.set(seconds(9));
        assert_eq!(pause.get(), seconds(9));
    }
}

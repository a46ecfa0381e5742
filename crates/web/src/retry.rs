//! [`Attempts`]: whether a request is made again, and how long to wait before that.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};

/// How often and how patiently a request is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// How often it is made again at most.
    pub retries: u32,
    /// How long to wait the first time; twice as long each further time.
    pub first: Duration,
    /// What takes longer than this is not waited for.
    pub patience: Duration,
}

/// The attempts at one request.
#[derive(Debug, Clone)]
pub struct Attempts {
    backoff: Backoff,
    made: u32,
}

impl Attempts {
    /// None so far.
    pub fn new(backoff: Backoff) -> Attempts {
        Attempts { backoff, made: 0 }
    }

    /// How long to wait before the next attempt, after one that failed for reasons that pass. `None` if there is none.
    ///
    /// `asked` is what the server asked for, `left` how long may be waited, and `chance` a random number from 0 to 1, so
    /// that not all who were sent away come back together.
    pub fn again(
        &mut self,
        asked: Option<Duration>,
        left: Option<Duration>,
        chance: f64,
    ) -> Option<Duration> {
        if self.made >= self.backoff.retries {
            return None;
        }
        let usual = self.backoff.first.saturating_mul(2_u32.saturating_pow(self.made));
        let wait = asked.unwrap_or_else(|| usual.saturating_add(usual.mul_f64(chance.clamp(0.0, 1.0) / 2.0)));
        if wait > self.backoff.patience || left.is_some_and(|left| wait >= left) {
            return None;
        }
        self.made += 1;
        Some(wait)
    }
}

/// What `Retry-After` asks for: seconds, or a date (RFC 9110 section 10.2.3).
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        // More than fit are a very long time.
        let wait = || Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        return (seconds.is_finite() && seconds >= 0.0).then(wait);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_grow_and_end() {
        let backoff = Backoff { retries: 3, first: SECOND, patience: 30 * SECOND };
        let mut attempts = Attempts::new(backoff);
        assert_eq!(attempts.again(None, None, 0.0), Some(SECOND));
        assert_eq!(attempts.again(None, None, 1.0), Some(3 * SECOND));
        assert_eq!(attempts.again(Some(9 * SECOND), None, 1.0), Some(9 * SECOND));
        assert_eq!(attempts.again(None, None, 0.0), None);
    }

    #[test]
    fn nobody_waits_longer_than_there_is_patience_or_time() {
        let backoff = Backoff { retries: 3, first: SECOND, patience: 30 * SECOND };
        let mut attempts = Attempts::new(backoff);
        assert_eq!(attempts.again(Some(31 * SECOND), None, 0.0), None);
        assert_eq!(attempts.again(None, Some(SECOND), 0.0), None);
        assert_eq!(attempts.again(None, Some(2 * SECOND), 0.0), Some(SECOND));
        let endless = Backoff { retries: u32::MAX, first: Duration::MAX, patience: Duration::MAX };
        assert_eq!(Attempts { backoff: endless, made: 40 }.again(Some(SECOND), None, 0.0), Some(SECOND));
    }

    #[test]
    fn what_servers_ask_for() {
        let now = httpdate::parse_http_date("Tue, 17 Nov 2026 08:00:00 GMT").unwrap();
        for (value, wait) in [
            ("0", Some(0.0)),
            (" 12 ", Some(12.0)),
            ("1.5", Some(1.5)),
            ("Tue, 17 Nov 2026 08:01:00 GMT", Some(60.0)),
            ("Tuesday, 17-Nov-26 08:01:00 GMT", Some(60.0)),
            ("Tue Nov 17 08:01:00 2026", Some(60.0)),
            ("Tue, 17 Nov 2026 07:00:00 GMT", Some(0.0)),
            ("-1", None),
            ("NaN", None),
            ("inf", None),
            ("soon", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry_after(&headers, now), wait.map(Duration::from_secs_f64), "{value}");
        }
        let long = HeaderValue::from_static("99999999999999999999999");
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, long)]);
        assert_eq!(retry_after(&headers, now), Some(Duration::MAX));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}

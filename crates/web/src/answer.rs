//! [`Answer`]: the head of an answer, and its body as it comes.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::Error;
use crate::error::causes;

/// An answer whose body has not been read. Dropping it closes the connection.
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    url: Url,
    body: Incoming,
    until: Instant,
    silence: Option<Duration>,
}

impl Answer {
    pub(crate) fn new(
        response: http::Response<Incoming>,
        url: Url,
        until: Instant,
        silence: Option<Duration>,
    ) -> Answer {
        let (head, body) = response.into_parts();
        Answer { status: head.status, headers: head.headers, url, body, until, silence }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// A header as text; empty if there is none.
    pub fn header(&self, name: HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
    }

    /// Who answered, after all redirects.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// How many bytes are still to come, if the server said so.
    pub fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.frame().await? {
            // What comes after it is for those who ask.
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    async fn frame(&mut self) -> Result<Option<Frame<Bytes>>, Error> {
        let until = self.silence.map_or(self.until, |silence| self.until.min(Instant::now() + silence));
        match timeout_at(until, self.body.frame()).await {
            Err(_) => Err(Error::Timeout),
            Ok(None) => Ok(None),
            Ok(Some(Ok(frame))) => Ok(Some(frame)),
            Ok(Some(Err(error))) => Err(Error::Broken(causes(&error))),
        }
    }

    /// The whole body, of at most `most` bytes.
    pub async fn whole(mut self, most: usize) -> Result<Bytes, Error> {
        if self.length().is_some_and(|length| length > most as u64) {
            return Err(Error::TooLarge(most));
        }
        let mut all = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > most {
                return Err(Error::TooLarge(most));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }

    /// The whole body, of at most `most` bytes, and what came after it.
    pub async fn with_trailers(mut self, most: usize) -> Result<(Bytes, HeaderMap), Error> {
        let mut all = BytesMut::new();
        let mut trailers = HeaderMap::new();
        while let Some(frame) = self.frame().await? {
            match frame.into_data() {
                Ok(data) if all.len() + data.len() > most => return Err(Error::TooLarge(most)),
                Ok(data) => all.extend_from_slice(&data),
                Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        Ok((all.freeze(), trailers))
    }

    /// The beginning of the body: at most `most` bytes, and as many as came.
    pub async fn beginning(mut self, most: usize) -> Bytes {
        let mut all = BytesMut::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            all.extend_from_slice(&chunk[..chunk.len().min(most - all.len())]);
            if all.len() == most {
                break;
            }
        }
        all.freeze()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

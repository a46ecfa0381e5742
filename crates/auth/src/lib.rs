//! Who calls: API keys, JWT access tokens, opaque tokens, and what an OAuth 2.1 protected resource tells its clients.

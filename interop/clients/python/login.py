"""A client on version 2 of the official Python SDK, which has to log in first.

Usage: login.py URL USER modern | legacy

Calls a tool that every user may call, and one that needs another scope. Prints what came of both, and the pages that it was
sent to, as JSON.
"""

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

url, user, era = sys.argv[1:4]
REDIRECT = "http://127.0.0.1:1/callback"


class Storage:
    """Where the SDK keeps what it is given."""

    tokens: OAuthToken | None = None
    client_info: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client_info = client_info


class Browser:
    """Goes where it is sent, up to the client's own address."""

    def __init__(self) -> None:
        self.pages: list[dict[str, str]] = []
        self.back: dict[str, str] = {}

    async def open(self, page: str) -> None:
        self.pages.append(dict(parse_qsl(urlsplit(page).query)))
        async with httpx2.AsyncClient(headers={"x-user": user}) as http:
            for _ in range(20):
                answer = await http.get(page)
                assert answer.is_redirect, f"{page}: {answer.status_code} {answer.text}"
                page = str(httpx2.URL(page).join(answer.headers["location"]))
                if page.startswith(REDIRECT):
                    self.back = dict(parse_qsl(urlsplit(page).query))
                    return
        raise RuntimeError("sent from page to page")

    async def callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.back["code"], state=self.back.get("state"), iss=self.back.get("iss"))


async def main() -> None:
    storage, browser = Storage(), Browser()
    metadata = OAuthClientMetadata(
        client_name="a client of the tests",
        redirect_uris=[REDIRECT],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(url, metadata, storage, browser.open, browser.callback)

    async def call(name: str, arguments: dict[str, Any]) -> str:
        result = await client.call_tool(name, arguments)
        text = result.content[0].text
        if result.is_error:
            raise RuntimeError(text)
        return text

    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        info = types.Implementation(name="login", version="1")
        mode = "2026-07-28" if era == "modern" else "legacy"
        async with Client(transport, mode=mode, client_info=info) as client:
            done = {
                "echoed": await call("demo_echo", {"message": "through the front"}),
                "added": await call("demo_add", {"a": 20, "b": 22}),
                "echoedAgain": await call("demo_echo", {"message": "still here"}),
            }
    scope = storage.tokens.scope if storage.tokens else None
    print(json.dumps({**done, "pages": browser.pages, "scope": scope}))


asyncio.run(main())

"""What the clients from PyPI share: the steps of the matrix (tests/matrix), done one after the other."""

import asyncio
import json
import sys
from typing import Any

url, name, plan = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
mode = {"modern": "2026-07-28", "legacy": "legacy"}[sys.argv[4]] if len(sys.argv) > 4 else None

# What a client of this name answers to a server's questions.
FORM = {"name": name}
SAMPLE = f"42, says {name}"
ROOT = f"file:///home/{name}"


def tell(server: str, step: str, ok: bool, got: Any) -> None:
    print(json.dumps({"server": server, "step": step, "ok": ok, "got": got}), flush=True)


class Client:
    """What a step needs of a client; the SDKs differ in how it is done."""

    async def tools(self) -> list[str]:
        raise NotImplementedError

    async def resources(self) -> list[str]:
        raise NotImplementedError

    async def call(self, tool: str, arguments: dict[str, Any], progress: Any) -> Any:
        """The result, with `content` and whether it is an error."""
        raise NotImplementedError

    async def read(self, uri: str) -> str:
        raise NotImplementedError

    async def prompt(self, prompt: str, arguments: dict[str, str]) -> str:
        raise NotImplementedError


def failed(result: Any) -> bool:
    return bool(getattr(result, "is_error", False) or getattr(result, "isError", False))


async def do(client: Client, kind: str, target: str, arguments: dict[str, Any]) -> Any:
    if kind == "tools":
        return [tool for tool in await client.tools() if tool.startswith(target)]
    if kind == "resources":
        return [uri for uri in await client.resources() if uri.startswith(target)]
    if kind == "read":
        return await client.read(target)
    if kind == "prompt":
        return await client.prompt(target, arguments)
    seen: list[Any] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append([progress, total, message])

    result = await client.call(target, arguments, progress if kind == "progress" else None)
    text = "\n".join(getattr(block, "text", "") for block in result.content)
    if failed(result):
        raise RuntimeError(text)
    return {"text": text, "progress": seen} if kind == "progress" else text


async def take(client: Client, step: dict[str, Any]) -> None:
    """Does one step and tells what came of it."""
    try:
        got = await do(client, step["kind"], step["target"], step["arguments"])
        tell(step["server"], step["step"], True, got)
    except Exception as error:
        tell(step["server"], step["step"], False, f"{type(error).__name__}: {error}")


async def run(client: Client, version: str) -> None:
    """Does everything: the steps, and then those that are done at the same time."""
    tell("", "connect", True, version)
    for step in plan["steps"]:
        await take(client, step)
    await asyncio.gather(*(take(client, step) for step in plan["together"]))

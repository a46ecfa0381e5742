"""Reads the figures of a gateway as Prometheus does: `figures.py BASE KEY CONFIGURATION OPERATING.md NAMES PORT`.

It makes happen whatever is counted, so that every series is there, and compares what Prometheus' own parsers make of both text forms
with the tables of the documentation.
"""

import http.server
import json
import re
import sys
import threading
import time
import urllib.error
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

base, key, configuration, page, names, port = sys.argv[1:]
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "figures", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def until(what, is_so):
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.1)
    raise SystemExit(f"it does not happen: {what}")


class Unwell(http.server.BaseHTTPRequestHandler):
    """A server of 2025-11-25 that is there for a while. No connection outlives its answer, so that none is left when it is gone."""

    def do_POST(self):
        # Spans come here, too, and nobody takes them.
        if self.path != "/mcp":
            return self.answer(404, b"")
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "serverInfo": {"name": "unwell", "version": "1"},
                "capabilities": {"tools": {}},
            },
            "ping": {},
            "tools/list": {
                "tools": [{"name": "look", "inputSchema": {"type": "object"}}]
            },
        }
        if "id" not in message:
            return self.answer(202, b"")
        body = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in results:
            body["result"] = results[message["method"]]
        else:
            body["error"] = {"code": -32601, "message": "Method not found"}
        self.answer(200, json.dumps(body).encode())

    def do_GET(self):
        self.answer(405, b"")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def send(path, body=None, credential=key, method=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers |= {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
    headers.setdefault("Accept", "application/json, text/event-stream")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def call(tool):
    params = {"name": tool, "arguments": {"a": 1, "b": 2}, "_meta": MODERN}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return send("/mcp", body, MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name=tool)


def figures(parse, accept):
    status, headers, text = send("/metrics", Accept=accept)
    assert status == 200, (status, text)
    families = list(parse(text))
    assert len({family.name for family in families}) == len(families), "a family is there twice"
    for family in families:
        series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
        assert len(set(series)) == len(series), f"a series of {family.name} is there twice"
        assert family.documentation, family.name
    return {family.name: family for family in families}, headers["Content-Type"]


def documented():
    """The series of the tables, with their types; those of Percolate stand in for some others."""
    text = open(page, encoding="utf-8").read()
    usual, own = text.split("### Names of Percolate")
    own = own.split("\n## ")[0]

    def of(text):
        for line in text.splitlines():
            first = line.split("|")[1] if line.startswith("| `") else ""
            for name in re.findall(r"`((?:mcp|tidegate|process)_\w+)`", first):
                kind = "counter" if name.endswith("_total") else "gauge"
                yield name.removesuffix("_total"), "histogram" if "(histogram" in first else kind

    wanted = dict(of(usual))
    if names == "percolate":
        wanted |= dict(of(own))
        del wanted["tidegate_cache_hits"], wanted["tidegate_cache_misses"]
    return wanted


def lost():
    """Calls a server that has just gone, unless the gateway was quicker to notice."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Unwell)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    until("the server is there", lambda: json.loads(send("/health")[2])["servers"]["unwell"]["health"] == "ready")
    server.shutdown()
    server.server_close()
    call("unwell_look")
    found = figures(prometheus, "text/plain")[0]
    return "tidegate_call_retries" in found and "tidegate_circuit_opened" in found


def main():
    until("the gateway is ready", lambda: send("/ready")[0] == 200)
    for tool in ("demo_add", "old_add", "nobody_has_this"):
        call(tool)
    until("a call is made again and a circuit breaker opens", lost)
    assert send("/metrics", credential="nonsense")[0] == 401
    _, headers, _ = send(
        "/mcp",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": MODERN["io.modelcontextprotocol/clientInfo"]},
        },
    )
    send("/mcp", method="DELETE", Mcp_Session_Id=headers["Mcp-Session-Id"], MCP_Protocol_Version="2025-11-25")
    # A legacy server that is gone takes its sessions along.
    text = open(configuration, encoding="utf-8").read()
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(text.split("[servers.old]")[0])
    ended = "mcp_client_session_duration_seconds"
    until("a session with a server is over", lambda: ended in figures(prometheus, "text/plain")[0])

    wanted = documented()
    for parse, accept, media_type in (
        (prometheus, "text/plain", "text/plain; version=0.0.4; charset=utf-8"),
        (openmetrics, "application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ):
        found, said = figures(parse, accept)
        assert said == media_type, said
        types = {name: family.type for name, family in found.items()}
        # Where the system does not tell, there is nothing to show.
        expected = {name: kind for name, kind in wanted.items() if sys.platform == "linux" or not name.startswith("process_")}
        missing = {name: kind for name, kind in expected.items() if types.get(name) != kind}
        assert not missing, f"{media_type}: documented as {missing}, and is {({name: types.get(name) for name in missing})}"
        unknown = set(types) - set(wanted)
        assert not unknown, f"{media_type}: not documented: {unknown}"
        tools = {
            sample.labels.get("gen_ai_tool_name", sample.labels.get("mcp_tool_name"))
            for family in found.values()
            for sample in family.samples
        }
        assert "demo_add" in tools and "nobody_has_this" not in tools, tools
    print(f"{len(wanted)} families")


main()

"""FastMCP's proxy in front of the servers of an mcpServers file: fastmcp_proxy.py FILE PORT"""

import json
import sys

from fastmcp.server import create_proxy

with open(sys.argv[1]) as file:
    proxy = create_proxy(json.load(file))
# Connections are opened one after the other and must still be there when the last one is.
patient = {"timeout_keep_alive": 120}
proxy.run(
    transport="http", host="127.0.0.1", port=int(sys.argv[2]), path="/mcp", show_banner=False, uvicorn_config=patient
)

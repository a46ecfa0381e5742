"""What every agent is told: where its model is, where its tools are, and what the user says.

Usage: … MODEL TOOLS PROMPT [WORDS…]
MODEL is an address without a path; TOOLS is the address of the gateway, or a JSON list with the command that starts it.
"""

import json
import sys

model, tools, prompt, *words = sys.argv[1:]
command = None if tools.startswith("http") else json.loads(tools)

# Somebody has to be named, and nobody looks at the key.
NAME = "scripted"
KEY = "none"
OPENAI = f"{model}/v1"

"""The user's own MCP server, which stays beside ours: JSON lines on stdin -> one tool that tells the time."""

import json
import sys

TOOL = {"name": "clock_now", "description": "Tells the time.", "inputSchema": {"type": "object", "properties": {}}}
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "clock", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "half past nine"}]},
    "ping": {},
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in ANSWERS:
        answer["result"] = ANSWERS[request["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)

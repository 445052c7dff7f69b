# SPDX-License-Identifier: MIT
"""An ASGI application whose handler, a coroutine, leaks."""
import asyncio
import json

from counted import remember


async def handle(path):
    await asyncio.sleep(0)
    rows = [{"id": i, "name": f"row {i}", "path": path} for i in range(20)]
    return json.dumps(remember(rows)).encode()


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = await handle(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})

"""Subscribes with the official Python SDK and prints every event as one line of JSON."""

import asyncio
import json
import sys

from centrifuge import Client, ClientEventHandler, SubscriptionEventHandler


def say(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)


class ClientEvents(ClientEventHandler):
    async def on_connected(self, ctx):
        say("connected", client=ctx.client)

    async def on_connecting(self, ctx):
        say("connecting", code=ctx.code)

    async def on_disconnected(self, ctx):
        say("disconnected", code=ctx.code, reason=ctx.reason)

    async def on_error(self, ctx):
        say("error", error=str(ctx.error))


class SubscriptionEvents(SubscriptionEventHandler):
    async def on_subscribed(self, ctx):
        say("subscribed", recovered=ctx.recovered, wasRecovering=ctx.was_recovering)

    async def on_publication(self, ctx):
        say("publication", offset=ctx.pub.offset, data=ctx.pub.data)


async def main(address, token, channel):
    async def get_token():
        return token

    client = Client(address, events=ClientEvents(), get_token=get_token, max_reconnect_delay=0.5)
    await client.new_subscription(channel, events=SubscriptionEvents()).subscribe()
    await client.connect()
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))

"""Uses the official Python SDK and prints every event as one line of JSON."""

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
    def __init__(self, protobuf):
        self.protobuf = protobuf
        self.subscription = None
        self.started = False

    def decode(self, data):
        return json.loads(data) if self.protobuf else data

    def encode(self, value):
        return json.dumps(value).encode() if self.protobuf else value

    async def on_subscribed(self, ctx):
        say("subscribed", recovered=ctx.recovered, wasRecovering=ctx.was_recovering)

    async def on_publication(self, ctx):
        say("publication", offset=ctx.pub.offset, data=self.decode(ctx.pub.data))
        if not self.started:
            self.started = True
            # Not awaited: the SDK calls the next handler when this one has returned.
            self.task = asyncio.create_task(self.use())

    async def use(self):
        await self.subscription.publish(self.encode({"n": 2}))
        history = await self.subscription.history(limit=10)
        say("history", data=[self.decode(publication.data) for publication in history.publications])
        presence = await self.subscription.presence()
        say("presence", users=[info.user for info in presence.clients.values()])


async def main(codec, address, channel, *tokens):
    used = 0

    async def get_token(*_):
        nonlocal used
        used += 1
        say("token", count=used)
        return tokens[min(used, len(tokens)) - 1]

    protobuf = codec == "protobuf"
    client = Client(
        address,
        events=ClientEvents(),
        get_token=get_token,
        use_protobuf=protobuf,
        min_reconnect_delay=0.1,
        max_reconnect_delay=0.5,
    )
    events = SubscriptionEvents(protobuf)
    events.subscription = client.new_subscription(channel, events=events)
    await events.subscription.subscribe()
    await client.connect()
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))

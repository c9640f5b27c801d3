"""Whether a message gets through the channel layer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

from django.conf import settings as django_settings
from django.utils.module_loading import import_string

from jobs.management.diagnosis.finding import Finding, first_line

CHANNEL_SECONDS = 3.0


def check_channel_layer() -> Iterator[Finding]:
    """Sends one message through the layer: configured right and reachable are then both proven."""
    layers = getattr(django_settings, "CHANNEL_LAYERS", {})
    backend = layers.get("default", {}).get("BACKEND", "")
    if not backend:
        yield Finding("channel layer", "skipped", "None is configured; the dashboard needs none.")
    elif backend.endswith("channels_redis.core.RedisChannelLayer"):
        yield Finding(
            "channel layer",
            "failed",
            "The list-based Redis layer breaks idle connections after 5 seconds with redis-py 8.",
            "CHANNEL_LAYERS",
            "Use channels_redis.pubsub.RedisPubSubChannelLayer.",
        )
    elif backend.endswith("InMemoryChannelLayer"):
        yield Finding(
            "channel layer",
            "warning",
            "The in-memory layer reaches only its own process.",
            "CHANNEL_LAYERS",
            "Use channels_redis.pubsub.RedisPubSubChannelLayer.",
        )
    else:
        try:
            asyncio.run(_through_channel_layer())
        except Exception as error:  # whatever it is: no message gets through
            yield Finding(
                "channel layer",
                "failed",
                f"No message gets through the channel layer: {first_line(error)}",
                "CHANNEL_LAYERS",
                "Its hosts must name a running server.",
            )
        else:
            yield Finding("channel layer", "ok", backend.rpartition(".")[2])


async def _through_channel_layer() -> None:
    # By name: the library works in projects that have no Channels at all.
    layer = import_string("channels.layers.get_channel_layer")()
    group = f"doctor-{uuid4().hex}"
    async with asyncio.timeout(CHANNEL_SECONDS):
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "doctor"})
        await layer.receive(channel)
        await layer.group_discard(group, channel)
